//! The summary of a build, as a page and as a table on a terminal.
//!
//! It does not know logs.

use super::*;

/// The summary template of a workspace that has none of its own.
const SUMMARY_TEMPLATE: &str = include_str!("../../../../../assets/summary_template.md");

#[test]
fn the_summary_counts_what_was_judged_and_compares_what_can_be() {
    let (softmax, unjudged) = (Softmax::on_a_device(), Found::Document(select(&[], None, Lane::Device)));
    let ops = [("add", &unjudged), ("gelu", &Found::Lost), ("softmax", &softmax.selection)];
    let ops = ops.map(|(op, found)| OpSummary::of(op, found));
    let page = BuildPage {
        ops: ops.iter().collect(),
        files: vec!["logs/softmax_log.md".to_owned()],
        calibration: &softmax.calibration,
        wall: Duration::from_secs(200),
        device: Duration::from_millis(1_500),
    };
    assert_eq!(
        summary(shipped("assets/summary_template.md", SUMMARY_TEMPLATE), &page).unwrap(),
        "# Summary\n\n\
         | Operation | Best kernel | Final (ms) | Torch (ms) | Speedup vs Torch | Geomean | Correct | Note |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n\
         | [add](add_log.md) | none | – | – | – | – | 0/0 | no variant was judged |\n\
         | [gelu](gelu_log.md) | none | – | – | – | – | 0/0 | the machine failed |\n\
         | [softmax](softmax_log.md) | v4_optimized | 0.01773 | 0.02650 | 1.49x | 1.37x | 2/3 |  |\n\n\
         | | |\n\
         | --- | --- |\n\
         | Mean speedup | 1.49x |\n\
         | Geometric-mean speedup | 1.49x |\n\
         | Success rate, operations at least as fast as torch | 100 % (1 of 1) |\n\
         | Success rate, kernels correct | 66.7 % (2 of 3) |\n\
         | Not judged, counted in no rate | 1 |\n\
         | Skipped | 0 |\n\
         | Files made | 1 |\n\
         | Time of all actions | 3 min 20 s |\n\
         | Time on a device | 1.5 s |\n\
         | The device's copy of 1 GiB, read and written | 4247 GB/s |\n\
         | The device's matrix product, bfloat16 | 701 TFLOP/s |\n\
         | The device's matrix product, float16 | 670 TFLOP/s |\n\
         | The device's matrix product, float32 | 51.3 TFLOP/s |\n\
         | The device's matrix product, float64 | – TFLOP/s |\n\
         | The device's matrix product, tf32 | 360 TFLOP/s |\n\n\
         ## Files made\n\n\
         - `logs/softmax_log.md`\n"
    );
}

#[test]
fn a_summary_of_the_interpreter_compares_nothing() {
    let softmax = Softmax::on_the_interpreter();
    let op = OpSummary::of("softmax", &softmax.selection);
    let page = BuildPage {
        ops: vec![&op],
        files: vec![],
        calibration: &Found::Lost,
        wall: Duration::ZERO,
        device: Duration::ZERO,
    };
    let summary = summary(shipped("assets/summary_template.md", SUMMARY_TEMPLATE), &page).unwrap();
    assert!(summary.contains("How long it took says nothing about a GPU and compares nothing.\n"), "{summary}");
    assert!(summary.contains("| [softmax](softmax_log.md) | v1_baseline | 1/1 |  |\n"), "{summary}");
    assert!(summary.contains("| softmax | v1_baseline | 236 ms |\n"), "{summary}");
    assert!(!summary.contains("peedup") && !summary.contains("orch"), "{summary}");
    assert!(summary.contains("| Success rate, kernels correct | 100 % (1 of 1) |"), "{summary}");
}

#[test]
fn the_closing_table_fits_sixty_columns() {
    let device = Softmax::on_a_device();
    let told = closing_table(&[&OpSummary::of("softmax", &device.selection)], Some(60));
    assert!(told.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 60), "{told}");
    assert!(told.contains("v4_optimized     0.01773    1.49x    1.37x      2/3\n"), "{told}");
    let narrow = closing_table(&[&OpSummary::of("softmax", &device.selection)], Some(52));
    assert!(narrow.contains("v4_optimized     0.01773    1.49x    1.37x\n  Correct 2/3\n"), "{narrow}");
}

#[test]
fn the_closing_table_is_the_summary_for_a_terminal() {
    let (device, interpreter) = (Softmax::on_a_device(), Softmax::on_the_interpreter());
    assert_eq!(
        closing_table(&[&OpSummary::of("softmax", &device.selection)], None),
        "Op       Best kernel   Final (ms)  Speedup  Geomean  Correct  Note\n\
         ───────  ────────────  ──────────  ───────  ───────  ───────  ────\n\
         softmax  v4_optimized     0.01773    1.49x    1.37x      2/3\n"
    );
    assert_eq!(
        closing_table(&[&OpSummary::of("softmax", &interpreter.selection)], Some(80)),
        "Op       First right kernel  Interpreter took  Correct  Note\n\
         ───────  ──────────────────  ────────────────  ───────  ────\n\
         softmax  v1_baseline                   236 ms      1/1\n"
    );
}

#[test]
fn a_variant_that_was_not_reached_is_none_of_the_right_ones() {
    let counts = json!({"variants": 4, "passed": 1, "rejected": 1, "skipped": 1, "not_judged": 1});
    let found = Found::Document(leniently(&json!({"chosen": "v1", "counts": counts})).unwrap());
    let op = OpSummary::of("loss", &found);
    let table = closing_table(&[&op], None);
    assert!(table.lines().any(|line| line.starts_with("loss") && line.contains("1/3")), "{table}");
    let page = BuildPage {
        ops: vec![&op],
        files: vec![],
        calibration: &Found::Lost,
        wall: Duration::ZERO,
        device: Duration::ZERO,
    };
    let summary = summary(shipped("assets/summary_template.md", SUMMARY_TEMPLATE), &page).unwrap();
    assert!(summary.contains("| Success rate, kernels correct | 33.3 % (1 of 3) |"), "{summary}");
}

#[test]
fn the_closing_table_says_what_torch_computed() {
    let selection = json!({"chosen": "v1", "variants": [{"name": "v1", "allowed": ["sum", "mul"]}]});
    let found = Found::Document(leniently(&selection).unwrap());
    let table = closing_table(&[&OpSummary::of("loss", &found)], None);
    assert!(table.contains("torch computes sum, mul for it"), "{table}");
}
