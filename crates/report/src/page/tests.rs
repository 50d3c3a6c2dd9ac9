//! Pages of small documents: what a cell says of each verdict, what is drawn, and that nothing foreign is markup.

use serde_json::{Value, json};
use t2t_protocol::read::exactly;
use t2t_protocol::{Analysis, Baseline, Bench, Calibration, Evidence, Failure, Resources};

use super::*;
use crate::rank::{Found, Lane, Selection, VariantResult, select};
use crate::render::op_page::VariantPage;

macro_rules! sample {
    ($name:literal) => {
        serde_json::from_str(include_str!(concat!("../../../../tests/it/samples/", $name, ".json"))).unwrap()
    };
}

/// What a message of a kernel may be, too.
const MARKUP: &str = "</p></style><script>alert(1)</script><img src=x onerror=alert(2)> & \"quoted\" 'so'";

/// The documents of an op with a variant of each kind.
struct World {
    results: Vec<VariantResult>,
    evidence: Evidence,
    wrong: Evidence,
    failure: Failure,
    baseline: Found<Baseline>,
    calibration: Found<Calibration>,
    analysis: Found<Analysis>,
    resources: Found<Resources>,
    selection: Found<Selection>,
    kwargs: BTreeMap<String, Value>,
}

fn skipped<T>(reason: &str) -> Found<T> {
    Found::Skipped { reason: reason.to_owned() }
}

fn result(name: &str, verdict: Found<t2t_protocol::Verdict>, bench: Found<Bench>) -> VariantResult {
    VariantResult { name: name.to_owned(), verdict, bench }
}

fn world() -> World {
    let passed = || Found::Document(sample!("verdict_passed"));
    let results = vec![
        result("v1_baseline", passed(), Found::Document(sample!("bench_v1"))),
        result("v2_tiling", Found::Document(sample!("verdict_rejected")), skipped("its check was rejected")),
        result("v3_inline", Found::Document(sample!("verdict_not_judged")), skipped("its check judged nothing")),
        result("v4_optimized", passed(), Found::Document(sample!("bench_v4"))),
        result("v5", skipped("`softmax/v5:compile` was rejected"), skipped("not reached")),
        result("v6", Found::Lost, Found::Lost),
        result("v7", skipped("stale: its code changed"), skipped("stale: its code changed")),
        result("v8", passed(), skipped("it is no part of this build")),
    ];
    let baseline: Found<Baseline> = Found::Document(sample!("baseline"));
    let mut wrong: Evidence = sample!("evidence_rejected");
    wrong.failure = Some(
        exactly(&json!({"class": "mismatch", "message": MARKUP, "case": "large sizes/float32", "given": MARKUP,
            "excerpt": MARKUP, "traceback": [MARKUP, MARKUP], "hint": MARKUP, "got": "nan", "expected": 1.5,
            "index": [0, 3], "bad": 2, "total": 256, "max_abs": null, "max_rel": null,
            "place": {"file": "kernels/<b>.py", "line": 7, "column": 2}}))
        .unwrap(),
    );
    wrong.output.stdout = MARKUP.to_owned();
    World {
        selection: Found::Document(select(&results, baseline.document(), Lane::Device)),
        results,
        evidence: sample!("evidence_passed"),
        wrong,
        failure: Failure::new("compile-error", "`y` is not defined"),
        baseline,
        calibration: Found::Document(sample!("calibration")),
        analysis: Found::Document(sample!("analysis")),
        resources: Found::Document(sample!("resources")),
        kwargs: BTreeMap::from([("<em>".to_owned(), json!(MARKUP))]),
    }
}

impl World {
    fn op<'a>(&'a self, name: &'a str) -> Op<'a> {
        let variants = self.results.iter().map(|result| VariantPage {
            result,
            file: "kernels/softmax/v.py",
            docstring: None,
            evidence: Some(if result.name == "v2_tiling" { &self.wrong } else { &self.evidence }),
            launches: None,
            resources: &self.resources,
            tune: None,
            failures: if result.name == "v5" { [(Phase::Compile, &self.failure)].into() } else { BTreeMap::new() },
            attempts: &[],
            no_attempt: None,
            rounds: &[],
        });
        let own = OpPage {
            op: name,
            kwargs: &self.kwargs,
            precision: "ieee",
            calibration: &self.calibration,
            analysis: &self.analysis,
            analysis_failure: None,
            baseline: &self.baseline,
            lane: Lane::Device,
            selection: &self.selection,
            variants: variants.collect(),
        };
        Op {
            own,
            there: None,
            stale: BTreeSet::from(["v7".to_owned()]),
            changes: BTreeMap::new(),
            history: Vec::new(),
            sweeps: Vec::new(),
        }
    }
}

fn page(ops: Vec<Op<'_>>) -> String {
    html(&Page { place: "Results of <NVIDIA H200>.".to_owned(), timeline: None, ops }).unwrap()
}

#[test]
fn the_heat_map_has_a_cell_for_each_verdict() {
    let world = world();
    let cells = cells::of(&world.op("softmax"));
    let told: Vec<(&str, &str, &str, Option<&str>)> =
        cells.iter().map(|cell| (cell.variant.as_str(), cell.verdict, cell.mark, cell.class.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("v1_baseline", "passed", "✓", None),
            ("v2_tiling", "rejected", "✗", Some("mismatch")),
            ("v3_inline", "not-judged", "?", None),
            ("v4_optimized", "passed", "✓", None),
            ("v5", "skipped", "–", None),
            ("v6", "lost", "!", None),
            ("v7", "stale", "…", None),
            ("v8", "passed", "✓", None),
        ]
    );
    // As the samples have it: v1 takes 36.83 µs, v4 17.73 µs, torch 26.50 µs.
    let levels: Vec<&str> = cells.iter().map(|cell| cell.level).collect();
    assert_eq!(levels, ["slow1", "none", "none", "fast1", "none", "none", "none", "none"]);
    assert!(cells[0].unstable && !cells[3].unstable && cells[3].chosen && !cells[0].chosen);
    assert_eq!(cells[4].reason.as_deref(), Some("`softmax/v5:compile` was rejected"));
    let text = page(vec![world.op("softmax")]);
    assert!(text.contains("data-verdicts=\"lost not-judged passed rejected skipped stale unstable\""), "{text}");
    assert!(text.contains("<td class=\"fast1\"><a href=\"#softmax/v4_optimized\" aria-label=\"chosen, passed 1.49x\">★✓ <b>1.49x</b></a>"), "{text}");
    assert!(text.contains("<td class=\"none rejected\">"), "{text}");
    assert!(text.contains("<code>softmax&#x2f;v5:compile</code> was rejected"), "backticks are code: {text}");
}

#[test]
fn many_names_of_variants_stand_in_columns_by_their_place() {
    let cells: Vec<Cell> = (0..9).map(|number| Cell { variant: format!("w{number}"), ..blank() }).collect();
    let few = Matrix::of(&[("a", &cells[..2]), ("b", &cells[1..3])]);
    assert_eq!((few.columns.join(" "), few.named), ("w0 w1 w2".to_owned(), true));
    let many = Matrix::of(&[("a", &cells[..4]), ("b", &cells[4..])]);
    assert_eq!((many.columns.join(" "), many.named), ("1 2 3 4 5".to_owned(), false));
}

fn blank() -> Cell {
    cells::of(&world().op("softmax")).remove(7)
}

#[test]
fn nothing_that_comes_from_kernels_or_from_ops_yaml_is_markup() {
    let text = page(vec![world().op("softmax")]);
    assert_eq!(text.matches("<script").count(), 1);
    assert_eq!(text.matches("</style>").count(), 1);
    assert_eq!(
        text.matches("</noscript>").count(),
        1,
        "what stands in it is text to a browser until a script takes it"
    );
    for raw in ["<img", "onerror=alert(2)>", "<b>.py", "<em>", "<NVIDIA", "\"quoted\""] {
        assert!(!text.contains(raw), "{raw}");
    }
    assert!(text.contains("&lt;script&gt;alert(1)&lt;") && text.contains("&lt;NVIDIA H200&gt;"), "{text}");
    let hostile = "x\"><script>alert(1)</script>";
    let text = page(vec![world().op(hostile)]);
    assert_eq!(text.matches("<script").count(), 1, "not by the name of an op, in a chart's label either");
}

#[test]
fn a_failure_has_its_place_and_the_command_that_repeats_it() {
    let text = page(vec![world().op("softmax")]);
    for told in [
        "kernels&#x2f;&lt;b&gt;.py:7:2",
        "<code>t2t repro softmax&#x2f;v2_tiling &#x27;large sizes&#x2f;float32&#x27;</code>",
        "<code>t2t build softmax&#x2f;v5:compile --force</code>",
        "Got nan, expected 1.5 at [0, 3]; 2 of 256 elements differ.",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn every_baseline_is_a_subject_beside_the_variants_and_one_without_a_figure_says_why() {
    let mut world = world();
    let Found::Document(baseline) = &mut world.baseline else { unreachable!() };
    for size in baseline.sizes.values_mut() {
        let own = size.compiled.clone().flatten();
        size.others = [("gems".to_owned(), own), ("absent".to_owned(), None)].into();
    }
    let compiled = baseline.finals["torch.compile"];
    baseline.finals.extend([("gems".to_owned(), compiled), ("absent".to_owned(), None)]);
    baseline.reasons.insert("absent".to_owned(), "no module is called so".to_owned());
    let whole = page(vec![world.op("softmax")]);
    assert!(whole.contains("<th>gems<td>"), "{whole}");
    assert!(whole.contains("absent was not measured: no module is called so."), "{whole}");
    assert!(!whole.contains("<th>absent<"), "{whole}");
}

#[test]
fn figures_that_are_missing_are_dashes_and_an_op_without_any_has_no_chart() {
    let mut world = world();
    let whole = page(vec![world.op("softmax")]);
    assert_eq!(whole.matches("<svg role=img ").count(), 3);
    assert!(whole.contains("<th>torch.compile<td>") && whole.contains("1.49x"), "{whole}");
    for result in &mut world.results {
        result.bench = skipped("stale: its code changed");
    }
    world.baseline = Found::Lost;
    world.analysis = Found::Lost;
    world.resources = Found::Lost;
    world.calibration = Found::Lost;
    world.selection = Found::Document(select(&world.results, None, Lane::Device));
    let text = page(vec![world.op("softmax")]);
    assert!(
        !text.contains("<svg role=img") && text.contains("none of the variants that passed was measured"),
        "{text}"
    );
    assert!(text.contains("v1_baseline was not measured: stale: its code changed."), "{text}");
    world.selection = Found::Lost;
    assert!(page(vec![world.op("softmax")]).contains("No kernel is chosen."));
    assert!(page(vec![]).contains("ops.yaml declares no op."));
}

/// Returns the roofline of the only op of a page.
fn roofline(text: &str) -> &str {
    let begin = text.find("<svg role=img aria-label=\"Roofline of softmax").unwrap_or_else(|| panic!("{text}"));
    &text[begin..begin + text[begin..].find("</svg>").unwrap()]
}

/// Returns where the lines, or the marks, of the path with this class go, in px: steps from one place to the next are added up.
fn places(svg: &str, class: &str) -> Vec<Vec<[f64; 2]>> {
    let path = svg.split(&format!("<path class=\"{class}\" d=\"")).nth(1).unwrap_or_else(|| panic!("{class}: {svg}"));
    let mut at = [0.0, 0.0];
    let lines = path.split('"').next().unwrap().split('m').skip(1).map(|line| {
        let spaced = line.replace('-', " -");
        let steps: Vec<f64> = spaced.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let place = |step: &[f64]| {
            at = [at[0] + step[0], at[1] + step[1]];
            at
        };
        steps.chunks_exact(2).map(place).collect()
    });
    lines.collect()
}

#[test]
fn a_mark_of_the_roofline_is_as_far_below_the_ceiling_as_its_share_says() {
    let world = world();
    let text = page(vec![world.op("softmax")]);
    assert!(text.contains("0.625 FLOP per byte"), "83877888 FLOP of 134217728 bytes: {text}");
    let svg = roofline(&text);
    assert!(svg.contains("copy: 4247 GB&#x2f;s") && svg.contains("float32: 51.3 TFLOP&#x2f;s"), "{svg}");
    assert!(!svg.contains("bfloat16") && !svg.contains("tf32:"), "nothing was measured in these: {svg}");
    // The slope is the last line that is drawn, from 0.1 FLOP per byte to where both ceilings meet, at 51.3 TFLOP/s.
    let ceilings = places(svg, "k");
    let [begin, ridge] = ceilings.last().unwrap()[..] else { panic!("{svg}") };
    let decade = (begin[1] - ridge[1]) / (51.3 / 0.4247_f64).log10();
    let aside = (ridge[0] - begin[0]) / (51.3 / 0.4247_f64).log10();
    // The marks of v1 at its first and at its last size.
    for (class, flops, bytes, ms) in
        [("s3 h0", 327_168.0, 524_288.0, 0.0071), ("s5 h0", 83_877_888.0, 134_217_728.0, 0.0913_f64)]
    {
        let [x, y] = places(svg, class)[0][0];
        let intensity: f64 = flops / bytes;
        assert!((x - begin[0] - (intensity / 0.1).log10() * aside).abs() < 2.0, "{x}: {svg}");
        let ceiling = begin[1] - (intensity * 4.247 / 0.4247).log10() * decade;
        let share: f64 = bytes / 4.247e9 / ms;
        assert!((y - ceiling + share.log10() * decade).abs() < 2.0, "{y} is below {ceiling}: {svg}");
        assert!(y > ceiling, "no copy is faster: {svg}");
    }
}

#[test]
fn where_there_is_no_roofline_a_sentence_says_why() {
    let mut world = world();
    let told = |world: &World| page(vec![world.op("softmax")]);
    let Found::Document(calibration) = &mut world.calibration else { unreachable!() };
    calibration.products.clear();
    let text = told(&world);
    assert!(roofline(&text).contains("copy: 4247 GB&#x2f;s") && !roofline(&text).contains("float32:"), "{text}");
    let Found::Document(analysis) = &mut world.analysis else { unreachable!() };
    for size in analysis.sizes.values_mut() {
        size.flops = None;
    }
    assert!(told(&world).contains("There is no roofline: the analysis counted no floating-point operations."));
    world.analysis = Found::Lost;
    assert!(told(&world).contains("There is no roofline: the analysis counted nothing of what was measured."));
    world.calibration = Found::Lost;
    let text = told(&world);
    assert!(
        text.contains("There is no roofline: the device&#x27;s ceilings are not known.") && !text.contains("Roofline")
    );
}

#[test]
fn equal_documents_give_equal_bytes_and_the_page_of_a_hundred_ops_stays_below_two_megabytes() {
    let mut world = world();
    world.results.truncate(4);
    world.selection = Found::Document(select(&world.results, world.baseline.document(), Lane::Device));
    let names: Vec<String> = (0..100).map(|number| format!("operation_{number}")).collect();
    let text = page(names.iter().map(|name| world.op(name)).collect());
    assert!(text.len() < 2_000_000, "{}", text.len());
    assert!(text == page(names.iter().map(|name| world.op(name)).collect()));
}
