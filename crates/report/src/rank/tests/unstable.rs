//! Figures that cannot be relied on, and what they decide.
//!
//! It does not know how figures are measured.

use super::*;

#[test]
fn an_unstable_variant_ties_by_its_fastest_runs_and_is_not_chosen() {
    let of = |slow: (f64, f64), fast: (f64, f64)| {
        let bench = |(ms, spread)| bench("cuda-events", ms, spread);
        let found = select(&[variant("v1", "passed", bench(slow)), variant("v2", "passed", bench(fast))], None);
        (found["chosen"].as_str().unwrap().to_owned(), found["ties"].clone())
    };
    let named = |chosen: &str, ties: Value| (chosen.to_owned(), ties);
    // The fastest of its runs took 0.32.
    assert_eq!(of((0.8, 0.6), (0.5, 0.01)), named("v2", json!(["v1"])));
    assert_eq!(of((0.8, 0.6), (0.5, 0.06)), named("v2", json!(["v1"])), "nor where the other is unstable as well");
    assert_eq!(of((0.8, 0.2), (0.5, 0.01)), named("v2", json!([])), "its fastest took 0.64");
    assert_eq!(of((0.8, 0.04), (0.5, 0.01)), named("v2", json!([])), "what is stable is what it is");
    // The interval holds 1 anyway.
    assert_eq!(of((0.502, 0.1), (0.5, 0.02)), named("v2", json!(["v1"])), "a stable one is chosen");
    assert_eq!(of((0.502, 0.1), (0.5, 0.1)), named("v1", json!(["v2"])), "none is stable");
    assert_eq!(of((0.5, 0.1), (0.502, 0.02)), named("v2", json!(["v1"])), "however simple the other is");
    let benches = [bench("cuda-events", 0.5, 0.1), bench("cuda-events", 0.502, 0.02)];
    let [first, second] = benches.map(|bench| variant("v", "passed", bench));
    let why = select(&[first, VariantResult { name: "w".to_owned(), ..second }], None)["why"].to_string();
    assert!(why.contains("`w` ties with `v`") && why.contains("of two that tie the stable one is chosen"), "{why}");
}

#[test]
fn an_unstable_bench_is_marked() {
    let found = select(&[variant("v1", "passed", bench("cuda-events", 1.0, 0.2))], None);
    assert_eq!(found["figures"]["unstable"], true);
    assert_eq!(found["figures"]["why_unstable"], "coefficient of variation above 5 %");
}

#[test]
fn a_figure_for_which_the_host_was_behind_is_unstable_however_well_its_runs_agree() {
    let figures = |bench: Found<Bench>| select(&[variant("v1", "passed", bench)], None)["figures"].clone();
    for (who, told) in [("variant", "variant 43 %, torch 18 %"), ("torch", "variant 10 %, torch 43 %")] {
        let found = figures(spread("cuda-events", who, 1.43));
        let why = format!("large: the host was behind the device (p20 to p80 of a run: {told})");
        assert_eq!((&found["unstable"], &found["why_unstable"]), (&json!(true), &json!(why)));
        assert_eq!(found["sizes"]["large"]["unstable"], true);
    }
    for bench in [spread("cuda-events", "variant", 1.2), spread("host", "variant", 1.43)] {
        let found = figures(bench);
        assert_eq!((&found["unstable"], &found["why_unstable"]), (&json!(false), &Value::Null));
        assert_eq!(found["sizes"]["large"]["unstable"], false);
    }
}

#[test]
fn what_the_bench_says_of_its_figures_comes_before_what_is_seen_in_them() {
    let Found::Document(mut bench) = spread("cuda-events", "variant", 1.43) else { unreachable!("it is made so") };
    (bench.unstable, bench.why_unstable) = (Some(true), Some(Some("the GPU was slowed down".to_owned())));
    let found = select(&[variant("v1", "passed", Found::Document(bench))], None);
    let why = found["figures"]["why_unstable"].as_str().unwrap();
    assert!(why.starts_with("the GPU was slowed down; large: the host was behind the device"), "{why}");
}
