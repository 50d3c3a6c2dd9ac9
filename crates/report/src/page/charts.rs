//! The charts of an op as SVG: its speedups by size with their intervals, and its runs one by one.
//!
//! It knows subjects and no document. Subjects differ by the form of their marks as well as by color, and what is unstable is hollow.

use std::collections::BTreeMap;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::subjects::{Point, Subject};

pub(crate) const WIDTH: u32 = 720;
pub(crate) const HEIGHT: u32 = 250;

/// How many runs of a subject at a size are drawn.
const RUNS: usize = 12;

/// How many forms marks have, and how many colors the page's style has for subjects: those of Okabe and Ito (2008), which differ for those, too, who cannot tell red from green.
const COLORS: usize = 6;

/// That of lines behind the marks.
pub(crate) const GRID: RGBColor = RGBColor(136, 136, 136);

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// What a chart shows of a subject at a size.
struct Mark {
    value: f64,
    interval: Option<[f64; 2]>,
    unstable: bool,
}

/// Returns the speedups by size with their intervals; None where there are none.
pub(crate) fn speedups(op: &str, sizes: &[String], subjects: &[Subject]) -> Result<Option<String>, String> {
    let marks = |point: &Point| -> Vec<Mark> {
        let mark = |value| Mark { value, interval: point.interval, unstable: point.unstable };
        point.speedup.map(mark).into_iter().collect()
    };
    let chart = Chart { sizes, subjects, marks: &marks, scale: "times as fast as torch", percent: false };
    chart.svg(&format!("Speedups of {op} by size, with 95 % intervals; the line at 1 is torch"))
}

/// Returns the runs of each subject at each size, as parts of the mean of all; None where there are none.
pub(crate) fn runs(op: &str, sizes: &[String], subjects: &[Subject]) -> Result<Option<String>, String> {
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
    fn svg(&self, label: &str) -> Result<Option<String>, String> {
        let all = || self.subjects.iter().flat_map(|subject| subject.points.iter().flatten()).flat_map(self.marks);
        if all().next().is_none() {
            return Ok(None);
        }
        let (mut low, mut high) = if self.percent { (-1.0, 1.0) } else { (0.0, 1.1_f64) };
        for mark in all() {
            let [least, most] = mark.interval.unwrap_or([mark.value, mark.value]);
            (low, high) = (f64::min(low, least * 1.1), f64::max(high, most * 1.1));
        }
        let mut text = String::new();
        let mut paths = Paths::default();
        let backend = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT));
        self.draw(low..high, backend, &mut paths).map_err(|error| error.to_string())?;
        Ok(Some(compact(&text, &paths, label)))
    }

    fn draw(&self, range: Range<f64>, backend: SVGBackend<'_>, paths: &mut Paths) -> Drawn {
        let area = backend.into_drawing_area();
        let names: Vec<&str> = self.subjects.iter().map(|subject| subject.name.as_str()).collect();
        let top = legend(&area, &names, paths)?;
        let mut chart = ChartBuilder::on(&area)
            .margin_top(top)
            .margin_right(8)
            .x_label_area_size(24)
            .y_label_area_size(58)
            .build_cartesian_2d(0.0..self.places(self.sizes.len()), range)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID.stroke_width(1))
            .axis_style(GRID)
            .x_labels(0)
            .y_labels(5)
            .y_desc(self.scale)
            .draw()?;
        let base = if self.percent { 0.0 } else { 1.0 };
        let at = |x: f64, y: f64| chart.backend_coord(&(x, y));
        let end = self.places(self.sizes.len());
        area.draw(&PathElement::new([at(0.0, base), at(end, base)], BLACK.stroke_width(2)))?;
        let name = ("sans-serif", 12).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
        for (place, size) in self.sizes.iter().enumerate() {
            let left = self.places(place);
            let bottom = at(f64::midpoint(left, self.places(place + 1)), chart.y_range().start);
            area.draw(&Text::new(size.clone(), (bottom.0, bottom.1 + 6), name.clone()))?;
            for (number, subject) in self.subjects.iter().enumerate() {
                let Some(point) = subject.points.get(place).and_then(Option::as_ref) else { continue };
                let marks = (self.marks)(point);
                for (run, mark) in marks.iter().enumerate() {
                    let middle = left + 1.0 + whole(number);
                    let aside = (whole(run) + 0.5) / whole(marks.len()) - 0.5;
                    let place = at(middle + if self.percent { aside * 0.7 } else { 0.0 }, mark.value);
                    if let Some([least, most]) = mark.interval {
                        paths.line(number, at(middle, least), at(middle, most));
                    }
                    paths.shape(number, place, if self.percent { 2 } else { 4 }, mark.unstable);
                }
            }
        }
        area.present()?;
        Ok(())
    }

    /// Returns where the size of this number begins: a subject is one wide, and so is the room between two sizes.
    fn places(&self, size: usize) -> f64 {
        whole(size * (self.subjects.len() + 1))
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer marks than 2^52")]
fn whole(number: usize) -> f64 {
    number as f64
}

/// Draws the names of subjects beside their marks, in as many lines as it takes, and returns how high that is.
pub(crate) fn legend(area: &Area<'_>, names: &[&str], paths: &mut Paths) -> Result<i32, Box<dyn std::error::Error>> {
    let name = ("sans-serif", 12).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
    let (mut left, mut line) = (60, 10);
    for (number, told) in names.iter().enumerate() {
        let wide = 30 + 7 * i32::try_from(told.chars().count().min(60)).unwrap_or(60);
        if left > 60 && left + wide > i32::try_from(WIDTH).unwrap_or(i32::MAX) {
            (left, line) = (60, line + 18);
        }
        paths.shape(number, (left, line), 4, false);
        area.draw(&Text::new((*told).to_owned(), (left + 9, line), name.clone()))?;
        left += wide;
    }
    Ok(line + 14)
}

/// The marks of all subjects, those of each in one path: a page of many ops has tens of thousands of them.
#[derive(Default)]
pub(crate) struct Paths(BTreeMap<(usize, Style), String>);

/// How a path is drawn, by the class that the page's style gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Style {
    Line,
    Filled,
    Hollow,
}

impl Paths {
    fn line(&mut self, subject: usize, (left, top): (i32, i32), (right, bottom): (i32, i32)) {
        *self.0.entry((subject, Style::Line)).or_default() += &format!("M{left} {top}L{right} {bottom}");
    }

    /// Adds the mark of a subject at a place.
    pub(crate) fn shape(&mut self, subject: usize, (x, y): (i32, i32), size: i32, is_hollow: bool) {
        let (left, top, wide) = (x - size, y - size, 2 * size);
        let (bottom, more) = (y + size, size + 1);
        let shape = match subject % COLORS {
            0 => format!("M{left} {y}a{size} {size} 0 0 1 {wide} 0a{size} {size} 0 0 1-{wide} 0z"),
            1 => format!("M{left} {bottom}l{size}-{wide} {size} {wide}z"),
            2 => format!("M{left} {top}h{wide}v{wide}h-{wide}z"),
            3 => format!("M{x} {}l{more} {more}-{more} {more}-{more}-{more}z", y - more),
            4 => format!("M{left} {top}l{size} {wide} {size}-{wide}z"),
            _ => {
                let arm = size - 1;
                format!("M{left} {}h{arm}v-{arm}h2v{arm}h{arm}v2h-{arm}v{arm}h-2v-{arm}h-{arm}z", y - 1)
            }
        };
        let style = if is_hollow { Style::Hollow } else { Style::Filled };
        *self.0.entry((subject, style)).or_default() += &shape;
    }

    fn svg(&self) -> String {
        // After all forms the colors are shifted, so that no two of three dozen subjects are alike.
        let path = |((subject, style), told): (&(usize, Style), &String)| {
            let class = match style {
                Style::Line => "l",
                Style::Filled => "f",
                Style::Hollow => "h",
            };
            format!("<path class=\"{class} c{}\" d=\"{told}\"/>", (subject + subject / COLORS) % COLORS)
        };
        self.0.iter().map(path).collect()
    }
}

/// Returns an SVG with the marks on it, without what the page's style says of it anyway, and with a name for screen readers.
pub(crate) fn compact(svg: &str, paths: &Paths, label: &str) -> String {
    let label = label.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let mut text = svg.trim().replace('\n', "");
    for said in [
        " opacity=\"1\"",
        " stroke=\"none\"",
        " stroke-width=\"1\"",
        " font-family=\"sans-serif\"",
        " font-size=\"9.67741935483871\"",
        " fill=\"#000000\"",
        " text-anchor=\"start\"",
        " xmlns=\"http://www.w3.org/2000/svg\"",
    ] {
        text = text.replace(said, "");
    }
    let text = text.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1);
    text.replacen("</svg>", &format!("{}</svg>", paths.svg()), 1)
}
