//! What two sides come to, of documents written by hand.

use t2t_protocol::Run;
use t2t_protocol::read::exactly;

use super::*;

/// Returns the bench of a variant whose runs at each size scatter by 0.2 % around these times.
fn bench(sizes: &[(&str, u64, f64)]) -> Bench {
    let figure = |ms: f64| {
        let runs = [0.998, 0.999, 1.0, 1.001, 1.002].map(|part| run(ms * part));
        json!({"mean": ms, "median": ms, "p20": ms, "p80": ms, "cv": 0.0, "runs": runs})
    };
    let sizes = sizes.iter().map(|(name, dim, ms)| {
        let size = json!({"binding": {"M": dim}, "dtype": "float32", "variant": figure(*ms), "torch": figure(2.0)});
        ((*name).to_owned(), size)
    });
    let sizes: serde_json::Map<String, Value> = sizes.collect();
    exactly(&json!({"clock": "cuda-events", "unstable": false, "sizes": sizes})).unwrap()
}

fn run(ms: f64) -> Run {
    Run { mean: ms, median: ms, p20: ms, p80: ms }
}

/// Returns the figure of the variant at a size.
fn own<'a>(bench: &'a mut Bench, size: &str) -> &'a mut Figure {
    bench.sizes.get_mut(size).unwrap().variant.as_mut().unwrap()
}

fn side(chosen: Option<&str>, benches: &[(&str, Bench)]) -> Side {
    let benches = benches.iter().map(|(name, bench)| ((*name).to_owned(), bench.clone())).collect();
    let measurements = Measurements { chosen: chosen.map(str::to_owned), benches };
    Side { name: "a side".to_owned(), ops: [("softmax".to_owned(), measurements)].into() }
}

/// Compares one variant that takes `a` ms with one that takes `b` ms.
fn row(a: f64, b: f64) -> Row {
    let of = |ms| side(None, &[("v1", bench(&[("small", 8, ms)]))]);
    compare(&of(a), &of(b), 0.05).rows.remove(0)
}

#[test]
fn above_one_b_is_faster_and_within_noise_they_are_the_same() {
    for (a, b, expected) in [
        (1.0, 0.5, Verdict::Faster),
        (1.0, 2.0, Verdict::Slower),
        (1.0, 1.0, Verdict::Same),
        (1.0, 1.009, Verdict::Same),
        (1.0, 1.02, Verdict::Slower),
        (1.02, 1.0, Verdict::Faster),
    ] {
        let row = row(a, b);
        assert_eq!(row.verdict, expected, "{a} {b}");
        assert!((row.ratio - a / b).abs() < 1e-12);
        assert_eq!(row.torch, Some(1.0));
    }
}

#[test]
fn a_difference_that_the_scatter_explains_is_none() {
    let mut wide = bench(&[("small", 8, 1.0)]);
    let figure = own(&mut wide, "small");
    (figure.mean, figure.runs) = (1.1, [0.6, 1.6, 1.1].map(run).into());
    let compared = compare(&side(None, &[("v1", bench(&[("small", 8, 1.0)]))]), &side(None, &[("v1", wide)]), 0.05);
    assert_eq!((compared.rows[0].verdict, compared.regressions()), (Verdict::Same, 0));
}

#[test]
fn a_regression_lies_beyond_the_threshold_with_its_whole_interval() {
    assert!(!row(1.0, 1.04).is_regression);
    assert!(!row(1.0, 1.0505).is_regression, "its interval reaches the threshold");
    assert!(row(1.0, 1.06).is_regression);
    assert!(!row(1.06, 1.0).is_regression);
}

#[test]
fn what_is_unstable_is_neither_faster_nor_a_regression() {
    let mut shaken = bench(&[("small", 8, 3.0)]);
    shaken.unstable = Some(true);
    let compared = compare(&side(None, &[("v1", bench(&[("small", 8, 1.0)]))]), &side(None, &[("v1", shaken)]), 0.05);
    assert_eq!((compared.rows[0].verdict, compared.regressions()), (Verdict::Unstable, 0));
}

#[test]
fn what_is_the_hosts_is_no_regression() {
    let mut behind = bench(&[("small", 8, 3.0)]);
    let figure = own(&mut behind, "small");
    (figure.p20, figure.p80) = (2.5, 3.5);
    let compared = compare(&side(None, &[("v1", bench(&[("small", 8, 1.0)]))]), &side(None, &[("v1", behind)]), 0.05);
    assert_eq!((compared.rows[0].verdict, compared.regressions()), (Verdict::Unstable, 0));
}

#[test]
fn an_unstable_small_size_does_not_shake_the_final() {
    let of = |small: f64, large: f64, shaken: &str| {
        let mut bench = bench(&[("large", 64, large), ("small", 8, small)]);
        bench.unstable = Some(true);
        own(&mut bench, shaken).cv = 0.2;
        side(None, &[("v1", bench)])
    };
    let verdicts = |shaken: &str| -> Vec<Verdict> {
        compare(&of(1.0, 100.0, shaken), &of(1.5, 150.0, shaken), 0.05).rows.iter().map(|row| row.verdict).collect()
    };
    assert_eq!(verdicts("small"), [Verdict::Unstable, Verdict::Slower, Verdict::Slower]);
    assert_eq!(verdicts("large"), [Verdict::Slower, Verdict::Unstable, Verdict::Unstable]);
}

#[test]
fn one_run_a_size_says_nothing_of_a_difference() {
    let once = |ms: f64| {
        let mut bench = bench(&[("small", 8, ms)]);
        own(&mut bench, "small").runs = vec![run(ms)];
        side(None, &[("v1", bench)])
    };
    let verdict = |a, b| compare(&once(a), &once(b), 0.05).rows[0].verdict;
    assert_eq!((verdict(1.0, 2.0), verdict(1.0, 1.0)), (Verdict::Unstable, Verdict::Same));
}

#[test]
fn sizes_come_from_small_to_large_and_their_mean_last() {
    let sizes = [("large", 4096, 8.0), ("medium", 1024, 4.0), ("small", 256, 3.0)];
    let compared = compare(&side(None, &[("v1", bench(&sizes))]), &side(None, &[("v1", bench(&sizes))]), 0.05);
    let told: Vec<(&str, f64)> = compared.rows.iter().map(|row| (row.size.as_str(), row.ms[0])).collect();
    assert_eq!(told, [("small", 3.0), ("medium", 4.0), ("large", 8.0), (FINAL, 5.0)]);
}

#[test]
fn sizes_of_another_binding_or_clock_are_not_compared() {
    let a = side(None, &[("v1", bench(&[("large", 4096, 8.0), ("small", 256, 3.0)]))]);
    let b = side(None, &[("v1", bench(&[("large", 8192, 8.0), ("small", 256, 3.0)]))]);
    let compared = compare(&a, &b, 0.05);
    let told: Vec<&str> = compared.rows.iter().map(|row| row.size.as_str()).collect();
    assert_eq!(told, ["small"], "and no Final of unlike sizes");
    let why = r#"the binding is {"M":4096} and {"M":8192}"#.to_owned();
    assert_eq!(compared.incomparable, [("softmax/v1 at large".to_owned(), why)]);
    let mut host = bench(&[("small", 256, 3.0)]);
    "host".clone_into(&mut host.clock);
    let compared = compare(&a, &side(None, &[("v1", host)]), 0.05);
    assert_eq!((compared.rows.len(), compared.incomparable.len()), (0, 1));
}

#[test]
fn what_one_side_lacks_is_listed() {
    let one = bench(&[("small", 8, 1.0)]);
    let two = bench(&[("huge", 64, 9.0), ("small", 8, 1.0)]);
    let mut a = side(None, &[("v1", one.clone()), ("v2", one.clone())]);
    let mut b = side(None, &[("v1", two), ("v3", one)]);
    a.ops.insert("add".to_owned(), Measurements::default());
    b.ops.insert("gelu".to_owned(), Measurements::default());
    let compared = compare(&a, &b, 0.05);
    assert_eq!(compared.only[0], ["add", "softmax/v2"]);
    assert_eq!(compared.only[1], ["gelu", "softmax/v1 at huge", "softmax/v3"]);
}

#[test]
fn selected_variants_that_differ_are_a_row_of_their_own() {
    let [slow, fast] = [2.0, 1.0].map(|ms| bench(&[("small", 8, ms)]));
    let a = side(Some("v1"), &[("v1", slow.clone()), ("v2", slow.clone())]);
    let b = side(Some("v2"), &[("v1", slow), ("v2", fast)]);
    let compared = compare(&a, &b, 0.05);
    let told = compared.rows.iter().map(|row| (row.variants.join(" → "), row.selected, row.verdict));
    let expected = [
        ("v1 → v1".to_owned(), false, Verdict::Same),
        ("v2 → v2".to_owned(), false, Verdict::Faster),
        ("v1 → v2".to_owned(), true, Verdict::Faster),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn two_single_benches_are_compared_whatever_their_variants() {
    let a = side(None, &[("v1", bench(&[("small", 8, 2.0)]))]);
    let b = side(None, &[("v4", bench(&[("small", 8, 1.0)]))]);
    let compared = compare(&a, &b, 0.05);
    assert_eq!((compared.rows.len(), compared.rows[0].verdict), (1, Verdict::Faster));
    assert_eq!(compared.only, [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn the_document_has_every_figure() {
    let document = compare(
        &side(Some("v1"), &[("v1", bench(&[("small", 8, 1.0)]))]),
        &side(Some("v1"), &[("v1", bench(&[("small", 8, 2.0)]))]),
        0.05,
    )
    .document();
    let row = &document["rows"][0];
    assert_eq!((&row["ratio"], &row["verdict"], &row["regression"]), (&json!(0.5), &json!("slower"), &json!(true)));
    assert_eq!((&row["a_ms"], &row["b_ms"], &row["selected"]), (&json!(1.0), &json!(2.0), &json!(true)));
    assert_eq!((&document["regressions"], &document["threshold"]), (&json!(1), &json!(0.05)));
}

#[test]
fn benches_of_other_passes_are_not_compared() {
    let mut backward = bench(&[("small", 8, 1.0)]);
    backward.protocol.passes = Some(t2t_protocol::Passes::Backward);
    let forward = bench(&[("small", 8, 1.0)]);
    let found = compare(&side(None, &[("v1", backward.clone())]), &side(None, &[("v1", forward)]), 0.05);
    let why = "what was timed is the backward pass alone and the forward pass".to_owned();
    assert_eq!((found.rows.len(), found.incomparable), (0, vec![("softmax/v1".to_owned(), why)]));
    let same = compare(&side(None, &[("v1", backward.clone())]), &side(None, &[("v1", backward)]), 0.05);
    assert_eq!(same.rows.len(), 1);
}
