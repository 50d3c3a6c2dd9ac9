//! The rule on figures made by hand.

use serde_json::{Value, json};
use t2t_protocol::read::exactly;
use t2t_protocol::{CaseVerdict, Figure, Run};

use super::*;

mod unstable;

fn select(variants: &[VariantResult], baseline: Option<&Baseline>) -> Value {
    json!(super::select(variants, baseline, Lane::Device))
}

fn select_interpreted(variants: &[VariantResult]) -> Value {
    json!(super::select(variants, None, Lane::Interpreter))
}

/// A figure whose runs are `center`, a little less and a little more: `spread` is the share.
fn figure(center: f64, spread: f64) -> Figure {
    let shares = [-1.0, 1.0, -0.5, 0.5, -0.25, 0.25, -0.75, 0.75, 0.0, 0.0];
    of_runs(center, spread, shares.iter().map(|share| center * (1.0 + share * spread)))
}

/// A figure of these runs.
fn of_runs(center: f64, cv: f64, runs: impl Iterator<Item = f64>) -> Figure {
    let run = |ms| Run { mean: ms, median: ms, p20: ms, p80: ms };
    let Run { mean, median, p20, p80 } = run(center);
    Figure {
        runs: runs.map(run).collect(),
        mean,
        median,
        p20,
        p80,
        cv,
        repeated: 0,
        within: None,
        host_us: None,
        hidden_us: None,
    }
}

fn bench(clock: &str, ms: f64, spread: f64) -> Found<Bench> {
    let torch = 1.2;
    let size = json!({"variant": figure(ms, spread), "torch": figure(torch, 0.001)});
    judged(json!({
        "clock": clock, "device": {"model": "nvidia-h200"}, "sizes": {"large": size},
        "final_ms": ms, "torch_final_ms": torch, "speedup": torch / ms, "geomean_speedup": torch / ms,
        "unstable": spread > 0.05, "why_unstable": (spread > 0.05).then_some("coefficient of variation above 5 %"),
    }))
}

/// A document `bench` in which the timed calls of every size were right.
fn judged(mut bench: Value) -> Found<Bench> {
    let sizes: Vec<String> = bench["sizes"].as_object().unwrap().keys().cloned().collect();
    bench["judged"] = sizes.into_iter().map(|size| (size, json!({"run": 3, "verdict": "passed"}))).collect();
    Found::Document(exactly(&bench).unwrap())
}

fn verdict(verdict: &str) -> Found<Verdict> {
    read(&json!({"verdict": verdict, "class": (verdict == "rejected").then_some("mismatch"), "reason": null,
        "cases": {"small/float32/0": verdict, "small/float32/1": "passed"}}))
}

fn read(verdict: &Value) -> Found<Verdict> {
    Found::Document(exactly(verdict).unwrap())
}

fn variant(name: &str, judged: &str, bench: Found<Bench>) -> VariantResult {
    VariantResult { name: name.to_owned(), verdict: verdict(judged), bench }
}

fn skipped<T>() -> Found<T> {
    Found::Skipped { reason: "its check was rejected".to_owned() }
}

#[test]
fn the_fastest_that_passed_is_chosen() {
    let found = select(
        &[
            variant("v1", "passed", bench("cuda-events", 1.0, 0.01)),
            variant("v2", "passed", bench("cuda-events", 0.5, 0.01)),
            variant("v3", "rejected", skipped()),
        ],
        None,
    );
    assert_eq!(found["chosen"], "v2");
    assert_eq!(found["why"], "`v2` has the lowest Final, 0.5000 ms; next is `v1`, which takes 2.00x as long");
    assert_eq!(found["ties"], json!([]));
    assert_eq!(found["success"], true);
    assert_eq!(found["against_torch"], "faster");
    assert_eq!(found["figures"]["sizes"]["large"]["speedup"], 2.4);
    assert_eq!(found["counts"]["passed"], 2);
    assert_eq!(found["variants"][2]["mark"], "❌");
    assert_eq!(found["variants"][2]["cases"], json!({"passed": 1, "rejected": 1}));
}

#[test]
fn what_torch_computed_for_a_variant_is_told() {
    let allowed = json!({"verdict": "passed", "cases": {}, "allowed": ["sum"]});
    let helped = VariantResult { verdict: read(&allowed), ..variant("v1", "passed", bench("host", 1.0, 0.0)) };
    let found = select(&[helped, variant("v2", "passed", bench("host", 1.0, 0.0))], None);
    assert_eq!((&found["variants"][0]["allowed"], &found["variants"][1]["allowed"]), (&json!(["sum"]), &json!([])));
}

#[test]
fn attempts_are_the_records_of_the_check() {
    let unreached = VariantResult { name: "v2".to_owned(), verdict: skipped(), bench: skipped() };
    let lost = VariantResult { name: "v3".to_owned(), verdict: Found::Lost, bench: skipped() };
    let found = select(&[variant("v1", "rejected", skipped()), unreached, lost], None);
    let attempts = found["variants"].as_array().unwrap().iter().map(|variant| variant["attempts"].as_u64().unwrap());
    assert_eq!(attempts.collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn the_earlier_of_two_that_tie_is_chosen() {
    let found = select(
        &[
            variant("v1", "passed", bench("cuda-events", 0.502, 0.02)),
            variant("v2", "passed", bench("cuda-events", 0.8, 0.02)),
            variant("v3", "passed", bench("cuda-events", 0.5, 0.02)),
        ],
        None,
    );
    assert_eq!(found["chosen"], "v1");
    assert_eq!(found["fastest"], "v3");
    assert_eq!(found["ties"], json!(["v3"]));
    let why = found["why"].as_str().unwrap();
    assert!(why.starts_with("`v1` ties with `v3`, the lowest Final: the 95 % interval of their ratio, 0.99"), "{why}");
}

#[test]
fn a_later_variant_that_ties_is_named_and_not_chosen() {
    let found = select(
        &[
            variant("v1", "passed", bench("cuda-events", 0.5, 0.02)),
            variant("v2", "passed", bench("cuda-events", 0.502, 0.02)),
        ],
        None,
    );
    assert_eq!((&found["chosen"], &found["ties"]), (&json!("v1"), &json!(["v2"])));
}

#[test]
fn a_difference_beyond_the_scatter_is_no_tie_however_small() {
    let found = select(
        &[
            variant("v1", "passed", bench("cuda-events", 0.502, 0.0001)),
            variant("v2", "passed", bench("cuda-events", 0.5, 0.0001)),
        ],
        None,
    );
    assert_eq!((&found["chosen"], &found["ties"]), (&json!("v2"), &json!([])));
}

#[test]
fn a_rejected_variant_is_never_chosen_however_fast() {
    let found = select(
        &[
            variant("v1", "passed", bench("cuda-events", 2.0, 0.01)),
            variant("v2", "rejected", bench("cuda-events", 0.1, 0.01)),
        ],
        None,
    );
    assert_eq!(found["chosen"], "v1");
    assert_eq!((&found["success"], &found["against_torch"]), (&json!(false), &json!("slower")));
    assert!(found["why"].as_str().unwrap().ends_with("it is the only variant that passed and was measured"));
}

#[test]
fn a_speedup_whose_interval_reaches_one_is_a_success_and_a_tie() {
    let found = select(&[variant("v1", "passed", bench("cuda-events", 1.201, 0.04))], None);
    assert!(found["figures"]["speedup"].as_f64().unwrap() < 1.0);
    assert_eq!((&found["success"], &found["against_torch"]), (&json!(true), &json!("ties")));
}

#[test]
fn interpreter_timings_choose_the_earliest_that_passed_and_are_no_success() {
    let times = |ms: f64| judged(json!({"clock": "host", "sizes": {"small": {"interpreter_ms": ms}}}));
    let found = select_interpreted(&[
        variant("v1", "rejected", skipped()),
        variant("v2", "passed", times(1.0)),
        variant("v3", "passed", times(0.1)),
    ]);
    assert_eq!(found["chosen"], "v2");
    assert_eq!((&found["interpreter_ms"], &found["figures"]), (&json!({"small": 1.0}), &Value::Null));
    // Whatever a document says: what is no device's has no figures.
    let figures = select_interpreted(&[variant("v1", "passed", bench("host", 1.0, 0.01))]);
    assert_eq!((&figures["figures"], &figures["variants"][0]["figures"]), (&Value::Null, &Value::Null));
    assert_eq!(found["note"], "not comparable: interpreter");
    assert_eq!((&found["success"], &found["comparable"]), (&json!(false), &json!(false)));
    assert_eq!((&found["fastest"], &found["against_torch"]), (&Value::Null, &Value::Null));
}

#[test]
fn where_none_passed_none_is_chosen_and_the_reason_is_told() {
    let rejected = select(&[variant("v1", "rejected", skipped())], None);
    assert_eq!((&rejected["chosen"], &rejected["why"]), (&Value::Null, &json!("no variant passed")));
    let unjudged = select(&[variant("v1", "not-judged", skipped())], None);
    assert_eq!((&unjudged["why"], &unjudged["variants"][0]["mark"]), (&json!("no variant was judged"), &json!("⏭")));
    let lost = select(&[variant("v1", "passed", Found::Lost)], None);
    assert_eq!(lost["why"], "none of the variants that passed was measured");
    assert_eq!(select(&[], None)["success"], false);
}

#[test]
fn a_bench_that_finds_a_wrong_output_rejects_the_variant() {
    let found = select(&[variant("v1", "passed", Found::Rejected { class: "mismatch".to_owned() })], None);
    let told = &found["variants"][0];
    assert_eq!((&told["status"], &told["reason"]), (&json!("rejected"), &json!("while it was measured")));
    assert_eq!(found["why"], "no variant passed");
}

#[test]
fn a_single_run_tells_nothing_apart() {
    let one = |ms: f64| {
        let sizes = json!({"s": {"variant": of_runs(ms, 0.0, [ms].into_iter())}});
        judged(json!({"clock": "cuda-events", "final_ms": ms, "sizes": sizes}))
    };
    let found = select(&[variant("v1", "passed", one(2.0)), variant("v2", "passed", one(1.0))], None);
    assert_eq!(found["chosen"], "v1");
    assert!(found["why"].as_str().unwrap().contains("one run a size tells nothing apart"));
    assert_eq!(found["figures"]["sizes"]["s"]["speedup"], Value::Null);
}

/// A bench whose runs agree to 1 %, and of each 80 of 100 calls take at most so many times as long as 20.
fn spread(clock: &str, who: &str, times: f64) -> Found<Bench> {
    let Found::Document(mut bench) = bench(clock, 1.0, 0.01) else { unreachable!("it is made so") };
    for (subject, times) in [("variant", 1.1), ("torch", 1.18), (who, times)] {
        let large = bench.sizes.get_mut("large").unwrap();
        let figure = if subject == "torch" { &mut large.torch } else { &mut large.variant };
        let figure = figure.as_mut().unwrap();
        (figure.p20, figure.p80) = (1.0, times);
    }
    Found::Document(bench)
}

#[test]
fn equal_documents_give_equal_bytes() {
    let variants = [
        variant("v1", "passed", bench("cuda-events", 0.502, 0.02)),
        variant("v2", "passed", bench("cuda-events", 0.5, 0.02)),
    ];
    assert_eq!(select(&variants, None).to_string(), select(&variants, None).to_string());
}

/// A bench of two sizes whose figures at `small` and `large` scatter by `spread`.
fn two_sizes(small: f64, large: f64, spread: [f64; 2], unstable: bool) -> Found<Bench> {
    let size = |ms: f64, spread: f64| json!({"variant": figure(ms, spread), "torch": figure(1.2, 0.001)});
    judged(json!({
        "clock": "cuda-events", "sizes": {"small": size(small, spread[0]), "large": size(large, spread[1])},
        "final_ms": f64::midpoint(small, large), "torch_final_ms": 1.2, "unstable": unstable,
    }))
}

#[test]
fn what_a_variant_brings_is_told_against_the_first_declared_one_size_by_size() {
    let found = select(
        &[
            variant("v1", "passed", two_sizes(0.2, 1.0, [0.01, 0.01], false)),
            variant("v2", "passed", two_sizes(0.1, 2.0, [0.01, 0.2], true)),
            variant("v3", "rejected", two_sizes(0.1, 0.1, [0.01, 0.01], false)),
        ],
        None,
    );
    let against = &found["against"];
    assert_eq!((&against["base"], against["variants"].as_array().unwrap().len()), (&json!("v1"), 1));
    let sizes = &against["variants"][0]["sizes"];
    assert_eq!((&sizes["small"]["ratio"], &sizes["large"]["ratio"]), (&json!(2.0), &json!(0.5)));
    assert_eq!((&sizes["small"]["unstable"], &sizes["large"]["unstable"]), (&json!(false), &json!(true)));
    let low = sizes["small"]["interval"][0].as_f64().unwrap();
    assert!((1.97..2.0).contains(&low), "{low}");
    let whole = &against["variants"][0]["final"];
    assert!((whole["ratio"].as_f64().unwrap() - 0.6 / 1.05).abs() < 1e-12, "{whole}");
    assert_eq!(whole["unstable"], true);
}

#[test]
fn a_disturbed_bench_is_unstable_at_every_size_and_a_varied_one_where_it_varies() {
    let figures = |bench: Found<Bench>| select(&[variant("v1", "passed", bench)], None)["figures"]["sizes"].clone();
    let unstable = |sizes: &Value| [sizes["small"]["unstable"] == true, sizes["large"]["unstable"] == true];
    assert_eq!(unstable(&figures(two_sizes(1.0, 1.0, [0.01, 0.01], true))), [true, true]);
    assert_eq!(unstable(&figures(two_sizes(1.0, 1.0, [0.2, 0.01], true))), [true, false]);
    assert_eq!(unstable(&figures(two_sizes(1.0, 1.0, [0.01, 0.01], false))), [false, false]);
}

#[test]
fn there_is_nothing_to_hold_others_against_where_the_first_was_not_measured() {
    let others = || [variant("v2", "passed", bench("cuda-events", 1.0, 0.01))];
    let found = select(&[[variant("v1", "rejected", skipped())].as_slice(), &others()].concat(), None);
    assert_eq!(found["against"], json!({"base": "v1", "variants": []}));
    assert_eq!(select(&others(), None)["against"], Value::Null);
    let interpreted = ["v1", "v2"].map(|name| variant(name, "passed", bench("host", 1.0, 0.01)));
    assert_eq!(select_interpreted(&interpreted)["against"], Value::Null);
}

#[test]
fn a_size_at_which_no_timed_call_was_judged_right_leaves_no_figure() {
    for verdict in [CaseVerdict::Rejected, CaseVerdict::NotJudged] {
        let Found::Document(mut fastest) = bench("cuda-events", 0.1, 0.001) else { unreachable!() };
        fastest.judged.as_mut().unwrap().get_mut("large").unwrap().verdict = verdict;
        let variants = [
            variant("v1", "passed", bench("cuda-events", 1.0, 0.001)),
            variant("v2", "passed", Found::Document(fastest)),
        ];
        let found = select(&variants, None);
        assert_eq!((&found["chosen"], &found["variants"][1]["figures"]), (&json!("v1"), &Value::Null), "{verdict:?}");
    }
}

#[test]
fn a_variant_beside_which_torch_is_slow_is_not_relied_on() {
    let alone = |ms: f64| -> Baseline {
        exactly(&json!({"sizes": {"large": {"torch": of_runs(ms, 0.0, [].into_iter())}}})).unwrap()
    };
    let with_median = |ms: f64, torch: f64| {
        let Found::Document(mut document) = bench("cuda-events", ms, 0.001) else { unreachable!() };
        document.sizes.get_mut("large").unwrap().torch.as_mut().unwrap().median = torch;
        Found::Document(document)
    };
    let variants = [
        variant("v1", "passed", with_median(1.0, 1.2)),
        // As fast as v1, beside a torch that its module slowed down.
        variant("v2", "passed", with_median(0.9999, 8.0)),
    ];
    let found = select(&variants, Some(&alone(1.2)));
    let told = &found["variants"][1]["figures"];
    assert_eq!(told["unstable"], true, "{told}");
    assert_eq!(told["why_unstable"], "large: torch took 6.7 times as long beside it as alone");
    assert_eq!((&found["variants"][0]["figures"]["unstable"], &found["chosen"]), (&json!(false), &json!("v1")));
    assert_eq!(select(&variants, Some(&alone(7.0)))["variants"][1]["figures"]["unstable"], false);
}

#[test]
fn figures_with_which_measuring_ended_are_compared_by_their_intervals() {
    let within = |ms: f64, share: f64| {
        let Found::Document(mut bench) = bench("cuda-events", ms, 0.001) else { unreachable!() };
        for size in bench.sizes.values_mut() {
            for figure in [&mut size.variant, &mut size.torch].into_iter().flatten() {
                figure.within = Some(share * figure.mean);
            }
        }
        Found::Document(bench)
    };
    let of = |share: f64| {
        let variants = [variant("v1", "passed", within(0.51, share)), variant("v2", "passed", within(0.5, share))];
        select(&variants, None)
    };
    let apart = of(0.005);
    assert_eq!((&apart["chosen"], &apart["ties"]), (&json!("v2"), &json!([])));
    let tied = of(0.012);
    assert_eq!((&tied["chosen"], &tied["ties"]), (&json!("v1"), &json!(["v2"])));
    let why = tied["why"].as_str().unwrap();
    assert!(why.starts_with("`v1` ties with `v2`, the lowest Final: the 95 % interval of their ratio, 0.99"), "{why}");
    let [low, high] = [0, 1].map(|at| tied["figures"]["interval"][at].as_f64().unwrap());
    assert!((low - 1.2 * 0.988 / (0.51 * 1.012)).abs() < 1e-9 && (high - 1.2 * 1.012 / (0.51 * 0.988)).abs() < 1e-9);
}
