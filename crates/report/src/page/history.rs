//! The history of an op: what its chosen kernel took at each revision that is known, as a chart and as rows, with what got slower.
//!
//! What is slower, and by how much, `compare` says; nothing is judged here. It does not know where results were found.

use std::collections::BTreeMap;

use serde::Serialize;
use t2t_protocol::Bench;

use super::drawing::{Anchor, Axis, Drawing, HEIGHT, Plot, WIDTH};
use crate::compare::{Comparison, FINAL, Measurements, Row, Side, THRESHOLD, compare};
use crate::rank::bootstrap::Interval;

/// What is known of an op at a revision.
#[derive(Clone, Debug, Default)]
pub struct Revision {
    /// What it is called: the start of a commit, or of a result's key.
    pub name: String,
    /// The day of the commit.
    pub day: Option<String>,
    /// What was measured.
    pub measured: Measurements,
}

/// The chosen kernel at a revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Step {
    name: String,
    day: Option<String>,
    chosen: String,
    final_ms: f64,
    torch_ms: Option<f64>,
    speedup: Option<f64>,
    unstable: bool,
    /// How many times as fast as at the revision before.
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    /// The same of torch: what the machine itself changed.
    torch: Option<f64>,
    /// What that says, or why nothing can be said. None at the first revision.
    verdict: Option<String>,
    /// The sizes at which it is slower by more than the threshold, with how many times as long it takes.
    slower: Vec<(String, f64)>,
}

impl Step {
    fn of(revision: &Revision, chosen: &str, bench: &Bench, final_ms: f64) -> Self {
        Self {
            name: revision.name.clone(),
            day: revision.day.clone(),
            chosen: chosen.to_owned(),
            final_ms,
            torch_ms: bench.torch_final_ms,
            speedup: bench.torch_final_ms.map(|torch| torch / final_ms),
            unstable: bench.unstable == Some(true),
            ratio: None,
            interval: None,
            torch: None,
            verdict: None,
            slower: Vec::new(),
        }
    }

    /// Takes what a comparison with the revision before says of the chosen kernels.
    fn beside(mut self, comparison: &Comparison) -> Self {
        let rows: Vec<&Row> = comparison.rows.iter().filter(|row| row.selected).collect();
        let whole = rows.iter().find(|row| row.size == FINAL).or(rows.first().filter(|_| rows.len() == 1));
        if let Some(row) = whole {
            (self.ratio, self.torch) = (Some(row.ratio), row.torch);
            self.interval = row.interval.map(Interval::bounds);
            self.verdict = Some(row.verdict.to_string());
        } else {
            let why = comparison.incomparable.iter().map(|(what, why)| format!("{what}: {why}")).next();
            self.verdict = Some(why.unwrap_or_else(|| "other sizes".to_owned()));
        }
        let regressions = rows.iter().filter(|row| row.is_regression);
        self.slower = regressions.map(|row| (row.size.clone(), 1.0 / row.ratio)).collect();
        self
    }
}

/// Returns the chosen kernel at each revision, the oldest first; of revisions that follow one another with the same figures the first.
pub(crate) fn steps(op: &str, revisions: &[Revision]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before: Option<Side> = None;
    for revision in revisions {
        let Some(chosen) = &revision.measured.chosen else { continue };
        let Some(bench) = revision.measured.benches.get(chosen) else { continue };
        let Some(final_ms) = bench.final_ms else { continue };
        let benches = BTreeMap::from([(chosen.clone(), bench.clone())]);
        let measured = Measurements { chosen: Some(chosen.clone()), benches };
        if before.as_ref().is_some_and(|before| before.ops.get(op) == Some(&measured)) {
            continue;
        }
        let side = Side { name: revision.name.clone(), ops: [(op.to_owned(), measured)].into() };
        let step = Step::of(revision, chosen, bench, final_ms);
        steps.push(match &before {
            Some(before) => step.beside(&compare(before, &side, THRESHOLD / 100.0)),
            None => step,
        });
        before = Some(side);
    }
    steps
}

/// Returns the times of the chosen kernel and of torch by revision; None where there are not two.
pub(crate) fn chart(op: &str, steps: &[Step]) -> Option<String> {
    let last = steps.len().checked_sub(1).filter(|last| *last > 0)?;
    let most = steps.iter().flat_map(|step| [Some(step.final_ms), step.torch_ms]).flatten().fold(0.0, f64::max);
    if !(most.is_finite() && most > 0.0) {
        return None;
    }
    let mut drawing = Drawing::default();
    let top = drawing.legend(&["the chosen kernel", "torch beside it"]);
    let (across, up) = (Axis::linear(-0.5..place(last) + 0.5), Axis::linear(0.0..most * 1.15));
    let plot = Plot { across, up, left: 58, right: WIDTH - 8, top, bottom: HEIGHT - 24 };
    drawing.rows(&plot, 5, "ms, mean over sizes");
    let mut lines: [Vec<(i32, i32)>; 2] = Default::default();
    for (number, step) in steps.iter().enumerate() {
        let at = |ms: f64| plot.at(place(number), ms);
        let kernel = at(step.final_ms);
        drawing.words((kernel.0, plot.bottom + 12), &step.name, Anchor::Middle);
        drawing.mark(0, kernel, 4, step.unstable);
        lines[0].push(kernel);
        if let Some(torch) = step.torch_ms {
            drawing.mark(1, at(torch), 4, false);
            lines[1].push(at(torch));
        }
        if !step.slower.is_empty() {
            drawing.words((kernel.0, kernel.1 - 12), "▲ slower", Anchor::Middle);
        }
    }
    for (subject, line) in lines.iter().enumerate() {
        drawing.curve(subject, line);
    }
    Some(drawing.svg(&format!("Times of the chosen kernel of {op} and of torch at {} revisions", steps.len())))
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer revisions than 2^52")]
fn place(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench() -> Bench {
        serde_json::from_str(include_str!("../../../../tests/it/samples/bench_v4.json")).unwrap()
    }

    /// Returns a bench in which everything takes so many times as long.
    fn scaled(by: f64) -> Bench {
        let mut bench = bench();
        for figure in bench.sizes.values_mut().filter_map(|size| size.variant.as_mut()) {
            figure.mean *= by;
            for run in &mut figure.runs {
                run.mean *= by;
            }
        }
        bench.final_ms = bench.final_ms.map(|ms| ms * by);
        bench
    }

    fn revision(name: &str, chosen: &str, bench: Bench) -> Revision {
        let measured = Measurements { chosen: Some(chosen.to_owned()), benches: [(chosen.to_owned(), bench)].into() };
        Revision { name: name.to_owned(), day: None, measured }
    }

    #[test]
    fn a_slower_kernel_is_marked_and_the_same_figures_are_told_once() {
        let revisions = [
            revision("a", "v4", bench()),
            revision("b", "v4", bench()),
            revision("c", "v5", scaled(1.2)),
            revision("d", "v4", scaled(0.5)),
            Revision { name: "e".to_owned(), ..Revision::default() },
        ];
        let steps = steps("softmax", &revisions);
        let told: Vec<(&str, Option<&str>, bool)> = steps
            .iter()
            .map(|step| {
                (step.name.as_str(), step.verdict.as_deref(), step.slower.iter().any(|(size, _)| size == FINAL))
            })
            .collect();
        assert_eq!(told, [("a", None, false), ("c", Some("slower"), true), ("d", Some("faster"), false)]);
        assert!((steps[1].ratio.unwrap() - 1.0 / 1.2).abs() < 1e-9, "{steps:?}");
        let svg = chart("softmax", &steps).unwrap();
        assert_eq!(svg.matches("▲ slower").count(), 1, "{svg}");
        assert_eq!(chart("softmax", &steps[..1]), None);
    }

    #[test]
    fn what_cannot_be_compared_says_why() {
        let mut other = bench();
        other.clock = "host".to_owned();
        let steps = steps("softmax", &[revision("a", "v4", bench()), revision("b", "v4", other)]);
        let verdict = steps[1].verdict.as_deref().unwrap();
        assert!(verdict.starts_with("softmax/v4: the clocks are "), "{verdict}");
        assert_eq!((steps[1].ratio, steps[1].slower.len()), (None, 0));
    }
}
