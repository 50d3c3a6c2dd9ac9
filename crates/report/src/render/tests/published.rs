//! What a device published, beside kernels that Triton's interpreter ran.
//!
//! It does not know how it is told that a kernel is the same.

use super::*;
use crate::rank::PublishedPlace;
use crate::rank::published::{Kernel, published};

const SUMMARY_TEMPLATE: &str = include_str!("../../../../../assets/summary_template.md");

/// The documents of the interpreter, beside the figures of the device; v4 is `changed` since.
fn beside(changed: Option<&str>) -> Softmax {
    with(&[("v1_baseline", None), ("v2_tiling", None), ("v4_optimized", changed)])
}

/// The same, the kernels being these, each with why it is another than there.
fn with(kernels: &[(&str, Option<&str>)]) -> Softmax {
    let there = Softmax::on_a_device();
    let place = PublishedPlace {
        device: "nvidia-h200".to_owned(),
        name: "NVIDIA H200".to_owned(),
        revision: Some("e3a9c099ab".to_owned()),
        dirty: false,
    };
    let named =
        |&(name, changed): &(&str, Option<&str>)| Kernel { name: name.to_owned(), changed: changed.map(str::to_owned) };
    let kernels: Vec<Kernel> = kernels.iter().map(named).collect();
    let mut here = Softmax::on_the_interpreter();
    let found = published(place, there.selection.document().unwrap(), &kernels);
    let Found::Document(selection) = here.selection else { unreachable!() };
    here.selection = Found::Document(selection.beside(Some(found)));
    here
}

fn summary_of(softmax: &Softmax) -> String {
    let op = OpSummary::of("softmax", &softmax.selection);
    let other = OpSummary::of("add", &Softmax::on_the_interpreter().selection);
    let page = BuildPage {
        ops: vec![&other, &op],
        files: vec![],
        calibration: &Found::Lost,
        wall: Duration::ZERO,
        device: Duration::ZERO,
    };
    summary(shipped("assets/summary_template.md", SUMMARY_TEMPLATE), &page).unwrap()
}

#[test]
fn a_log_has_what_is_published_of_these_kernels_and_the_interpreters_times_in_a_section_of_their_own() {
    let softmax = beside(None);
    let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), &softmax.page()).unwrap();
    assert_eq!(
        section(&log, "## Phase 3: Benchmark", "### Triton's interpreter"),
        "## Phase 3: Benchmark\n\n\
         ### Published: NVIDIA H200, `e3a9c099ab`\n\n\
         These figures were measured there, of exactly the kernels that are here.\n\n\
         | Kernel | small (ms) | medium (ms) | large (ms) | Final (ms) | Torch (ms) | Speedup vs Torch |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n\
         | v1_baseline † | 0.007100 | 0.01210 | 0.09130 | 0.03683 | 0.02650 | 0.72x |\n\
         | v4_optimized | 0.004900 | 0.008100 | 0.04020 | 0.01773 | 0.02650 | 1.49x |\n\n\
         v2_tiling has none: rejected there.\n\n\
         † v1_baseline is unstable: coefficient of variation 8 % at large.\n\n"
    );
    let times = section(&log, "### Triton's interpreter", "## Phase 4");
    assert!(times.contains("| v1_baseline | 12.50 | 44.00 | 180.0 |\n") && !times.contains("peedup"), "{times}");
    let chosen = section(&log, "## Phase 4", "## Checklist");
    assert!(chosen.contains("- Best kernel by the published figures: **v4_optimized**, 1.49x vs torch\n"), "{chosen}");
    let korean = super::log(shipped("assets/log_template_ko.md", LOG_TEMPLATE_KO), &softmax.page()).unwrap();
    assert!(korean.contains("| v4_optimized | 0.004900 | 0.008100 | 0.04020 |"), "{korean}");
}

#[test]
fn where_no_kernel_has_published_figures_there_is_no_table_of_them() {
    let edited = Some("edited since");
    let softmax = with(&[("v1_baseline", edited), ("v4_optimized", edited)]);
    for (name, template) in [("assets/log_template.md", LOG_TEMPLATE), ("assets/log_template_ko.md", LOG_TEMPLATE_KO)] {
        let log = log(shipped(name, template), &softmax.page()).unwrap();
        let told = section(&log, "H200, `e3a9c099ab`", "### Triton");
        assert!(!told.contains("| Kernel |") && told.contains("v4_optimized"), "{told}");
    }
}

#[test]
fn a_kernel_that_was_edited_since_says_so_and_has_none() {
    let softmax = beside(Some("edited since"));
    let log = log(shipped("assets/log_template.md", LOG_TEMPLATE), &softmax.page()).unwrap();
    assert!(log.contains("v4_optimized has none: edited since.\n"), "{log}");
    assert!(!section(&log, "### Published", "### Triton").contains("| v4_optimized"), "{log}");
    assert!(log.contains("published figures: none, v4_optimized, chosen there, edited since\n"), "{log}");
    let told = closing_table(&[&OpSummary::of("softmax", &softmax.selection)], None);
    assert!(
        told.contains("1/1  none                  –        –        –  v4_optimized, chosen there, edited"),
        "{told}"
    );
}

#[test]
fn a_summary_and_a_terminal_say_whose_figures_they_are() {
    let softmax = beside(None);
    let summary = summary_of(&softmax);
    assert!(summary.contains("published at `e3a9c099ab`, measured on NVIDIA H200: they are of exactly"), "{summary}");
    let row = "| [softmax](softmax_log.md) | 1/1 | v4_optimized | 0.01773 | 0.02650 | 1.49x | 1.37x |  |\n";
    assert!(summary.contains(row), "{summary}");
    assert!(summary.contains("| [add](add_log.md) | 1/1 | none | – | – | – | – | not published |\n"), "{summary}");
    let times = section(&summary, "## Times in Triton's interpreter", "## Files");
    assert!(times.contains("| softmax | v1_baseline | 236 ms |\n") && !times.contains("peedup"), "{times}");
    let other = OpSummary::of("add", &Softmax::on_the_interpreter().selection);
    assert_eq!(
        closing_table(&[&other, &OpSummary::of("softmax", &softmax.selection)], None),
        "Correct is what Triton's interpreter says here. Figures were published at e3a9c099ab, measured on NVIDIA H200, not here:\n\
         Op       Correct  Best kernel   Final (ms)  Speedup  Geomean  Note\n\
         ───────  ───────  ────────────  ──────────  ───────  ───────  ─────────────\n\
         add          1/1  none                   –        –        –  not published\n\
         softmax      1/1  v4_optimized     0.01773    1.49x    1.37x\n"
    );
}
