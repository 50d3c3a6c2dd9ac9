//! The trace: a build as a timeline in Chrome's trace format, which Perfetto opens.
//!
//! It has no clock: the caller passes an event with its time. It does not know what actions are for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use t2t_model::action::{Phase, Target};
use t2t_model::event::Event;
use t2t_model::record::Outcome;
use t2t_model::spans::{Doing, Span, Times};

use crate::reporter::lines::named;

/// The row for actions without a child, and for those that settled without running.
const OWN: &str = "t2t";

/// A build's timeline so far. Moments are nanoseconds of the machine's monotonic clock.
#[derive(Debug)]
pub(crate) struct Trace {
    begin: u64,
    open: BTreeMap<Target, Running>,
    ran: Vec<Ran>,
    settled: Vec<Value>,
}

/// An action that runs.
#[derive(Debug)]
struct Running {
    lane: String,
    why: Vec<String>,
    begin: u64,
}

/// An action that ran.
#[derive(Debug)]
struct Ran {
    target: Target,
    lane: String,
    span: Span,
    why: Vec<String>,
    outcome: String,
    times: Times,
}

/// A row: its lane, and which of the lane's it is.
type Row = (String, usize);

impl Trace {
    /// Returns the trace of a build that begins at `begin`, which is its zero.
    #[must_use]
    pub(crate) fn new(begin: u64) -> Self {
        Self { begin, open: BTreeMap::new(), ran: Vec::new(), settled: Vec::new() }
    }

    /// Takes an event that came at `now`.
    pub(crate) fn take(&mut self, event: &Event, now: u64) {
        match event {
            Event::ActionStarted { target, lane, why } => {
                let running = Running { lane: lane.clone(), why: why.clone(), begin: now };
                self.open.insert(target.clone(), running);
            }
            Event::ActionFinished { target, outcome, wall, times, .. } => {
                let words = match outcome {
                    Outcome::Passed => "passed".to_owned(),
                    Outcome::Rejected { class } => format!("rejected ({class})"),
                    Outcome::NotJudged { reason } => format!("not judged: {reason}"),
                    Outcome::Lost { reason } => format!("lost: {reason}"),
                };
                let wall = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
                self.close(target, words, Span { begin: now.saturating_sub(wall), end: now }, times.clone());
            }
            Event::ActionLost { target, reason, .. } => {
                self.close(target, format!("lost: {reason}"), Span { begin: now, end: now }, Times::default());
            }
            Event::ActionCancelled { target, reason, .. } => {
                self.close(target, format!("cancelled: {reason}"), Span { begin: now, end: now }, Times::default());
            }
            Event::ActionAgain { target, reason, was_lost, .. } => {
                let how = if *was_lost { "lost" } else { "sent back" };
                self.close(
                    target,
                    format!("{how}, it runs again: {reason}"),
                    Span { begin: now, end: now },
                    Times::default(),
                );
            }
            Event::ActionFresh { target, .. } => self.settle(target, "fresh", now),
            Event::ActionRestored { target, .. } => self.settle(target, "restored", now),
            Event::ActionSkipped { target, because } => self.settle(target, &format!("skipped, after {because}"), now),
            Event::Waiting { what, holder } => {
                let event = self.instant("waiting", now, &json!({"for": what, "held by": holder}));
                self.settled.push(event);
            }
            _ => {}
        }
    }

    /// Returns the trace of a build that ended at `now`; what still ran then was interrupted.
    #[must_use]
    pub(crate) fn finish(mut self, now: u64) -> Value {
        for target in self.open.keys().cloned().collect::<Vec<_>>() {
            self.close(&target, "interrupted".to_owned(), Span { begin: now, end: now }, Times::default());
        }
        self.ran.sort_by_key(|ran| (ran.span.begin, ran.span.end));
        let rows = rows(&self.ran);
        let mut names: Vec<Row> = rows.iter().cloned().chain([(OWN.to_owned(), 0)]).collect();
        names.extend(self.ran.iter().filter(|ran| !ran.times.device.is_empty()).map(work_row));
        names.sort();
        names.dedup();
        let tid = |row: &Row| names.iter().position(|other| other == row).unwrap_or(0) + 1;
        let mut events: Vec<Value> = names.iter().map(|row| row_name(row, tid(row), &names)).collect();
        events.append(&mut self.settled);
        for event in &mut events {
            if event["tid"].is_null() {
                event["tid"] = tid(&(OWN.to_owned(), 0)).into();
            }
        }
        for (ran, row) in self.ran.iter().zip(&rows) {
            events.extend(self.of_action(ran, tid(row)));
            for work in &ran.times.device {
                let doing = if work.doing == Doing::Timing { "timing" } else { "work" };
                let arguments = json!({"target": ran.target});
                events.push(self.complete(doing, "device", work.span, tid(&work_row(ran)), &arguments));
            }
        }
        json!({"displayTimeUnit": "ms", "traceEvents": events})
    }

    fn close(&mut self, target: &Target, outcome: String, span: Span, times: Times) {
        let Some(Running { lane, why, begin }) = self.open.remove(target) else { return };
        let lane = if needs_no_child(target, &times) { OWN.to_owned() } else { lane };
        let span = Span { begin: span.begin.min(begin), end: span.end };
        self.ran.push(Ran { target: target.clone(), lane, span, why, outcome, times });
    }

    fn settle(&mut self, target: &Target, how: &str, now: u64) {
        let event = self.instant(&named(target), now, &json!({"target": target, "outcome": how, "ran": false}));
        self.settled.push(event);
    }

    /// Returns an action, and its children within it.
    fn of_action(&self, ran: &Ran, tid: usize) -> Vec<Value> {
        let arguments = json!({"target": ran.target, "why": ran.why, "outcome": ran.outcome, "ran": true});
        let mut events = vec![self.complete(&named(&ran.target), "action", ran.span, tid, &arguments)];
        for child in &ran.times.children {
            if let Some(span) = child.span.within(ran.span) {
                events.push(self.complete(&child.function, "child", span, tid, &json!({"target": ran.target})));
            }
        }
        events
    }

    fn complete(&self, name: &str, kind: &str, span: Span, tid: usize, arguments: &Value) -> Value {
        let duration = span.length().as_secs_f64() * 1e6;
        json!({"ph": "X", "name": name, "cat": kind, "pid": 1, "tid": tid, "ts": self.since(span.begin), "dur": duration, "args": arguments})
    }

    /// Its row is filled in at the end.
    fn instant(&self, name: &str, now: u64, arguments: &Value) -> Value {
        json!({"ph": "i", "s": "t", "name": name, "cat": "settled", "pid": 1, "tid": null, "ts": self.since(now), "args": arguments})
    }

    /// Returns a moment in microseconds since the build began.
    fn since(&self, moment: u64) -> f64 {
        Span { begin: self.begin.min(moment), end: moment }.length().as_secs_f64() * 1e6
    }
}

/// Whether t2t did it itself: its row is not a lane's.
fn needs_no_child(target: &Target, times: &Times) -> bool {
    matches!(target.phase, Phase::Select | Phase::Log | Phase::Summary)
        || (times.children.is_empty() && target.phase == Phase::Tune)
}

/// Returns the row for a device's work for an action.
fn work_row(ran: &Ran) -> Row {
    (format!("{} work", ran.lane), 0)
}

/// Returns the row of each of `ran`, which are sorted by their beginnings: the first of its lane that is free then.
fn rows(ran: &[Ran]) -> Vec<Row> {
    let mut ends: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let place = |ran| {
        let Ran { lane, span, .. }: &Ran = ran;
        let lane_ends = ends.entry(lane).or_default();
        let free = lane_ends.iter().position(|end| *end <= span.begin);
        let number = free.unwrap_or(lane_ends.len());
        lane_ends.resize(lane_ends.len().max(number + 1), 0);
        lane_ends[number] = span.end;
        (lane.clone(), number)
    };
    ran.iter().map(place).collect()
}

/// Returns the event that names a row; a lane's rows are numbered where it has several.
fn row_name((lane, number): &Row, tid: usize, all: &[Row]) -> Value {
    let is_one_of_several = all.iter().filter(|(other, _)| other == lane).count() > 1;
    let name = if is_one_of_several { format!("{lane} {}", number + 1) } else { lane.clone() };
    json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use t2t_model::digest::Digest;
    use t2t_model::spans::{ChildSpan, DeviceSpan};

    use super::*;

    const MS: u64 = 1_000_000;

    fn span(begin: u64, end: u64) -> Span {
        Span { begin: begin * MS, end: end * MS }
    }

    fn check(op: &str) -> Target {
        Target::of_variant(op, "v1", Phase::Check)
    }

    fn started(op: &str, lane: &str) -> Event {
        Event::ActionStarted { target: check(op), lane: lane.to_owned(), why: vec!["it never ran".to_owned()] }
    }

    fn finished(op: &str, lane: &str, wall: u64, times: Times) -> Event {
        let wall = Duration::from_millis(wall);
        Event::ActionFinished {
            target: check(op),
            lane: lane.to_owned(),
            outcome: Outcome::Passed,
            wall,
            times,
            key: Digest::of(b""),
        }
    }

    fn of<'a>(events: &'a [Value], name: &str) -> &'a Value {
        events.iter().find(|event| event["name"] == name).unwrap_or_else(|| panic!("no `{name}` in {events:?}"))
    }

    #[test]
    fn actions_lie_on_rows_of_their_lanes_children_within_them_and_work_on_a_row_of_the_device() {
        let times = Times {
            children: vec![ChildSpan { function: "candidate:run".to_owned(), span: span(1_005, 1_020) }],
            device: vec![DeviceSpan { span: span(1_010, 1_015), doing: Doing::Timing }],
        };
        let mut trace = Trace::new(1_000 * MS);
        for (event, now) in [
            (Event::ActionFresh { target: check("fresh"), outcome: Outcome::Passed, key: Digest::of(b"") }, 1_001),
            (started("one", "cpu"), 1_001),
            (started("two", "cpu"), 1_002),
            (started("three", "cuda:0"), 1_003),
            (finished("two", "cpu", 5, Times::default()), 1_007),
            (started("four", "cpu"), 1_008),
            (finished("three", "cuda:0", 27, times), 1_030),
            (finished("one", "cpu", 30, Times::default()), 1_031),
        ] {
            trace.take(&event, now * MS);
        }
        let whole = trace.finish(1_040 * MS);
        let events = whole["traceEvents"].as_array().unwrap();
        let rows: BTreeMap<u64, &str> = events
            .iter()
            .filter(|event| event["ph"] == "M")
            .map(|event| (event["tid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap()))
            .collect();
        assert_eq!(rows.values().copied().collect::<Vec<_>>(), ["cpu 1", "cpu 2", "cuda:0", "cuda:0 work", "t2t"]);
        let told = |name: &str| {
            let event = of(events, name);
            let row = rows[&event["tid"].as_u64().unwrap()];
            let number = |key: &str| event[key].as_f64().unwrap_or(-1.0).round();
            (row, number("ts"), number("dur"))
        };
        assert_eq!(told("check one/v1"), ("cpu 1", 1_000.0, 30_000.0));
        assert_eq!(told("check two/v1"), ("cpu 2", 2_000.0, 5_000.0));
        assert_eq!(told("check four/v1"), ("cpu 2", 8_000.0, 32_000.0));
        assert_eq!(told("check three/v1"), ("cuda:0", 3_000.0, 27_000.0));
        assert_eq!(told("candidate:run"), ("cuda:0", 5_000.0, 15_000.0));
        assert_eq!(told("timing"), ("cuda:0 work", 10_000.0, 5_000.0));
        assert_eq!(told("check fresh/v1"), ("t2t", 1_000.0, -1.0));
        assert_eq!(of(events, "check four/v1")["args"]["outcome"], "interrupted");
        assert_eq!(of(events, "check one/v1")["args"]["why"], json!(["it never ran"]));
    }
}
