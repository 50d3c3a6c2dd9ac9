//! Pages of small documents, compared whole.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use t2t_model::action::Phase;
use t2t_protocol::read::{exactly, leniently};
use t2t_protocol::{Analysis, Baseline, Bench, Calibration, Evidence, Failure, Launches, Resources, Tune, Verdict};

use super::*;
use crate::rank::{Found, Lane, Selection, VariantResult, select};
use crate::render::build_page::{OpSummary, closing_table};
use crate::render::op_page::VariantPage;
use crate::render::problem::Problem;

/// The log template of a workspace that has none of its own.
const LOG_TEMPLATE: &str = include_str!("../../../../assets/log_template.md");

/// The log template with Korean headings.
const LOG_TEMPLATE_KO: &str = include_str!("../../../../assets/log_template_ko.md");

macro_rules! sample {
    ($name:literal) => {
        serde_json::from_str(include_str!(concat!("../../../../tests/it/samples/", $name, ".json"))).unwrap()
    };
}

// Below the macro, which they use.
mod published;
mod summaries;
mod templates;

fn result(name: &str, verdict: Verdict, bench: Found<Bench>) -> VariantResult {
    VariantResult { name: name.to_owned(), verdict: Found::Document(verdict), bench }
}

fn skipped<T>(reason: &str) -> Found<T> {
    Found::Skipped { reason: reason.to_owned() }
}

/// The documents of an op with a variant of each kind.
struct Softmax {
    results: Vec<VariantResult>,
    calibration: Found<Calibration>,
    analysis: Found<Analysis>,
    baseline: Found<Baseline>,
    selection: Found<Selection>,
    evidence: [Evidence; 2],
    launches: Launches,
    resources: Found<Resources>,
    uncompiled: Found<Resources>,
    tune: Tune,
    failure: Failure,
    kwargs: BTreeMap<String, Value>,
    lane: Lane,
}

impl Softmax {
    fn on_a_device() -> Self {
        let results = vec![
            result("v1_baseline", sample!("verdict_passed"), Found::Document(sample!("bench_v1"))),
            result("v2_tiling", sample!("verdict_rejected"), skipped("its check was rejected")),
            result("v3_inline", sample!("verdict_not_judged"), skipped("its check judged nothing")),
            result("v4_optimized", sample!("verdict_passed"), Found::Document(sample!("bench_v4"))),
        ];
        Self::of(results, Found::Document(sample!("baseline")), Lane::Device)
    }

    fn on_the_interpreter() -> Self {
        let results =
            vec![result("v1_baseline", sample!("verdict_passed"), Found::Document(sample!("bench_interpreter")))];
        Self {
            calibration: skipped("it is no part of this build"),
            ..Self::of(results, Found::Lost, Lane::Interpreter)
        }
    }

    fn of(results: Vec<VariantResult>, baseline: Found<Baseline>, lane: Lane) -> Self {
        let selection = Found::Document(select(&results, baseline.document(), lane));
        Self {
            results,
            calibration: Found::Document(sample!("calibration")),
            analysis: Found::Document(sample!("analysis")),
            baseline,
            selection,
            evidence: [sample!("evidence_passed"), sample!("evidence_rejected")],
            launches: sample!("launches"),
            resources: Found::Document(sample!("resources")),
            uncompiled: Found::Rejected { class: "compile-error".to_owned() },
            tune: sample!("tune"),
            failure: failure(
                &json!({"class": "compile-error", "message": "`y` is not defined", "place": {"file": "kernels/softmax/v3_inline.py", "line": 7, "column": null}}),
            ),
            kwargs: BTreeMap::from([("dim".to_owned(), json!(-1))]),
            lane,
        }
    }

    fn page(&self) -> OpPage<'_> {
        OpPage {
            op: "softmax",
            kwargs: &self.kwargs,
            precision: "ieee",
            calibration: &self.calibration,
            analysis: &self.analysis,
            analysis_failure: None,
            baseline: &self.baseline,
            lane: self.lane,
            selection: &self.selection,
            variants: self.results.iter().map(|result| self.variant(result)).collect(),
        }
    }

    fn variant<'a>(&'a self, result: &'a VariantResult) -> VariantPage<'a> {
        let page = VariantPage {
            result,
            file: "kernels/softmax/v1_baseline.py",
            docstring: Some(
                "Softmax, a row per program.\n\nMath. softmax(x)[i] = exp(x[i] - m) / s\n\n    s = sum_j exp(x[j] - m)",
            ),
            evidence: Some(&self.evidence[0]),
            launches: None,
            resources: &self.resources,
            tune: None,
            failures: BTreeMap::new(),
            attempts: &[],
            no_attempt: None,
            rounds: &[],
        };
        match result.name.as_str() {
            "v2_tiling" => {
                VariantPage { evidence: Some(&self.evidence[1]), file: "kernels/softmax/v2_tiling.py", ..page }
            }
            "v3_inline" => VariantPage {
                evidence: None,
                docstring: None,
                resources: &self.uncompiled,
                failures: BTreeMap::from([(Phase::Compile, &self.failure)]),
                ..page
            },
            "v4_optimized" => VariantPage { launches: Some(&self.launches), tune: Some(&self.tune), ..page },
            _ => page,
        }
    }
}

fn failure(told: &Value) -> Failure {
    exactly(told).unwrap()
}

fn shipped(path: &'static str, text: &'static str) -> Template<'static> {
    Template { path, text }
}

fn section<'a>(log: &'a str, from: &str, to: &str) -> &'a str {
    let start = log.find(from).unwrap_or_else(|| panic!("no {from} in {log}"));
    let length = log[start..].find(to).unwrap_or(log.len() - start);
    &log[start..start + length]
}

#[test]
fn the_log_of_an_op_holds_all_that_is_known() {
    let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), &Softmax::on_a_device().page()).unwrap();
    assert_eq!(log, include_str!("../../../../tests/it/samples/softmax_log.md"), "{log}");
}

#[test]
fn figures_of_a_backward_pass_are_named_and_have_no_rates_of_the_forward_pass() {
    let mut results = Softmax::on_a_device().results;
    for result in &mut results {
        if let Found::Document(bench) = &mut result.bench {
            bench.protocol.passes = Some(t2t_protocol::Passes::Backward);
        }
    }
    let mut baseline: Baseline = sample!("baseline");
    baseline.protocol.passes = Some(t2t_protocol::Passes::Backward);
    let softmax = Softmax::of(results, Found::Document(baseline), Lane::Device);
    let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), &softmax.page()).unwrap();
    assert!(log.contains("- Note: timed: the backward pass alone\n"), "{log}");
    assert!(log.contains("\nTimed is the backward pass alone, of torch as well."), "{log}");
    assert!(!log.contains("The ceiling is"), "{log}");
    let large = section(&log, "### Large", "\n### ");
    assert!(large.contains("| – | – | – | – |"), "{large}");
}

#[test]
fn the_korean_template_has_the_published_headings() {
    let softmax = Softmax::on_a_device();
    let log = log(shipped("assets/log_template_ko.md", LOG_TEMPLATE_KO), &softmax.page()).unwrap();
    let headings: Vec<&str> = log.lines().filter(|line| line.starts_with("# ") || line.starts_with("## ")).collect();
    assert_eq!(
        headings,
        [
            "# softmax 개발 로그",
            "## Phase 1: 자료 조사 및 분석",
            "## Phase 2: 커널 작성",
            "## Phase 3: 정확도 검증",
            "## Phase 3: 벤치마크 결과",
            "## Phase 4: 최적 커널",
            "## 체크리스트"
        ]
    );
    assert!(log.contains("| Kernel | Small (ms) | Medium (ms) | Large (ms) | Final (ms) | Speedup vs Torch |"));
}

#[test]
fn interpreter_times_stand_alone_under_their_name() {
    let softmax = Softmax::on_the_interpreter();
    let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), &softmax.page()).unwrap();
    assert_eq!(
        section(&log, "## Phase 3: Benchmark", "## Phase 4"),
        "## Phase 3: Benchmark\n\n\
         ### Triton's interpreter\n\n\
         Kernels ran in Triton's interpreter. How long it took for one call says nothing about a GPU and compares nothing.\n\n\
         | Kernel | Small, interpreter took (ms) | Medium, interpreter took (ms) | Large, interpreter took (ms) |\n\
         | --- | --- | --- | --- |\n\
         | v1_baseline | 12.50 | 44.00 | 180.0 |\n\n"
    );
    let chosen = section(&log, "## Phase 4", "## Checklist");
    assert!(chosen.contains("- First right kernel: **v1_baseline**\n"), "{chosen}");
    assert!(chosen.contains("- Note: not comparable: interpreter\n"), "{chosen}");
    let korean = super::log(shipped("assets/log_template_ko.md", LOG_TEMPLATE_KO), &softmax.page()).unwrap();
    assert!(korean.contains("| v1_baseline | 12.50 | 44.00 | 180.0 |\n"), "{korean}");
    for (text, words) in [(&log, ["peedup", "Final", "interval"]), (&korean, ["속도 향상", "Final", "구간"])] {
        for word in words {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_log_of_nothing_says_that_nothing_is_known() {
    let kwargs = BTreeMap::new();
    let failure =
        failure(&json!({"class": "TypeError", "message": "softmax() got an unexpected keyword", "size": "small"}));
    let source = Found::Rejected { class: "source".into() };
    let results = [VariantResult { name: "v1".into(), verdict: source, bench: Found::Lost }];
    let variant = VariantPage {
        result: &results[0],
        file: "kernels/softmax/v1.py",
        docstring: None,
        evidence: None,
        launches: None,
        resources: &Found::Lost,
        tune: None,
        failures: BTreeMap::new(),
        attempts: &[],
        no_attempt: None,
        rounds: &[],
    };
    let page = OpPage {
        op: "softmax",
        kwargs: &kwargs,
        precision: "ieee",
        lane: Lane::Device,
        calibration: &Found::Lost,
        analysis: &Found::Lost,
        analysis_failure: Some(&failure),
        baseline: &Found::Lost,
        selection: &Found::Lost,
        variants: vec![variant],
    };
    for (path, text) in [("log_template.md", LOG_TEMPLATE), ("log_template_ko.md", LOG_TEMPLATE_KO)] {
        let log = log(shipped(path, text), &page).unwrap();
        assert!(log.contains("error: softmax() got an unexpected keyword"), "{log}");
        assert!(log.contains("| v1 | ❌ rejected | 1 | 0/0 | – | – | – | – |"), "{log}");
        assert!(log.contains("### ❌ v1: source"), "{log}");
        assert_eq!(log.matches("- [x]").count(), 1, "{log}");
    }
    let empty = OpPage { variants: Vec::new(), analysis_failure: None, ..page };
    assert!(log(shipped("log_template.md", LOG_TEMPLATE), &empty).unwrap().contains("The analysis is not known."));
}

#[test]
fn where_the_device_was_not_calibrated_shares_are_not_known_and_the_reason_is_told() {
    let softmax = Softmax { calibration: Found::Lost, ..Softmax::on_a_device() };
    let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), &softmax.page()).unwrap();
    assert!(log.contains("| 1 % | 1.57x | 3339 | 2.09 | – | – | softmax_kernel: BLOCK_N=1024, num_warps=4 |"), "{log}");
    assert!(log.contains("What it does at most is not known: the machine failed.\n"), "{log}");
    assert!(!log.contains("The ceiling is"), "{log}");
}

#[test]
fn arithmetic_is_the_ceiling_where_it_takes_longer_in_the_declared_precision() {
    let mut softmax = Softmax::on_a_device();
    let Found::Document(analysis) = &mut softmax.analysis else { unreachable!() };
    analysis.sizes.get_mut("large").unwrap().flops = serde_json::Number::from_f64(2.06e12);
    let told = |page: &OpPage<'_>| {
        let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), page).unwrap();
        log.lines().find(|line| line.starts_with("The ceiling is arithmetic")).map(str::to_owned)
    };
    let ieee = told(&softmax.page()).unwrap();
    assert!(ieee.contains("2.06 T FLOPs take 40.16 ms at the 51.3 TFLOP/s of a float32 matrix product"), "{ieee}");
    let tf32 = told(&OpPage { precision: "tf32", ..softmax.page() }).unwrap();
    assert!(tf32.contains("at the 360 TFLOP/s of a tf32 matrix product"), "{tf32}");
}

#[test]
fn figures_of_a_dtype_that_the_analysis_did_not_count_have_no_rates() {
    let mut softmax = Softmax::on_a_device();
    let Found::Document(analysis) = &mut softmax.analysis else { unreachable!() };
    "float16".clone_into(&mut analysis.dtype);
    let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), &softmax.page()).unwrap();
    assert!(log.contains("| 1 % | 1.57x | – | – | – | – | softmax_kernel: BLOCK_N=1024, num_warps=4 |"), "{log}");
}

#[test]
fn sizes_of_other_names_stand_by_their_names_after_the_standard_ones() {
    let mut softmax = Softmax::on_a_device();
    let mut bench: Bench = sample!("bench_v4");
    let large = bench.sizes["large"].clone();
    let mut tall = large.clone();
    tall.binding = [("M".to_owned(), 2), ("N".to_owned(), 3)].into();
    tall.variant.as_mut().unwrap().mean = 1.5;
    bench.sizes = [("wide", large.clone()), ("large", large), ("a tall one", tall)]
        .map(|(name, size)| (name.to_owned(), size))
        .into();
    softmax.results = vec![result("v4", sample!("verdict_passed"), Found::Document(bench))];
    softmax.baseline = Found::Lost;
    let log = log(shipped("log_template.md", LOG_TEMPLATE), &softmax.page()).unwrap();
    assert!(
        log.contains("| Kernel | Large (ms) | a tall one (ms) | wide (ms) | Final (ms) | Speedup vs Torch |\n"),
        "{log}"
    );
    assert!(log.contains("| v4 | 0.04020 | 1.500 | 0.04020 | 0.01773 | 1.49x |\n"), "{log}");
}

fn sample_failure() -> Option<Failure> {
    let evidence: Evidence = sample!("evidence_rejected");
    evidence.failure
}

#[test]
fn a_problem_reads_like_every_message() {
    let problem = Problem::of("check", sample_failure().as_ref().unwrap());
    assert_eq!(
        problem.text("softmax/v2_tiling:check"),
        "error: kernels/softmax/v2_tiling.py:12:5: 16 of 256 elements differ (mismatch)\n   \
            |\n\
         12 |     tl.store(out_ptr + columns, x)\n   \
            |     ^\n  \
           case small/float32/0 of softmax/v2_tiling:check\n  \
           got 0.5, expected 0.25 at [0,3]\n  \
           at kernels/softmax/v2_tiling.py:40 in triton_softmax\n  \
           at kernels/softmax/v2_tiling.py:12 in softmax_kernel\n\
         hint: is the last tile masked?\n\
         alone: t2t repro softmax/v2_tiling small/float32/0"
    );
    let mut odd = problem.clone();
    odd.case = Some("edge/at-block[N=128]/float32".to_owned());
    odd.given = Some("edge case: input float32[2, 128]".to_owned());
    let told = odd.text("softmax/v2_tiling:check");
    assert!(told.contains(":check\n  edge case: input float32[2, 128]\n  got 0.5"), "{told}");
    assert!(told.ends_with("\nalone: t2t repro softmax/v2_tiling 'edge/at-block[N=128]/float32'"), "{told}");
    let bare = Problem::of("check", &Failure::new("timeout", "no end after 120 s"));
    assert_eq!(bare.text("mha/v1:check"), "error: mha/v1:check: no end after 120 s (timeout)");
}
