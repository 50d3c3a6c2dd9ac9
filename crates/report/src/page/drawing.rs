//! An SVG that is short: axes, lines, words and marks, in as few elements and letters as show them.
//!
//! It knows no figure's meaning. Forms, colors and alignment are the page's style's and its [`markers`]: a page of many ops has tens of thousands of marks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use minijinja::HtmlEscape;
use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::ranged1d::{BoldPoints, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use t2t_model::foreign::printable;

use crate::figures::figure;

pub(crate) const WIDTH: i32 = 720;
pub(crate) const HEIGHT: i32 = 250;

/// How large the marks of a legend are.
const PLAIN: i32 = 4;

/// How many forms marks have, and how many colors the page's style has for subjects: those of Okabe and Ito (2008), which differ for those, too, who cannot tell red from green.
const FORMS: usize = 6;

/// How many subjects have marks that no other has.
const SUBJECTS: usize = FORMS * FORMS;

/// Each form about the origin, with a radius of 1.
const SHAPES: [&str; FORMS] = [
    "M-1 0a1 1 0 012 0a1 1 0 01-2 0z",
    "M-1 1L0-1 1 1z",
    "M-1-1h2v2h-2z",
    "M0-1.25L1.25 0 0 1.25-1.25 0z",
    "M-1-1L0 1 1-1z",
    "M-1-.25h.75v-.75h.5v.75h.75v.5h-.75v.75h-.5v-.75h-.75z",
];

/// An axis: where a value stands, and which values have a label.
pub(crate) enum Axis {
    Linear(RangedCoordf64),
    /// Of positive values.
    Logarithmic(LogCoord<f64>),
}

impl Axis {
    pub(crate) fn linear(range: Range<f64>) -> Self {
        Self::Linear(range.into())
    }

    pub(crate) fn logarithmic(range: Range<f64>) -> Self {
        Self::Logarithmic(range.log_scale().into())
    }

    /// Returns where a value stands between the ends of the axis, in px.
    pub(crate) fn map(&self, value: f64, limit: (i32, i32)) -> i32 {
        match self {
            Self::Linear(axis) => axis.map(&value, limit),
            Self::Logarithmic(axis) => axis.map(&value, limit),
        }
    }

    /// Returns at most about `count` values with their labels.
    pub(crate) fn labels(&self, count: usize) -> Vec<(f64, String)> {
        match self {
            Self::Linear(axis) => {
                let told = |value: f64| (value, RangedCoordf64::format(&value));
                axis.key_points(BoldPoints(count)).into_iter().map(told).collect()
            }
            Self::Logarithmic(axis) => {
                axis.key_points(BoldPoints(count)).into_iter().map(|value| (value, power(value))).collect()
            }
        }
    }
}

/// Returns a power of ten as an axis has it.
fn power(value: f64) -> String {
    let told = figure(value);
    if told.contains(['.']) && !told.contains('e') { told.trim_end_matches('0').to_owned() } else { told }
}

/// Two axes and the room between them, in px.
pub(crate) struct Plot {
    pub(crate) across: Axis,
    pub(crate) up: Axis,
    pub(crate) left: i32,
    pub(crate) right: i32,
    pub(crate) top: i32,
    pub(crate) bottom: i32,
}

impl Plot {
    /// Returns where the values stand, in px.
    pub(crate) fn at(&self, across: f64, up: f64) -> (i32, i32) {
        (self.across.map(across, (self.left, self.right)), self.up.map(up, (self.bottom, self.top)))
    }
}

/// Where words begin or end at their place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing that grows. Marks of a subject, a size and a style are one path.
#[derive(Default)]
pub(crate) struct Drawing {
    grid: Trail,
    lines: Trail,
    bars: BTreeMap<usize, Trail>,
    curves: BTreeMap<usize, Trail>,
    marks: BTreeMap<(i32, bool, usize), Trail>,
    words: BTreeMap<Anchor, String>,
    /// What the axis of values counts.
    scale: String,
}

impl Drawing {
    /// Draws a line across for each label of the axis of values, with the label, and says what it counts.
    pub(crate) fn rows(&mut self, plot: &Plot, count: usize, scale: &str) {
        for (value, label) in plot.up.labels(count) {
            let height = plot.up.map(value, (plot.bottom, plot.top));
            self.grid.line((plot.left - 5, height), (plot.right, height));
            self.words((plot.left - 10, height), &label, Anchor::End);
        }
        self.grid.line((plot.left, plot.top), (plot.left, plot.bottom));
        scale.clone_into(&mut self.scale);
    }

    /// Draws a line up for each label of the axis below, with the label, and says what it counts.
    pub(crate) fn columns(&mut self, plot: &Plot, count: usize, scale: &str) {
        for (value, label) in plot.across.labels(count) {
            let place = plot.across.map(value, (plot.left, plot.right));
            self.grid.line((place, plot.top), (place, plot.bottom + 5));
            self.words((place, plot.bottom + 14), &label, Anchor::Middle);
        }
        self.words((i32::midpoint(plot.left, plot.right), HEIGHT - 6), scale, Anchor::Middle);
    }

    /// Draws a line that is no subject's.
    pub(crate) fn line(&mut self, from: (i32, i32), to: (i32, i32)) {
        self.lines.line(from, to);
    }

    /// Draws the interval of a subject.
    pub(crate) fn bar(&mut self, subject: usize, from: (i32, i32), to: (i32, i32)) {
        self.bars.entry(subject).or_default().line(from, to);
    }

    /// Draws the line of a subject through its places.
    pub(crate) fn curve(&mut self, subject: usize, places: &[(i32, i32)]) {
        if places.len() > 1 {
            self.curves.entry(subject).or_default().through(places);
        }
    }

    /// Draws the mark of a subject.
    pub(crate) fn mark(&mut self, subject: usize, place: (i32, i32), radius: i32, is_hollow: bool) {
        self.marks.entry((radius, is_hollow, subject % SUBJECTS)).or_default().to(place);
    }

    pub(crate) fn words(&mut self, (x, y): (i32, i32), told: &str, anchor: Anchor) {
        let words = self.words.entry(anchor).or_default();
        *words += &format!("<text x={x} y={y}>{}</text>", HtmlEscape(&printable(told)));
    }

    /// Draws the names of subjects beside their marks, in as many lines as it takes, and returns how high that is.
    pub(crate) fn legend(&mut self, names: &[&str]) -> i32 {
        self.legend_of(&names.iter().copied().enumerate().collect::<Vec<_>>())
    }

    /// The same of subjects with their numbers.
    pub(crate) fn legend_of(&mut self, subjects: &[(usize, &str)]) -> i32 {
        let (mut left, mut line) = (60, 10);
        for (number, told) in subjects {
            let wide = 30 + 7 * i32::try_from(told.chars().count().min(60)).unwrap_or(60);
            if left > 60 && left + wide > WIDTH {
                (left, line) = (60, line + 18);
            }
            self.mark(*number, (left, line), PLAIN, false);
            self.words((left + 9, line), told, Anchor::Start);
            left += wide;
        }
        line + 14
    }

    /// Returns the SVG, with a name for screen readers.
    pub(crate) fn svg(&self, label: &str) -> String {
        let mut text =
            format!("<svg role=img aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">", HtmlEscape(&printable(label)));
        let mut path = |class: &str, trail: &Trail| {
            if !trail.told.is_empty() {
                let _ = write!(text, "<path class=\"{class}\" d=\"{}\"/>", trail.told);
            }
        };
        path("g", &self.grid);
        path("k", &self.lines);
        for (subject, trail) in &self.bars {
            path(&format!("l c{}", color(*subject)), trail);
        }
        for (subject, trail) in &self.curves {
            path(&format!("l t c{}", color(*subject)), trail);
        }
        for ((radius, is_hollow, subject), trail) in &self.marks {
            path(&format!("s{radius} {}{subject}", if *is_hollow { 'h' } else { 'm' }), trail);
        }
        for (anchor, words) in &self.words {
            let class = match anchor {
                Anchor::Start => "b",
                Anchor::Middle => "i",
                Anchor::End => "e",
            };
            let _ = write!(text, "<g class={class}>{words}</g>");
        }
        if !self.scale.is_empty() {
            let scale = HtmlEscape(&self.scale);
            let _ = write!(text, "<text class=up x=-{} y=8>{scale}</text>", HEIGHT / 2);
        }
        text + "</svg>"
    }
}

/// Places one after another, each by how far it is from the one before.
#[derive(Default)]
struct Trail {
    told: String,
    last: (i32, i32),
}

impl Trail {
    /// Goes on to a place, which a mark stands at.
    fn to(&mut self, place: (i32, i32)) {
        if self.told.is_empty() {
            self.told.push('m');
        }
        self.step(place);
    }

    fn line(&mut self, from: (i32, i32), to: (i32, i32)) {
        self.through(&[from, to]);
    }

    fn through(&mut self, places: &[(i32, i32)]) {
        self.told.push('m');
        for place in places {
            self.step(*place);
        }
    }

    fn step(&mut self, place: (i32, i32)) {
        let (x, y) = (place.0 - self.last.0, place.1 - self.last.1);
        // A sign divides numbers, and so does a letter.
        if x >= 0 && self.told.ends_with(|last: char| last.is_ascii_digit()) {
            self.told.push(' ');
        }
        let _ = write!(self.told, "{x}");
        let _ = write!(self.told, "{}{y}", if y < 0 { "" } else { " " });
        self.last = place;
    }
}

/// After all forms the colors are shifted, so that no two of three dozen subjects are alike.
fn color(subject: usize) -> usize {
    (subject + subject / FORMS) % FORMS
}

/// Returns the marks of the first `count` subjects, filled and hollow, as what paths of the page refer to; the number of each is its subject's.
pub(crate) fn markers(count: usize) -> String {
    let mut text = String::new();
    for subject in 0..count.min(SUBJECTS) {
        for (kind, class) in [('m', 'f'), ('h', 'h')] {
            let (shape, color) = (SHAPES[subject % FORMS], color(subject));
            let _ =
                write!(text, "<marker id={kind}.{subject}><path class=\"{class} c{color}\" d=\"{shape}\"/></marker>");
        }
    }
    format!("<svg class=hide aria-hidden=true>{text}</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_one_another_in_few_letters() {
        let mut trail = Trail::default();
        for place in [(56, 10), (90, 51), (80, 51), (80, 40)] {
            trail.to(place);
        }
        assert_eq!(trail.told, "m56 10 34 41-10 0 0-11");
        let mut trail = Trail::default();
        trail.line((58, 225), (711, 225));
        trail.line((58, 140), (711, 140));
        assert_eq!(trail.told, "m58 225 653 0m-653-85 653 0");
    }

    #[test]
    fn the_style_has_a_rule_for_the_marks_of_each_subject_and_three_dozen_differ() {
        let style = include_str!("page.css");
        let all = markers(100);
        let mut told: Vec<&str> =
            all.split("<marker id=").skip(1).map(|marker| &marker[marker.find('>').unwrap()..]).collect();
        assert_eq!(told.len(), 2 * SUBJECTS);
        told.sort_unstable();
        told.dedup();
        assert_eq!(told.len(), 2 * SUBJECTS);
        for subject in 0..SUBJECTS {
            for kind in ['m', 'h'] {
                assert!(
                    style.contains(&format!(".{kind}{subject}{{marker:url(#{kind}.{subject})}}")),
                    "{kind}{subject}"
                );
                assert!(all.contains(&format!("<marker id={kind}.{subject}>")));
            }
        }
    }

    #[test]
    fn labels_of_axes_are_short() {
        let told = |axis: Axis| axis.labels(5).into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ");
        assert_eq!(told(Axis::linear(0.0..1.2)), "0.0 0.5 1.0");
        assert_eq!(told(Axis::logarithmic(0.0099..101.0)), "0.01 0.1 1 10 100");
    }
}
