//! A sweep for people and programs: its rates as a table, as CSV, and as a picture.
//!
//! It knows the document `sweep` (docs/design/harness.md) and no file.

use plotters::prelude::*;
use t2t_protocol::{Sweep, SweepPoint};

use crate::figures;
use crate::render::table::Align;

/// Width and height of the picture.
const SIZE: (u32, u32) = (960, 560);

/// Why a picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be drawn: {0}")]
pub struct Undrawn(String);

impl Undrawn {
    /// Returns the fault that drawing failed with.
    pub(crate) fn of(message: &str) -> Self {
        Self(message.to_owned())
    }
}

/// Returns the rates as aligned text, one line a size, one column a subject.
#[must_use]
pub fn text(sweep: &Sweep) -> String {
    let mut rows = vec![[vec!["size".to_owned()], sweep.subjects.clone()].concat()];
    for point in &sweep.points {
        let told = |name: &String| rate(point, name).map_or_else(|| "–".to_owned(), figures::figure);
        rows.push([vec![label(point)], sweep.subjects.iter().map(told).collect()].concat());
    }
    format!("{} of {}, {}\n{}", sweep.unit, sweep.op, sweep.model, aligned(&rows))
}

fn aligned(rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> =
        (0..rows[0].len()).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    let side = |at: usize| if at == 0 { Align::Left } else { Align::Right };
    let cell = |(at, cell): (usize, &String)| match side(at) {
        Align::Left => format!("{cell:<width$}", width = widths[at]),
        Align::Right => format!("{cell:>width$}", width = widths[at]),
    };
    let line = |row: &Vec<String>| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned() + "\n").collect()
}

/// Returns one line a size: its lengths, then rate and times in ms of each subject; empty cells where there is no figure.
#[must_use]
pub fn csv(sweep: &Sweep) -> String {
    let Sweep { subjects, unit, .. } = sweep;
    let dims: Vec<&String> = sweep.points.first().into_iter().flat_map(|point| point.binding.keys()).collect();
    let headings = subjects.iter().flat_map(|name| {
        [format!("{name} ({unit})")]
            .into_iter()
            .chain(["median", "p20", "p80"].map(|kind| format!("{name} {kind} (ms)")))
    });
    let head: Vec<String> = dims.iter().map(|dim| (*dim).clone()).chain(headings).collect();
    let mut text = head.join(",") + "\n";
    for point in &sweep.points {
        let lengths = dims.iter().map(|dim| point.binding.get(*dim).map_or_else(String::new, u64::to_string));
        let cells = subjects.iter().flat_map(|name| {
            let times = point.ms.get(name).and_then(Option::as_ref);
            let times = [times.map(|told| told.median), times.map(|told| told.p20), times.map(|told| told.p80)];
            [rate(point, name)].into_iter().chain(times).map(cell)
        });
        text += &(lengths.chain(cells).collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

fn cell(value: Option<f64>) -> String {
    value.map(|number| number.to_string()).unwrap_or_default()
}

/// Returns the rate of a subject at a size, where it has one.
fn rate(point: &SweepPoint, subject: &str) -> Option<f64> {
    point.rate.get(subject).copied().flatten()
}

/// Returns the rates over the sizes as an SVG: a line a subject, sizes a power of two apart at equal distances.
pub fn svg(sweep: &Sweep) -> Result<String, Undrawn> {
    let mut text = String::new();
    draw(sweep, SVGBackend::with_string(&mut text, SIZE)).map_err(|error| Undrawn(error.to_string()))?;
    Ok(text)
}

fn draw(sweep: &Sweep, backend: SVGBackend<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let Sweep { points, subjects, .. } = sweep;
    let rates = points.iter().flat_map(|point| subjects.iter().filter_map(|name| rate(point, name)));
    let highest = rates.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let area = backend.into_drawing_area();
    area.fill(&WHITE)?;
    let last = i32::try_from(points.len().saturating_sub(1)).unwrap_or(i32::MAX).max(1);
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{}, {}", sweep.op, sweep.model), ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0..last, 0.0..highest * 1.05)?;
    let size = |at: &i32| usize::try_from(*at).ok().and_then(|at| points.get(at)).map(label).unwrap_or_default();
    chart.configure_mesh().x_labels(points.len().max(2)).x_label_formatter(&size).y_desc(&sweep.unit).draw()?;
    for (number, name) in subjects.iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        let place = |(at, point): (usize, &SweepPoint)| Some((i32::try_from(at).ok()?, rate(point, name)?));
        let line: Vec<(i32, f64)> = points.iter().enumerate().filter_map(place).collect();
        chart
            .draw_series(LineSeries::new(line, color.stroke_width(2)).point_size(3))?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}

/// Returns the lengths of a point, as in `256×256`.
fn label(point: &SweepPoint) -> String {
    point.binding.values().map(u64::to_string).collect::<Vec<_>>().join("×")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use t2t_protocol::read::exactly;

    use super::*;

    fn sweep() -> Sweep {
        let times = |median: f64| json!({"median": median, "p20": median, "p80": median});
        let sweep = json!({
            "op": "add", "model": "nvidia-h200", "unit": "GB/s", "subjects": ["torch", "v1"], "reasons": {},
            "points": [
                {"binding": {"M": 256, "N": 256}, "ms": {"torch": times(0.5), "v1": times(0.25)}, "rate": {"torch": 100.0, "v1": 200.0}},
                {"binding": {"M": 512, "N": 512}, "ms": {"torch": times(1.0), "v1": null}, "rate": {"torch": 400.5, "v1": null}},
            ],
        });
        exactly(&sweep).unwrap()
    }

    #[test]
    fn the_csv_has_a_line_a_size_and_empty_cells_where_there_is_no_figure() {
        let lines = "M,N,torch (GB/s),torch median (ms),torch p20 (ms),torch p80 (ms),v1 (GB/s),v1 median (ms),v1 p20 (ms),v1 p80 (ms)\n\
            256,256,100,0.5,0.5,0.5,200,0.25,0.25,0.25\n512,512,400.5,1,1,1,,,,\n";
        assert_eq!(csv(&sweep()), lines);
    }

    #[test]
    fn the_picture_names_every_subject_and_size_and_draws_a_line_each() {
        let picture = svg(&sweep()).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        for word in ["torch", "v1", "256×256", "512×512", "GB/s", "add, nvidia-h200"] {
            assert!(picture.contains(word), "{word}");
        }
        assert!(picture.matches("<polyline").count() >= 2);
    }

    #[test]
    fn the_text_marks_what_has_no_figure() {
        let shown = text(&sweep());
        assert!(shown.starts_with("GB/s of add, nvidia-h200\nsize"), "{shown}");
        assert!(shown.lines().nth(3).unwrap().ends_with('–'), "{shown}");
    }
}
