//! Rounds of `t2t improve`: the file that keeps them, the rows of their table in a log, and their picture.
//!
//! It does not know how a candidate is made, checked or measured.

use std::collections::BTreeMap;

use plotters::prelude::*;
use serde::{Deserialize, Serialize};
use t2t_protocol::{Bench, Screen, ScreenReason};

use crate::compare::{Measurements, Side, Verdict, compare};
use crate::figures;
use crate::render::attempts::{Cause, Usage};
use crate::render::sweep::Undrawn;

/// The version of the file. 1: first.
pub const VERSION: u32 = 1;

/// Width and height of the picture.
const SIZE: (u32, u32) = (960, 480);

/// The rounds of an op: what `assets/rounds/OP.json` holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rounds {
    /// The version.
    pub version: u32,
    /// Variant → its rounds, the first one first.
    pub variants: BTreeMap<String, Vec<Round>>,
}

/// One round: an author was asked for a better kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// Which one, from 1; further calls of the command count on.
    pub round: u32,
    /// When it began.
    pub began: String,
    /// The author's name.
    pub generator: String,
    /// The device class that it was screened on.
    pub device: String,
    /// The digest of the kernel that was to be replaced.
    pub before: String,
    /// The digest of the candidate, where there was one.
    pub kernel: Option<String>,
    /// What it changes.
    pub change: String,
    /// How it ended.
    pub end: End,
    /// Why it was rejected, where it was.
    pub cause: Option<Cause>,
    /// What the screening said.
    pub screened: Option<Screened>,
    /// What the benches said.
    pub measured: Option<Measured>,
    /// Whether the candidate was put into the workspace.
    pub placed: bool,
    /// How long the round took, in seconds.
    pub seconds: f64,
    /// What the author says that it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The candidate is better: it is the kernel to beat from now on.
    Better,
    /// It is slower.
    Slower,
    /// It gains too little to be worth a bench.
    NoGain,
    /// Screening did not tell, and it seems to be no faster.
    Unclear,
    /// It seemed to be faster, and its bench does not say so.
    NotBetter,
    /// There was no kernel, or it was wrong.
    #[default]
    Rejected,
    /// It is the kernel that was to be replaced, or the candidate of an earlier round.
    Same,
}

impl End {
    /// Returns the end in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Slower => "slower",
            Self::NoGain => "no gain that is worth a bench",
            Self::Unclear => "not told apart, and seems no faster",
            Self::NotBetter => "not faster by its bench",
            Self::Rejected => "rejected",
            Self::Same => "the same kernel again",
        }
    }

    /// Returns the end of a candidate that a screening found not to be worth a bench.
    #[must_use]
    pub fn of(why: ScreenReason) -> Self {
        match why {
            ScreenReason::Slower => Self::Slower,
            ScreenReason::NoGain => Self::NoGain,
            ScreenReason::Faster | ScreenReason::Pairs | ScreenReason::Time => Self::Unclear,
        }
    }
}

/// What a screening said of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Screened {
    /// How many pairs of runs were made.
    pub pairs: u64,
    /// Why it ended.
    pub why: ScreenReason,
    /// The candidate's Final over the incumbent's.
    pub ratio: f64,
    /// The bounds of the ratio; none for a single pair.
    pub interval: Option<[f64; 2]>,
    /// Seconds of the device.
    pub device_s: f64,
}

impl From<&Screen> for Screened {
    fn from(screen: &Screen) -> Self {
        let Screen { pairs, why, ratio, low, high, device_s, .. } = *screen;
        Self { pairs, why, ratio, interval: low.zip(high).map(|(low, high)| [low, high]), device_s }
    }
}

/// What two benches said: the candidate's against the incumbent's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// The Final of the incumbent in ms.
    pub before_ms: f64,
    /// That of the candidate.
    pub ms: f64,
    /// The candidate's over the incumbent's.
    pub ratio: f64,
    /// The 95 % interval of the ratio, where there is one.
    pub interval: Option<[f64; 2]>,
    /// `faster`, `same`, `slower`, `unstable`: of the candidate.
    pub verdict: String,
}

impl Measured {
    /// Compares the bench of a candidate with that of the incumbent, as `t2t compare` does. None where they share no size.
    #[must_use]
    pub fn of(incumbent: &Bench, candidate: &Bench) -> Option<Self> {
        let side = |bench: &Bench| {
            let measurements =
                Measurements { chosen: None, benches: BTreeMap::from([("kernel".to_owned(), bench.clone())]) };
            Side { name: String::new(), ops: BTreeMap::from([("op".to_owned(), measurements)]) }
        };
        let compared = compare(&side(incumbent), &side(candidate), 0.0);
        // The last row is that of the Final, or of the only size.
        let row = compared.rows.last().filter(|_| compared.incomparable.is_empty())?;
        Some(Self {
            before_ms: row.ms[0],
            ms: row.ms[1],
            ratio: 1.0 / row.ratio,
            interval: row.interval.map(|interval| [1.0 / interval.high, 1.0 / interval.low]),
            verdict: row.verdict.to_string(),
        })
    }

    /// Returns whether the candidate is the faster of the two.
    #[must_use]
    pub fn is_faster(&self) -> bool {
        self.verdict == Verdict::Faster.to_string()
    }
}

impl Round {
    /// Returns the candidate's time over the incumbent's, as far as it is known: by the benches, else by the screening.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let measured = self.measured.as_ref().map(|measured| measured.ratio);
        measured.or_else(|| self.screened.as_ref().map(|screened| screened.ratio))
    }

    /// Returns the end in one line, for people.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.cause {
            Some(Cause { phase, class, message, .. }) => {
                format!("rejected ({class}, {phase}): {}", message.lines().next().unwrap_or_default())
            }
            None => self.end.words().to_owned(),
        }
    }
}

/// A round in the table of a log.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    round: u32,
    generator: &'a str,
    device: &'a str,
    change: &'a str,
    end: String,
    mark: &'static str,
    pairs: Option<u64>,
    device_s: Option<f64>,
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    /// The candidate's time as a share of that of the first kernel.
    of_first: Option<f64>,
    ms: Option<f64>,
    placed: bool,
}

/// Returns a row for each round.
pub(super) fn rows(rounds: &[Round]) -> Vec<Row<'_>> {
    rounds.iter().zip(shares(rounds)).map(|(round, share)| row(round, share.own)).collect()
}

fn row(round: &Round, of_first: Option<f64>) -> Row<'_> {
    let screened = round.screened.as_ref();
    let measured = round.measured.as_ref();
    Row {
        round: round.round,
        generator: &round.generator,
        device: &round.device,
        change: &round.change,
        end: round.line(),
        mark: match round.end {
            End::Better => "✅",
            End::Rejected => "❌",
            _ => "–",
        },
        pairs: screened.map(|screened| screened.pairs),
        device_s: screened.map(|screened| screened.device_s),
        ratio: round.ratio(),
        interval: measured.map_or_else(|| screened?.interval, |measured| measured.interval),
        of_first,
        ms: measured.map(|measured| measured.ms),
        placed: round.placed,
    }
}

/// Times of one round as shares of that of the first kernel.
struct Share {
    /// The candidate's, where it is known.
    own: Option<f64>,
    /// That of the best kernel so far, with this round.
    best: f64,
}

/// Returns the shares of each round. A kernel that somebody changed between two rounds counts as the first of those that follow.
fn shares(rounds: &[Round]) -> Vec<Share> {
    let mut best = 1.0;
    let mut kernel: Option<&str> = None;
    let mut found = Vec::new();
    for round in rounds {
        if kernel.is_some_and(|kernel| kernel != round.before) {
            best = 1.0;
        }
        let own = round.ratio().map(|ratio| best * ratio);
        let is_better = round.end == End::Better;
        if is_better {
            best = own.unwrap_or(best);
        }
        kernel = if is_better { round.kernel.as_deref() } else { Some(&round.before) };
        found.push(Share { own, best });
    }
    found
}

/// Returns the rounds as an SVG: for each variant a line of the best kernel so far, and a point for each candidate that was timed, in percent of the time of the first kernel.
pub fn svg(op: &str, rounds: &Rounds) -> Result<String, Undrawn> {
    let mut text = String::new();
    draw(op, rounds, SVGBackend::with_string(&mut text, SIZE)).map_err(|error| Undrawn::of(&error.to_string()))?;
    Ok(text)
}

fn draw(op: &str, rounds: &Rounds, backend: SVGBackend<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let lines: Vec<(&String, Vec<Share>)> =
        rounds.variants.iter().map(|(name, rounds)| (name, shares(rounds))).collect();
    let all = || lines.iter().flat_map(|(_, shares)| shares);
    let highest = all().filter_map(|share| share.own).fold(1.0, f64::max);
    // What takes many times as long would leave nothing to see of the rest.
    let top = (highest * 1.05).min(2.5) * 100.0;
    let last = lines.iter().map(|(_, shares)| shares.len()).max().unwrap_or(0).max(1);
    let area = backend.into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{op}: rounds of improvement"), ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0..last, 0.0..top)?;
    chart.configure_mesh().x_desc("round").y_desc("time, % of the first kernel").draw()?;
    for (number, (name, shares)) in lines.iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        let best = std::iter::once((0, 100.0)).chain(places(shares, |share| Some(share.best)));
        chart
            .draw_series(LineSeries::new(best, color.stroke_width(2)))?
            .label(name.as_str())
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2)));
        let points = places(shares, |share| share.own).map(|(at, share)| (at, share.min(top)));
        chart.draw_series(points.map(|place| Circle::new(place, 4, color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}

/// Returns what `of` says of each round as points of the picture.
fn places(shares: &[Share], of: fn(&Share) -> Option<f64>) -> impl Iterator<Item = (usize, f64)> {
    shares.iter().enumerate().filter_map(move |(at, share)| Some((at + 1, of(share)? * 100.0)))
}

/// Returns a ratio with its interval as people read it, as in `80 % (78 % to 82 %)`.
#[must_use]
pub fn share(ratio: f64, interval: Option<[f64; 2]>) -> String {
    let bounds = interval.map(|[low, high]| format!(" ({} to {})", figures::percent(low), figures::percent(high)));
    format!("{}{}", figures::percent(ratio), bounds.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(number: u32, before: &str, kernel: &str, end: End, ratio: f64) -> Round {
        let screened = Screened { pairs: 3, ratio, ..Screened::default() };
        Round {
            round: number,
            before: before.to_owned(),
            kernel: Some(kernel.to_owned()),
            end,
            screened: Some(screened),
            ..Round::default()
        }
    }

    fn rounds() -> Vec<Round> {
        let rejected = Round { round: 2, before: "b".to_owned(), ..Round::default() };
        vec![
            round(1, "a", "b", End::Better, 0.8),
            rejected,
            round(3, "b", "c", End::Slower, 1.5),
            round(4, "b", "d", End::Better, 0.5),
            round(5, "changed", "e", End::Better, 0.9),
        ]
    }

    #[test]
    fn the_best_keeps_its_place_and_a_changed_kernel_is_a_first_one() {
        let close = |found: Vec<Option<f64>>| {
            found.iter().map(|share| share.map(|share| format!("{share:.2}"))).collect::<Vec<_>>()
        };
        let own = close(shares(&rounds()).iter().map(|share| share.own).collect());
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(own, [text("0.80"), None, text("1.20"), text("0.40"), text("0.90")]);
        let best = close(shares(&rounds()).iter().map(|share| Some(share.best)).collect());
        assert_eq!(best, [text("0.80"), text("0.80"), text("0.80"), text("0.40"), text("0.90")]);
    }

    #[test]
    fn the_picture_names_the_op_and_the_variant_and_has_a_point_a_timed_candidate() {
        let told = Rounds { version: VERSION, variants: BTreeMap::from([("v2_tiling".to_owned(), rounds())]) };
        let picture = svg("softmax", &told).unwrap();
        for word in ["softmax: rounds of improvement", "v2_tiling", "% of the first kernel"] {
            assert!(picture.contains(word), "{word}");
        }
        assert_eq!(picture.matches("<circle").count(), 4);
        assert!(svg("softmax", &Rounds::default()).is_ok(), "nothing is drawn of nothing");
    }

    #[test]
    fn a_rejected_round_says_why_in_one_line() {
        let cause = Cause {
            phase: "check".to_owned(),
            class: "mismatch".to_owned(),
            message: "2 differ\nmore".to_owned(),
            ..Cause::default()
        };
        let round = Round { cause: Some(cause), ..Round::default() };
        assert_eq!(round.line(), "rejected (mismatch, check): 2 differ");
        assert_eq!(share(0.5, Some([0.4, 0.6])), "50 % (40 % to 60 %)");
    }
}
