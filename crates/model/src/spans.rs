//! Spans: stretches of time on the machine's monotonic clock, which t2t and its children share, and what they add up to.
//!
//! It does not know what happened in them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A stretch of time, from the first to the last nanosecond of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// When it begins.
    pub begin: u64,
    /// When it ends; never before it begins.
    pub end: u64,
}

impl Span {
    /// Returns how long it is.
    #[must_use]
    pub fn length(self) -> Duration {
        Duration::from_nanos(self.end - self.begin)
    }

    /// Returns the part of it that lies in `other`, if any does.
    #[must_use]
    pub fn within(self, other: Self) -> Option<Self> {
        let (begin, end) = (self.begin.max(other.begin), self.end.min(other.end));
        (begin < end).then_some(Self { begin, end })
    }
}

/// What a device was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// It ran what is being timed, as the protocol of measuring or an autotuner asks.
    Timing,
    /// It did anything else for an action.
    Work,
}

/// A child of an action, from the request to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildSpan {
    /// The function that it called, as in `judge:judge`.
    pub function: String,
    /// When it ran.
    pub span: Span,
}

/// A stretch in which a device worked for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpan {
    /// When.
    pub span: Span,
    /// At what.
    pub doing: Doing,
}

/// When the children of an action ran, and when its device worked for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The children in the order in which they ran, including those of a second try.
    pub children: Vec<ChildSpan>,
    /// The device's spans as children reported them, within the time in which those ran.
    pub device: Vec<DeviceSpan>,
}

impl Times {
    /// Returns whether nothing is known: no child ran.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.children.is_empty() && self.device.is_empty()
    }

    /// Returns how long the device worked.
    #[must_use]
    pub fn busy(&self) -> Duration {
        union(self.device.iter().map(|work| work.span))
    }

    /// Returns until when the device ran what was timed, if it did.
    #[must_use]
    pub fn timed_until(&self) -> Option<u64> {
        self.device.iter().filter(|work| work.doing == Doing::Timing).map(|work| work.span.end).max()
    }

    /// Returns how long the device ran what was timed.
    #[must_use]
    pub fn timing(&self) -> Duration {
        union(self.device.iter().filter(|work| work.doing == Doing::Timing).map(|work| work.span))
    }
}

/// How a build used a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// From the beginning of the first to the end of the last of its spans, in milliseconds.
    #[serde(rename = "window_ms", with = "milliseconds")]
    pub window: Duration,
    /// The part of the window in which the device worked, 0 to 1.
    pub busy: f64,
    /// The part of the window in which an action had the device, 0 to 1.
    pub held: f64,
    /// How long it ran what was timed, in milliseconds.
    #[serde(rename = "timing_ms", with = "milliseconds")]
    pub timing: Duration,
    /// The build's wall time less `timing`, in milliseconds.
    #[serde(rename = "overhead_ms", with = "milliseconds")]
    pub overhead: Duration,
}

/// Returns how a build that took `wall` used a device: `times` are those of the device's actions, `held` when they had it. None where no
/// child said anything of the device.
#[must_use]
pub fn used(times: &[Times], held: &[Span], wall: Duration) -> Option<Use> {
    let device = || times.iter().flat_map(|times| &times.device);
    let window =
        Span { begin: device().map(|work| work.span.begin).min()?, end: device().map(|work| work.span.end).max()? };
    let timing = union(device().filter(|work| work.doing == Doing::Timing).map(|work| work.span));
    let part = |time: Duration| time.as_secs_f64() / window.length().as_secs_f64().max(1e-9);
    Some(Use {
        window: window.length(),
        busy: part(union(device().map(|work| work.span))),
        held: part(union(held.iter().filter_map(|span| span.within(window)))),
        timing,
        overhead: wall.saturating_sub(timing),
    })
}

/// Returns how long the spans are together, what overlaps counted once.
#[must_use]
pub(crate) fn union(spans: impl IntoIterator<Item = Span>) -> Duration {
    let mut spans: Vec<Span> = spans.into_iter().collect();
    spans.sort();
    let (mut total, mut reached) = (0, 0);
    for span in spans {
        total += span.end.saturating_sub(span.begin.max(reached));
        reached = reached.max(span.end);
    }
    Duration::from_nanos(total)
}

/// Durations as whole milliseconds.
pub(crate) mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes a duration.
    pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    /// Reads a duration.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn span(begin: u64, end: u64) -> Span {
        Span { begin: begin * SECOND, end: end * SECOND }
    }

    #[test]
    fn what_overlaps_counts_once_and_gaps_do_not() {
        let spans = [span(5, 6), span(0, 2), span(1, 3), span(1, 2)];
        assert_eq!(union(spans), Duration::from_secs(4));
        assert_eq!(union([]), Duration::ZERO);
    }

    #[test]
    fn a_device_is_busy_while_it_works_held_while_an_action_has_it_and_the_rest_of_the_build_is_overhead() {
        let work = |begin, end, doing| DeviceSpan { span: span(begin, end), doing };
        let first =
            Times { children: Vec::new(), device: vec![work(10, 12, Doing::Work), work(12, 16, Doing::Timing)] };
        let second = Times { children: Vec::new(), device: vec![work(18, 20, Doing::Timing)] };
        assert_eq!((first.busy(), first.timing()), (Duration::from_secs(6), Duration::from_secs(4)));
        let held = [span(8, 17), span(17, 21)];
        let used = used(&[first, second], &held, Duration::from_secs(25)).unwrap();
        assert_eq!(used.window, Duration::from_secs(10));
        assert!((used.busy - 0.8).abs() < 1e-9 && (used.held - 1.0).abs() < 1e-9, "{used:?}");
        assert_eq!((used.timing, used.overhead), (Duration::from_secs(6), Duration::from_secs(19)));
        assert_eq!(super::used(&[Times::default()], &held, Duration::from_secs(25)), None);
    }
}
