//! Lines: the words for events. The one place where they are.
//!
//! It does not know where lines go.

use std::time::Duration;

use console::Style;
use t2t_model::action::Target;
use t2t_model::event::{Event, Tally, Vouched};
use t2t_model::foreign::printable;
use t2t_model::record::Outcome;
use t2t_model::spans::Use;
use t2t_report::figures;

use crate::reporter::{Paint, Verbosity};

/// How lines are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// How much is printed.
    pub(crate) verbosity: Verbosity,
    /// Whether they are colored.
    pub(crate) paint: Paint,
}

impl Lines {
    /// Returns what is written of an event, without the last newline. None where nothing is.
    #[must_use]
    pub(crate) fn of(self, event: &Event) -> Option<String> {
        match self.verbosity {
            Verbosity::Quiet if !is_essential(event) => None,
            _ => self.words(event),
        }
    }

    /// Returns `text` in bold red, green, … where lines are colored.
    #[must_use]
    pub(crate) fn painted(self, style: Style, text: &str) -> String {
        match self.paint {
            Paint::Plain => text.to_owned(),
            Paint::Color => style.force_styling(true).apply_to(text).to_string(),
        }
    }

    /// Returns the line that names a failure again at the end of a build. None where the event is none.
    #[must_use]
    pub(crate) fn failure_again(self, event: &Event) -> Option<String> {
        let (target, text) = match event {
            Event::Failure { target, fault, .. } => (target, format!("{}: {}", fault.class, fault.message)),
            Event::ActionLost { target, reason, .. } => (target, format!("lost: {}", gist(reason))),
            _ => return None,
        };
        let word = self.painted(Style::new().red().bold(), "failed");
        Some(format!("{word} {target}  {}", printable(&text)))
    }

    fn words(self, event: &Event) -> Option<String> {
        Some(match event {
            Event::BuildStarted { actions, lanes } => {
                let lanes: Vec<String> = lanes.iter().map(|(lane, slots)| slot_words(lane, *slots)).collect();
                self.painted(Style::new().dim(), &format!("{}; lanes: {}", counted(*actions), lanes.join(", ")))
            }
            Event::ActionFresh { target, outcome: Outcome::NotJudged { reason }, .. }
            | Event::ActionRestored { target, outcome: Outcome::NotJudged { reason }, .. } => {
                self.not_judged(target, reason)
            }
            Event::ActionStarted { .. }
            | Event::ActionFresh { .. }
            | Event::ActionRestored { .. }
            | Event::ActionMissing { .. }
            | Event::ActionAgain { was_lost: false, .. } => return None,
            Event::ActionFinished { target, outcome, wall, .. } => self.finished(target, outcome, *wall),
            Event::ActionSkipped { target, because } => {
                let end = self.painted(Style::new().dim(), "skipped");
                format!("{} … {end}, after {because}", named(target))
            }
            Event::ActionLost { target, reason, .. } => {
                let end = self.painted(Style::new().red().bold(), "lost");
                format!("{} … {end}: {}", named(target), printable(reason))
            }
            Event::ActionCancelled { target, reason, .. } => {
                let end = self.painted(Style::new().yellow(), "cancelled");
                format!("{} … {end}: {}", named(target), printable(reason))
            }
            Event::ActionAgain { target, lane, reason, .. } => {
                let text = format!("{target} was lost on {lane}: {reason}; it runs again elsewhere");
                self.labeled(Style::new().yellow().bold(), "warning", &text)
            }
            Event::Failure { text, .. } => self.failure(text),
            Event::Note { text } => self.labeled(Style::new().cyan(), "note", text),
            Event::Warning { text } => self.labeled(Style::new().yellow().bold(), "warning", text),
            Event::Waiting { what, holder } => {
                self.labeled(Style::new().yellow(), "waiting", &format!("{what}, held by {holder}"))
            }
            Event::DeviceUsed { lane, used } => self.painted(Style::new().dim(), &device_words(lane, *used)),
            Event::RemoteUsed { remote, hits, misses, uploads, unsent, faults } => {
                let counts = [("hits", hits), ("misses", misses), ("uploads", uploads)];
                let rare = [("not uploaded", unsent), ("faults", faults)].into_iter().filter(|(_, count)| **count > 0);
                let counts = counts.into_iter().chain(rare).map(|(word, count)| format!("{word} {count}"));
                let text = format!("remote {remote}: {}", counts.collect::<Vec<_>>().join(", "));
                self.painted(Style::new().dim(), &text)
            }
            Event::Vouched { signers, unsigned } => self.vouched(signers, *unsigned),
            Event::Finished { tally, wall, .. } => self.tally(*tally, *wall),
        })
    }

    /// Returns how an action ended that did not run, since its result was known. None where that is not written.
    #[must_use]
    pub(crate) fn restored(self, target: &Target, outcome: &Outcome) -> Option<String> {
        (self.verbosity == Verbosity::Normal).then(|| self.ended(target, outcome, "(restored)"))
    }

    fn finished(self, target: &Target, outcome: &Outcome, wall: Duration) -> String {
        self.ended(target, outcome, &figures::time(wall))
    }

    fn ended(self, target: &Target, outcome: &Outcome, how: &str) -> String {
        let (style, word) = match outcome {
            Outcome::Passed => (Style::new().green(), "passed".to_owned()),
            Outcome::Rejected { class } => (Style::new().red().bold(), format!("rejected ({class})")),
            Outcome::NotJudged { reason } => return self.not_judged(target, reason),
            Outcome::Lost { reason } => (Style::new().red().bold(), format!("lost: {}", printable(reason))),
        };
        format!("{} … {} {how}", named(target), self.painted(style, &word))
    }

    fn not_judged(self, target: &Target, reason: &str) -> String {
        let word = self.painted(Style::new().yellow(), "not judged");
        format!("{} … {word}: {}", named(target), printable(reason))
    }

    /// Returns a problem's text, its `error:` and `hint:` colored.
    fn failure(self, text: &str) -> String {
        let lines = text.lines().map(|line| match line.split_once(": ") {
            Some(("error", rest)) => self.labeled(Style::new().red().bold(), "error", rest),
            Some(("hint", rest)) => self.labeled(Style::new().cyan(), "hint", rest),
            _ => printable(line),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn labeled(self, style: Style, label: &str, text: &str) -> String {
        format!("{} {}", self.painted(style, &format!("{label}:")), printable(text))
    }

    fn vouched(self, signers: &[Vouched], unsigned: usize) -> String {
        let signed = signers.iter().map(|signer| {
            let results = results(signer.results);
            format!("{results} signed by {} ({})", printable(&signer.name), signer.key)
        });
        let unsigned = (unsigned > 0).then(|| {
            let text = format!("{} unsigned", results(unsigned));
            self.painted(Style::new().yellow(), &text)
        });
        format!("measured elsewhere: {}", signed.chain(unsigned).collect::<Vec<_>>().join(", "))
    }

    fn tally(self, tally: Tally, wall: Duration) -> String {
        let mut parts = vec![
            format!("fresh {}", tally.fresh),
            format!("restored {}", tally.restored),
            format!("ran {}", tally.ran),
        ];
        let alarm = || Style::new().red().bold();
        let rare = [
            ("run again", tally.again, Style::new().yellow()),
            ("skipped", tally.skipped, Style::new().yellow()),
            ("not judged", tally.not_judged, Style::new().yellow()),
            ("rejected", tally.rejected, alarm()),
            ("lost", tally.lost, alarm()),
        ];
        for (word, count, style) in rare {
            if count > 0 {
                parts.push(self.painted(style, &format!("{word} {count}")));
            }
        }
        format!("{} in {}", parts.join(", "), figures::time(wall))
    }
}

/// Returns an action's name as it reads in a sentence: `check softmax/v2_tiling`.
#[must_use]
pub(crate) fn named(target: &Target) -> String {
    if target.op.is_empty() { target.phase.to_string() } else { format!("{} {}", target.phase, target.place()) }
}

fn is_essential(event: &Event) -> bool {
    match event {
        Event::ActionLost { .. } | Event::Failure { .. } | Event::Vouched { .. } | Event::Finished { .. } => true,
        Event::ActionFinished { outcome, .. } => !outcome.is_pass(),
        _ => false,
    }
}

fn counted(actions: usize) -> String {
    if actions == 1 { "1 action".to_owned() } else { format!("{actions} actions") }
}

fn results(count: usize) -> String {
    if count == 1 { "1 result".to_owned() } else { format!("{count} results") }
}

fn device_words(lane: &str, used: Use) -> String {
    format!(
        "{lane}: busy {} of {}, held by actions {}; {} inside timing, {} overhead",
        figures::percent(used.busy),
        figures::time(used.window),
        figures::percent(used.held),
        figures::time(used.timing),
        figures::time(used.overhead),
    )
}

fn slot_words(lane: &str, slots: usize) -> String {
    if slots == 1 { lane.to_owned() } else { format!("{lane} ×{slots}") }
}

/// Returns the line of a reason that says most of it: of a traceback of Python the last one that begins a line, with the exception, else the first.
pub(super) fn gist(reason: &str) -> &str {
    let mut lines = reason.lines();
    let first = lines.next().unwrap_or_default();
    let exception = || lines.rev().find(|line| line.starts_with(|first: char| first.is_alphabetic()));
    if first.starts_with("Traceback (most recent call last)") { exception().unwrap_or(first) } else { first }
}
