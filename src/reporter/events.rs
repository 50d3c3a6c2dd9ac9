//! Events as lines of JSON, for programs: docs/reference/machine-readable.md has the form.
//!
//! It has no clock: the caller passes an event with its time. Each line is flushed, so that it can be read while the build runs.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Map, Value, json};
use t2t_model::action::Target;
use t2t_model::digest::Digest;
use t2t_model::event::{Event, Fault};
use t2t_model::foreign::json as harmless;
use t2t_model::record::Outcome;
use t2t_report::figures;

/// The version of the form: another one where a field goes, or means something else.
const VERSION: u32 = 1;

/// When something came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// By the calendar, in nanoseconds since 1970.
    pub(crate) calendar: i64,
    /// By the machine's monotonic clock, in nanoseconds.
    pub(crate) monotonic: u64,
}

/// Writes a line an event.
#[derive(Debug)]
pub(crate) struct Events<W> {
    out: W,
    begin: u64,
    failure: Option<io::Error>,
    is_finished: bool,
}

impl<W: Write> Events<W> {
    /// Returns the writer to `out` of a build that begins at `at`, after its first line. `asked` is what the user named, empty for everything.
    pub(crate) fn start(out: W, asked: &[String], at: Moment) -> Self {
        let mut events = Self { out, begin: at.monotonic, failure: None, is_finished: false };
        let started = json!({"version": VERSION, "t2t": env!("CARGO_PKG_VERSION"), "targets": asked});
        events.write("started", started, at);
        events
    }

    /// Takes an event that came at `at`.
    pub(crate) fn take(&mut self, event: &Event, at: Moment) {
        let (name, fields) = match event {
            Event::BuildStarted { actions, lanes } => ("planned", json!({"actions": actions, "lanes": lanes})),
            Event::ActionStarted { target, lane, why } => {
                ("action-started", json!({"target": target, "lane": lane, "why": why}))
            }
            Event::ActionFinished { target, lane, outcome, wall, times, key } => {
                let ended = json!({
                    "lane": lane,
                    "wall_ms": milliseconds(*wall),
                    "device_ms": milliseconds(times.busy()),
                    "timing_ms": milliseconds(times.timing()),
                });
                ("action-finished", finished(target, "ran", Some((outcome, *key)), ended))
            }
            Event::ActionFresh { target, outcome, key } => {
                ("action-finished", finished(target, "fresh", Some((outcome, *key)), json!({})))
            }
            Event::ActionRestored { target, outcome, key } => {
                ("action-finished", finished(target, "restored", Some((outcome, *key)), json!({})))
            }
            Event::ActionSkipped { target, because } => {
                ("action-finished", finished(target, "skipped", None, json!({"why": [format!("after {because}")]})))
            }
            Event::ActionMissing { target, why } => {
                ("action-finished", finished(target, "missing", None, json!({"why": why})))
            }
            Event::ActionLost { target, lane, reason } => {
                ("action-finished", finished(target, "lost", None, json!({"lane": lane, "why": [reason]})))
            }
            Event::ActionCancelled { target, lane, reason } => {
                ("action-finished", finished(target, "cancelled", None, json!({"lane": lane, "why": [reason]})))
            }
            Event::ActionAgain { target, lane, reason, .. } => {
                ("action-finished", finished(target, "again", None, json!({"lane": lane, "why": [reason]})))
            }
            Event::Failure { target, text, fault } => ("failure", failure(target, text, fault)),
            Event::Note { text } => ("note", json!({"text": text})),
            Event::Warning { text } => ("warning", json!({"text": text})),
            Event::Waiting { what, holder } => ("waiting", json!({"what": what, "holder": holder})),
            Event::DeviceUsed { lane, used } => (
                "device-used",
                json!({
                    "lane": lane,
                    "window_ms": milliseconds(used.window),
                    "busy": used.busy,
                    "held": used.held,
                    "timing_ms": milliseconds(used.timing),
                    "overhead_ms": milliseconds(used.overhead),
                }),
            ),
            Event::RemoteUsed { remote, hits, misses, uploads, unsent, faults } => (
                "remote-used",
                json!({
                    "remote": remote,
                    "hits": hits,
                    "misses": misses,
                    "uploads": uploads,
                    "unsent": unsent,
                    "faults": faults,
                }),
            ),
            Event::Vouched { signers, unsigned } => ("vouched", json!({"signers": signers, "unsigned": unsigned})),
            Event::Finished { tally, wall, exit_code } => {
                self.is_finished = true;
                let ended =
                    json!({"exit_code": exit_code, "wall_ms": milliseconds(*wall), "tally": tally, "error": null});
                ("finished", ended)
            }
        };
        self.write(name, fields, at);
    }

    /// Writes the last line of a build that came to no end of its own, with what stopped it; nothing where a last line is written.
    pub(crate) fn fail(&mut self, exit_code: u8, error: &str, at: Moment) {
        if !std::mem::replace(&mut self.is_finished, true) {
            let wall = Duration::from_nanos(at.monotonic.saturating_sub(self.begin));
            let ended = json!({"exit_code": exit_code, "wall_ms": milliseconds(wall), "tally": null, "error": error});
            self.write("finished", ended, at);
        }
    }

    /// Returns why a line could not be written, if one could not. Nothing is written after it.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    fn write(&mut self, name: &str, fields: Value, at: Moment) {
        let since = Duration::from_nanos(at.monotonic.saturating_sub(self.begin));
        let mut line = Map::from_iter([
            ("event".to_owned(), name.into()),
            ("time".to_owned(), moment(at.calendar).into()),
            ("seconds".to_owned(), since.as_secs_f64().into()),
        ]);
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        if self.failure.is_none() {
            let line = harmless(&Value::Object(line).to_string()) + "\n";
            self.failure = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush()).err();
        }
    }
}

/// Returns the fields of an action's end. What `more` does not say is null.
fn finished(target: &Target, how: &str, ended: Option<(&Outcome, Digest)>, more: Value) -> Value {
    let (outcome, class) = match ended {
        Some((Outcome::Passed, _)) => (Some("passed"), None),
        Some((Outcome::Rejected { class }, _)) => (Some("rejected"), Some(class)),
        Some((Outcome::NotJudged { .. }, _)) => (Some("not-judged"), None),
        Some((Outcome::Lost { .. }, _)) | None => (None, None),
    };
    let key = ended.map(|(_, key)| key);
    let mut fields = json!({
        "target": target, "how": how, "outcome": outcome, "class": class, "key": key,
        "lane": null, "wall_ms": null, "device_ms": null, "timing_ms": null, "why": null,
    });
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}

fn failure(target: &Target, text: &str, fault: &Fault) -> Value {
    json!({
        "target": target, "class": fault.class, "case": fault.case, "message": fault.message, "file": fault.file, "line": fault.line,
        "column": fault.column, "excerpt": fault.excerpt, "hint": fault.hint, "text": text,
    })
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns a moment as RFC 3339 has it, in UTC, to the millisecond.
fn moment(nanoseconds: i64) -> String {
    let whole = figures::moment(nanoseconds);
    let thousandths = nanoseconds.rem_euclid(1_000_000_000) / 1_000_000;
    format!("{}.{thousandths:03}Z", whole.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use t2t_model::action::Phase;

    use super::*;

    fn at(milliseconds: u64) -> Moment {
        let nanoseconds = milliseconds * 1_000_000;
        let calendar = 1_795_303_805_000_000_000 + i64::try_from(nanoseconds).unwrap();
        Moment { calendar, monotonic: 5_000_000_000 + nanoseconds }
    }

    fn lines(bytes: &[u8]) -> Vec<Value> {
        std::str::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_says_when_it_came_and_the_first_which_version_it_has() {
        let mut out = Vec::new();
        let mut events = Events::start(&mut out, &["softmax".to_owned()], at(0));
        events.take(&Event::Note { text: "two\nlines \u{1b}[31m".to_owned() }, at(1_250));
        let written = lines(&out);
        assert_eq!(
            (&written[0]["event"], &written[0]["version"], &written[0]["targets"], &written[0]["time"]),
            (&json!("started"), &json!(1), &json!(["softmax"]), &json!("2026-11-21T23:30:05.000Z"))
        );
        assert_eq!(
            written[1],
            json!({"event": "note", "time": "2026-11-21T23:30:06.250Z", "seconds": 1.25, "text": "two\nlines \u{1b}[31m"})
        );
        assert_eq!(written.len(), 2);
    }

    #[test]
    fn the_last_line_is_written_once_and_says_what_stopped_the_build() {
        let mut out = Vec::new();
        let mut events = Events::start(&mut out, &[], at(0));
        events.fail(2, "error: no such op", at(20));
        events.fail(3, "error: and the disk is full", at(30));
        let written = lines(&out);
        assert_eq!(written.len(), 2);
        assert_eq!(
            written[1],
            json!({"event": "finished", "time": "2026-11-21T23:30:05.020Z", "seconds": 0.02, "exit_code": 2, "wall_ms": 20.0, "tally": null,
                "error": "error: no such op"})
        );
    }

    #[test]
    fn what_cannot_be_written_is_told_once_and_stops_nothing() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut events = Events::start(Full, &[], at(0));
        events.take(&Event::ActionMissing { target: Target::of_op("softmax", Phase::Log), why: vec![] }, at(1));
        assert_eq!(events.failure().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
        assert!(events.failure().is_none());
    }
}
