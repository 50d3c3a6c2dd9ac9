//! How the rates of an op grow with the size: the document of a sweep as a chart, and as rows.
//!
//! It does not know where the document was, nor whether the kernels are still those that it is of.

use serde::Serialize;
use t2t_protocol::{Sweep, SweepPoint};

use super::drawing::{Anchor, Axis, Drawing, HEIGHT, Plot, WIDTH};
use super::subjects::{Subject, TORCH};

/// A sweep of an op.
#[derive(Debug, Serialize)]
pub(crate) struct Curves {
    svg: Option<String>,
    unit: String,
    model: String,
    subjects: Vec<String>,
    rows: Vec<Row>,
    /// Why a subject has no figure.
    reasons: Vec<(String, String)>,
    /// How many subjects have marks.
    #[serde(skip)]
    pub(crate) marks: usize,
}

/// A size.
#[derive(Debug, Serialize)]
struct Row {
    size: String,
    dtype: String,
    /// Rate and median time in ms of each subject.
    cells: Vec<(Option<f64>, Option<f64>)>,
}

impl Curves {
    /// Returns what a sweep tells. Subjects that have marks in the op's other charts have the same here.
    pub(crate) fn of(sweep: &Sweep, subjects: &[Subject]) -> Self {
        let mut names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).chain([TORCH]).collect();
        for name in &sweep.subjects {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let cells = |point: &SweepPoint| {
            let median = |name: &String| point.ms.get(name).and_then(Option::as_ref).map(|time| time.median);
            sweep.subjects.iter().map(|name| (rate(point, name), median(name))).collect()
        };
        let rows = sweep.points.iter();
        Self {
            svg: chart(sweep, &names),
            unit: sweep.unit.clone(),
            model: sweep.model.clone(),
            subjects: sweep.subjects.clone(),
            rows: rows
                .map(|point| Row { size: size(point), dtype: point.dtype.clone(), cells: cells(point) })
                .collect(),
            reasons: sweep.reasons.iter().map(|(what, why)| (what.clone(), why.clone())).collect(),
            marks: names.len(),
        }
    }
}

/// Draws a line a subject over the sizes, which are a power of two apart and at equal distances; None where there is no rate.
fn chart(sweep: &Sweep, names: &[&str]) -> Option<String> {
    let rates = sweep.points.iter().flat_map(|point| sweep.subjects.iter().filter_map(|name| rate(point, name)));
    let most = rates.fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let mut drawing = Drawing::default();
    let numbers: Vec<usize> =
        sweep.subjects.iter().filter_map(|name| names.iter().position(|known| known == name)).collect();
    let shown: Vec<(usize, &str)> = numbers.iter().copied().zip(sweep.subjects.iter().map(String::as_str)).collect();
    let top = drawing.legend_of(&shown);
    let last = place(sweep.points.len().saturating_sub(1));
    let (across, up) = (Axis::linear(-0.5..last + 0.5), Axis::linear(0.0..most * 1.1));
    let plot = Plot { across, up, left: 58, right: WIDTH - 8, top, bottom: HEIGHT - 24 };
    drawing.rows(&plot, 5, &sweep.unit);
    for (number, name) in shown {
        let mut line = Vec::new();
        for (at, point) in sweep.points.iter().enumerate() {
            if let Some(rate) = rate(point, name) {
                line.push(plot.at(place(at), rate));
            }
        }
        drawing.curve(number, &line);
        for at in line {
            drawing.mark(number, at, 3, false);
        }
    }
    // Labels that would touch are left out; the table has all.
    let every = (sweep.points.iter().map(|point| size(point).chars().count()).max().unwrap_or(1) * 7)
        .div_ceil(usize::try_from(WIDTH - 66).unwrap_or(1) / sweep.points.len().max(1))
        .max(1);
    for (at, point) in sweep.points.iter().enumerate().step_by(every) {
        let (x, _) = plot.at(place(at), 0.0);
        drawing.words((x, plot.bottom + 12), &size(point), Anchor::Middle);
    }
    Some(drawing.svg(&format!("{} of {} by size", sweep.unit, sweep.op)))
}

/// Returns the rate of a subject at a size, where it has one.
fn rate(point: &SweepPoint, subject: &str) -> Option<f64> {
    point.rate.get(subject).copied().flatten().filter(|rate| rate.is_finite() && *rate >= 0.0)
}

/// Returns the lengths of a size, as in `256×256`.
fn size(point: &SweepPoint) -> String {
    point.binding.values().map(u64::to_string).collect::<Vec<_>>().join("×")
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer sizes than 2^52")]
fn place(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use t2t_protocol::read::exactly;

    use super::*;

    #[test]
    fn each_subject_has_a_line_and_what_has_no_figure_none() {
        let times = |median: f64| json!({"median": median, "p20": median, "p80": median});
        let point = |length: u64, torch: f64, own: Option<f64>| {
            json!({"binding": {"M": length, "N": length}, "dtype": "float32", "rate": {"torch": torch, "v1": own},
                "ms": {"torch": times(0.5), "v1": own.map(|_| times(0.25))}})
        };
        let sweep: Sweep = exactly(&json!({
            "op": "add", "model": "nvidia-h200", "unit": "GB/s", "subjects": ["torch", "v1"], "reasons": {"v1": "<too large>"},
            "points": [point(256, 100.0, Some(200.0)), point(512, 300.0, Some(400.0)), point(1024, 350.0, None)],
        }))
        .unwrap();
        let curves = Curves::of(&sweep, &[]);
        let svg = curves.svg.unwrap();
        assert!(svg.contains("<text x=385 y=238>512×512</text>"), "{svg}");
        // 202 px are 440 GB/s, from 226 upwards; three sizes have 654 px.
        assert!(svg.contains("<path class=\"l t c0\" d=\"m167 181 218-92 218-23\"/>"), "{svg}");
        assert!(svg.contains("<path class=\"l t c1\" d=\"m167 135 218-92\"/>"), "{svg}");
        assert_eq!(curves.rows[2].cells, [(Some(350.0), Some(0.5)), (None, None)]);
        assert_eq!(curves.marks, 2);
        let nothing = Sweep { points: Vec::new(), ..sweep };
        assert_eq!(Curves::of(&nothing, &[]).svg, None);
    }
}
