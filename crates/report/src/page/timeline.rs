//! A build's timeline by lane, from the file that `t2t build --trace` writes: as a chart, and as rows of what took longest.
//!
//! It does not know where the file lies. It takes what it needs of Chrome's trace format and nothing more.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use minijinja::HtmlEscape;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use t2t_model::foreign::printable;

use super::drawing::Axis;

/// How wide the chart is, where its bars begin, and how high a row is, in px.
const WIDTH: i32 = 1400;
const LEFT: i32 = 130;
const ROW: i32 = 20;

/// How many actions are told, those that took longest.
const LONGEST: usize = 25;

/// How wide a letter of a bar's name is at most, in px.
const LETTER: usize = 7;

/// The phases with a color of their own.
const PHASES: [&str; 5] = ["compile", "check", "tune", "baseline", "bench"];

/// What all others have: no color of the page's style.
const NO_COLOR: usize = 9;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    ph: String,
    name: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    tid: u64,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: BTreeMap<String, Value>,
}

impl Event {
    fn told(&self, name: &str) -> &str {
        self.args.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns which phase's color it has: that of an action is in its name, and work of a device is of its action's.
    fn color(&self) -> usize {
        let target = self.told("target");
        let phase = target.rsplit_once(':').map_or(target, |(_, phase)| phase);
        PHASES.iter().position(|known| *known == phase).unwrap_or(NO_COLOR)
    }
}

/// The timeline of a build.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// The chart.
    svg: String,
    /// The phases with their colors.
    phases: Vec<(&'static str, usize)>,
    seconds: f64,
    lanes: Vec<Lane>,
    /// How many actions did not run, by how they settled, as in `fresh`.
    settled: BTreeMap<String, usize>,
    longest: Vec<Action>,
    /// How many actions ran.
    ran: usize,
}

/// A row of the timeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Lane {
    name: String,
    actions: usize,
    /// Its part of the time of the build.
    busy: f64,
}

/// An action that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Action {
    target: String,
    lane: String,
    begin: f64,
    took: f64,
    outcome: String,
}

impl Timeline {
    /// Returns the timeline that the text of a trace tells.
    ///
    /// # Errors
    ///
    /// Fails with the reason where it is no trace of a build in which an action ran.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut file: File = serde_json::from_str(text).map_err(|error| format!("it is no trace: {error}"))?;
        file.events
            .retain(|event| event.ts.is_finite() && event.dur.is_finite() && event.ts >= 0.0 && event.dur >= 0.0);
        let names: BTreeMap<u64, String> = file
            .events
            .iter()
            .filter(|event| event.ph == "M" && event.name == "thread_name")
            .map(|event| (event.tid, printable(event.told("name"))))
            .collect();
        let mut bars: Vec<&Event> = file
            .events
            .iter()
            .filter(|event| event.ph == "X" && ["action", "device"].contains(&event.cat.as_str()))
            .filter(|event| names.contains_key(&event.tid))
            .collect();
        bars.sort_by(|a, b| a.ts.total_cmp(&b.ts));
        let end = bars.iter().map(|bar| bar.ts + bar.dur).fold(0.0, f64::max);
        if end <= 0.0 {
            return Err("it tells of no action that ran".to_owned());
        }
        let rows: Vec<(u64, &String)> = names
            .iter()
            .filter(|(tid, _)| bars.iter().any(|bar| bar.tid == **tid))
            .map(|(tid, name)| (*tid, name))
            .collect();
        let lanes = rows.iter().map(|(tid, name)| {
            let own: Vec<&&Event> = bars.iter().filter(|bar| bar.tid == *tid).collect();
            // Bars of a row do not overlap.
            let busy = own.iter().map(|bar| bar.dur).sum::<f64>() / end;
            Lane { name: (*name).clone(), actions: own.iter().filter(|bar| bar.cat == "action").count(), busy }
        });
        let mut settled = BTreeMap::new();
        for event in file.events.iter().filter(|event| event.ph == "i" && event.args.contains_key("outcome")) {
            let how = event.told("outcome").split(',').next().unwrap_or_default();
            *settled.entry(how.to_owned()).or_insert(0) += 1;
        }
        let mut actions: Vec<&&Event> = bars.iter().filter(|bar| bar.cat == "action").collect();
        let ran = actions.len();
        actions.sort_by(|a, b| b.dur.total_cmp(&a.dur).then(a.ts.total_cmp(&b.ts)));
        let action = |bar: &&&Event| Action {
            target: bar.told("target").to_owned(),
            lane: names[&bar.tid].clone(),
            begin: bar.ts / 1e6,
            took: bar.dur / 1e6,
            outcome: bar.told("outcome").to_owned(),
        };
        let mut phases: Vec<usize> = bars.iter().map(|bar| bar.color()).collect();
        phases.sort_unstable();
        phases.dedup();
        Ok(Self {
            svg: svg(&rows, &bars, end),
            phases: phases.into_iter().map(|color| (PHASES.get(color).copied().unwrap_or("others"), color)).collect(),
            seconds: end / 1e6,
            lanes: lanes.collect(),
            settled,
            longest: actions.iter().take(LONGEST).map(action).collect(),
            ran,
        })
    }
}

/// Draws the bars on their rows; what is wide enough has its name.
fn svg(rows: &[(u64, &String)], bars: &[&Event], end: f64) -> String {
    let bottom = i32::try_from(rows.len()).unwrap_or(i32::MAX / ROW - 2) * ROW;
    let axis = Axis::linear(0.0..end / 1e6);
    let across = |microseconds: f64| axis.map(microseconds / 1e6, (LEFT, WIDTH - 10));
    let mut grid = String::new();
    let mut words = [String::new(), String::new(), String::new()];
    let mut write = |anchor: usize, x: i32, y: i32, told: &str| {
        let _ = write!(words[anchor], "<text x={x} y={y}>{}</text>", HtmlEscape(&printable(told)));
    };
    for (value, label) in axis.labels(10) {
        let place = across(value * 1e6);
        let _ = write!(grid, "M{place} 0V{}", bottom + 4);
        write(1, place, bottom + 12, &format!("{label} s"));
    }
    let mut paths: BTreeMap<usize, String> = BTreeMap::new();
    for (number, (tid, name)) in (0..).zip(rows) {
        let top = number * ROW;
        write(0, LEFT - 8, top + ROW / 2, name);
        for bar in bars.iter().filter(|bar| bar.tid == *tid) {
            let (left, right) = (across(bar.ts), across(bar.ts + bar.dur));
            // Bars that follow one another are told apart.
            let wide = (right - left - 1).max(1);
            let path = paths.entry(bar.color()).or_default();
            let _ = write!(path, "M{left} {}h{wide}v{}h-{wide}z", top + 2, ROW - 4);
            let fits = |told: &&str| told.chars().count() * LETTER < usize::try_from(wide).unwrap_or_default();
            let phase = bar.name.split(' ').next().unwrap_or_default();
            if let Some(told) = [bar.name.as_str(), phase].into_iter().find(fits) {
                write(2, left + 4, top + ROW / 2, told);
            }
        }
    }
    let mut text = format!(
        "<svg role=img aria-label=\"Timeline of the build by lane, in seconds\" viewBox=\"0 0 {WIDTH} {}\"><path class=g d=\"{grid}\"/>",
        bottom + 20
    );
    for (color, path) in &paths {
        let _ = write!(text, "<path class=\"a c{color}\" d=\"{path}\"/>");
    }
    for (class, words) in ["e", "i", "n"].into_iter().zip(words) {
        let _ = write!(text, "<g class={class}>{words}</g>");
    }
    text + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"traceEvents": [
        {"ph": "M", "name": "thread_name", "tid": 1, "args": {"name": "cpu <1>"}},
        {"ph": "M", "name": "thread_name", "tid": 2, "args": {"name": "cuda:0"}},
        {"ph": "M", "name": "thread_name", "tid": 3, "args": {"name": "t2t"}},
        {"ph": "X", "cat": "action", "name": "check a/v1", "tid": 1, "ts": 0, "dur": 3e6, "args": {"target": "a/v1:check", "outcome": "passed"}},
        {"ph": "X", "cat": "child", "name": "judge:judge", "tid": 1, "ts": 0, "dur": 3e6, "args": {"target": "a/v1:check"}},
        {"ph": "X", "cat": "action", "name": "bench a/v1", "tid": 2, "ts": 3e6, "dur": 1e6, "args": {"target": "a/v1:bench", "outcome": "<i>"}},
        {"ph": "i", "name": "check b/v1", "tid": 3, "ts": 1, "args": {"target": "b/v1:check", "outcome": "fresh"}},
        {"ph": "i", "name": "check c/v1", "tid": 3, "ts": 1, "args": {"target": "c/v1:check", "outcome": "skipped, after x"}}]}"#;

    #[test]
    fn bars_lie_on_the_rows_of_their_lanes_as_long_as_their_actions_took() {
        let timeline = Timeline::read(TRACE).unwrap();
        let lanes: Vec<(&str, usize, f64)> =
            timeline.lanes.iter().map(|lane| (lane.name.as_str(), lane.actions, lane.busy)).collect();
        assert_eq!(lanes, [("cpu <1>", 1, 0.75), ("cuda:0", 1, 0.25)]);
        assert_eq!(timeline.settled, BTreeMap::from([("fresh".to_owned(), 1), ("skipped".to_owned(), 1)]));
        assert_eq!(timeline.phases, [("check", 1), ("bench", 4)]);
        assert_eq!((timeline.longest[0].target.as_str(), timeline.longest[0].took), ("a/v1:check", 3.0));
        // 1260 px are 4 s.
        assert!(timeline.svg.contains("<path class=\"a c1\" d=\"M130 2h944v16h-944z\"/>"), "{}", timeline.svg);
        assert!(timeline.svg.contains("<path class=\"a c4\" d=\"M1075 22h314v16h-314z\"/>"), "{}", timeline.svg);
        assert!(timeline.svg.contains("cpu &lt;1&gt;") && !timeline.svg.contains("judge"), "{}", timeline.svg);
    }

    #[test]
    fn what_is_no_trace_or_tells_of_nothing_says_so() {
        assert!(Timeline::read("{}").unwrap_err().starts_with("it is no trace: missing field `traceEvents`"));
        assert_eq!(Timeline::read(r#"{"traceEvents": []}"#).unwrap_err(), "it tells of no action that ran");
    }
}
