//! The charts of an op as SVG: its speedups by size with their intervals, and its runs one by one.
//!
//! It knows subjects and no document. Subjects differ by the form of their marks as well as by color, and what is unstable is hollow.

use std::ops::Range;

use super::drawing::{Anchor, Axis, Drawing, HEIGHT, Plot, WIDTH};
use super::subjects::{Point, Subject};

/// How many runs of a subject at a size are drawn.
const RUNS: usize = 12;

/// What a chart shows of a subject at a size.
struct Mark {
    value: f64,
    interval: Option<[f64; 2]>,
    unstable: bool,
}

/// Returns the speedups by size with their intervals; None where there are none.
pub(crate) fn speedups(op: &str, sizes: &[String], subjects: &[Subject]) -> Option<String> {
    let marks = |point: &Point| -> Vec<Mark> {
        let mark = |value| Mark { value, interval: point.interval, unstable: point.unstable };
        point.speedup.map(mark).into_iter().collect()
    };
    let chart = Chart { sizes, subjects, marks: &marks, scale: "times as fast as torch", percent: false };
    chart.svg(&format!("Speedups of {op} by size, with 95 % intervals; the line at 1 is torch"))
}

/// Returns the runs of each subject at each size, as parts of the mean of all; None where there are none.
pub(crate) fn runs(op: &str, sizes: &[String], subjects: &[Subject]) -> Option<String> {
    let marks = |point: &Point| -> Vec<Mark> {
        let shown = thinned(&point.runs).into_iter();
        shown.map(|run| Mark { value: (run - 1.0) * 100.0, interval: None, unstable: point.unstable }).collect()
    };
    let chart = Chart { sizes, subjects, marks: &marks, scale: "% off the mean of all runs", percent: true };
    chart.svg(&format!("Runs of {op}, each subject and size, in % off their mean"))
}

/// Returns the runs; of many, some at equal distances, the least and the most.
fn thinned(runs: &[f64]) -> Vec<f64> {
    if runs.len() <= RUNS {
        return runs.to_vec();
    }
    let extremes = [runs.iter().copied().fold(f64::INFINITY, f64::min), runs.iter().copied().fold(0.0, f64::max)];
    let others = (0..RUNS - 2).map(|place| runs[place * runs.len() / (RUNS - 2)]);
    others.chain(extremes).collect()
}

struct Chart<'a> {
    sizes: &'a [String],
    subjects: &'a [Subject],
    marks: &'a dyn Fn(&Point) -> Vec<Mark>,
    scale: &'a str,
    percent: bool,
}

impl Chart<'_> {
    fn svg(&self, label: &str) -> Option<String> {
        let all = || self.subjects.iter().flat_map(|subject| subject.points.iter().flatten()).flat_map(self.marks);
        all().next()?;
        let (mut low, mut high) = if self.percent { (-1.0, 1.0) } else { (0.0, 1.1_f64) };
        for mark in all() {
            let [least, most] = mark.interval.unwrap_or([mark.value, mark.value]);
            (low, high) = (f64::min(low, least * 1.1), f64::max(high, most * 1.1));
        }
        Some(self.drawn(low..high).svg(label))
    }

    fn drawn(&self, range: Range<f64>) -> Drawing {
        let mut drawing = Drawing::default();
        let names: Vec<&str> = self.subjects.iter().map(|subject| subject.name.as_str()).collect();
        let top = drawing.legend(&names);
        let end = self.place(self.sizes.len());
        let (across, up) = (Axis::linear(0.0..end), Axis::linear(range));
        let plot = Plot { across, up, left: 58, right: WIDTH - 8, top, bottom: HEIGHT - 24 };
        drawing.rows(&plot, 5, self.scale);
        let base = if self.percent { 0.0 } else { 1.0 };
        drawing.line(plot.at(0.0, base), plot.at(end, base));
        for (place, size) in self.sizes.iter().enumerate() {
            let left = self.place(place);
            let (middle, _) = plot.at(f64::midpoint(left, self.place(place + 1)), base);
            drawing.words((middle, plot.bottom + 12), size, Anchor::Middle);
            for (number, subject) in self.subjects.iter().enumerate() {
                let Some(point) = subject.points.get(place).and_then(Option::as_ref) else { continue };
                let marks = (self.marks)(point);
                for (run, mark) in marks.iter().enumerate() {
                    let middle = left + 1.0 + whole(number);
                    let aside = (whole(run) + 0.5) / whole(marks.len()) - 0.5;
                    let at = plot.at(middle + if self.percent { aside * 0.7 } else { 0.0 }, mark.value);
                    if let Some([least, most]) = mark.interval {
                        drawing.bar(number, plot.at(middle, least), plot.at(middle, most));
                    }
                    drawing.mark(number, at, if self.percent { 2 } else { 4 }, mark.unstable);
                }
            }
        }
        drawing
    }

    /// Returns where the size of this number begins: a subject is one wide, and so is the room between two sizes.
    fn place(&self, size: usize) -> f64 {
        whole(size * (self.subjects.len() + 1))
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer marks than 2^52")]
fn whole(number: usize) -> f64 {
    number as f64
}
