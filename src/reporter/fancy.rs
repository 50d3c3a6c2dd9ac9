//! The fancy reporter: a bar a lane with what runs there, a bar for the whole, on a terminal's standard error.
//!
//! It does not know what lanes are. What passes is seen on the bars alone; everything else also leaves a line above them.

use std::collections::BTreeMap;
use std::time::Duration;

use console::Style;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use t2t_model::action::Target;
use t2t_model::event::Event;
use t2t_model::record::Outcome;

use crate::reporter::lines::{Lines, named};
use crate::reporter::{Paint, Reporter, Verbosity};

/// How often the spinners turn.
const TICK: Duration = Duration::from_millis(120);

/// A bar and the actions that it shows, the longest running first.
#[derive(Debug)]
struct LaneBar {
    bar: ProgressBar,
    running: Vec<Target>,
}

/// Draws bars.
#[derive(Debug)]
pub(crate) struct Fancy {
    screen: MultiProgress,
    lines: Lines,
    /// Hidden until an action runs: a build with nothing to do draws nothing.
    total: ProgressBar,
    planned: Vec<String>,
    lanes: BTreeMap<String, LaneBar>,
}

impl Fancy {
    /// Returns the reporter that draws on standard error.
    #[must_use]
    pub(crate) fn new(paint: Paint) -> Self {
        Self::on(ProgressDrawTarget::stderr(), paint)
    }

    /// Returns the reporter that draws on `target`.
    #[must_use]
    pub(crate) fn on(target: ProgressDrawTarget, paint: Paint) -> Self {
        Self {
            screen: MultiProgress::with_draw_target(target),
            lines: Lines { verbosity: Verbosity::Normal, paint },
            total: ProgressBar::hidden(),
            planned: Vec::new(),
            lanes: BTreeMap::new(),
        }
    }

    fn plan(&mut self, actions: usize, lanes: &BTreeMap<String, usize>) {
        self.planned = lanes.keys().cloned().collect();
        self.total.set_length(actions as u64);
    }

    fn draw(&mut self) {
        let widest = self.planned.iter().map(String::len).max().unwrap_or(0).max("total".len());
        for lane in self.planned.drain(..) {
            let bar = self.screen.add(ProgressBar::new_spinner());
            bar.set_style(style(&format!("{{prefix:>{widest}}} {{spinner}} {{pos:>4}} done  {{wide_msg}}")));
            bar.set_prefix(lane.clone());
            self.lanes.insert(lane, LaneBar { bar, running: Vec::new() });
        }
        let total = ProgressBar::new(self.total.length().unwrap_or(0)).with_position(self.total.position());
        self.total = self.screen.add(total.with_elapsed(self.total.elapsed()));
        let drawn = if self.lines.paint == Paint::Color { "{bar:32.green}" } else { "{bar:32}" };
        self.total
            .set_style(style(&format!("{{prefix:>{widest}}} {drawn} {{pos}}/{{len}}  {{elapsed}}  {{wide_msg}}")));
        self.total.set_prefix("total");
        self.total.enable_steady_tick(TICK);
    }

    fn begin(&mut self, lane: &str, target: &Target) {
        if !self.planned.is_empty() {
            self.draw();
        }
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.running.push(target.clone());
            lane.bar.enable_steady_tick(TICK);
            lane.show();
        }
    }

    fn end(&mut self, lane: &str, target: &Target) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.running.retain(|running| running != target);
            lane.bar.inc(1);
            if lane.running.is_empty() {
                lane.bar.disable_steady_tick();
            }
            lane.show();
        }
    }

    fn wait(&self, event: &Event) {
        let message = match event {
            Event::Waiting { what, holder } => {
                self.lines.painted(Style::new().yellow(), &format!("waiting: {what}, held by {holder}"))
            }
            _ => String::new(),
        };
        if self.total.message() != message {
            self.total.set_message(message);
        }
    }

    fn clear(&mut self) {
        self.lanes.values().for_each(|lane| lane.bar.finish_and_clear());
        self.total.finish_and_clear();
        self.lanes.clear();
    }

    /// Returns whether an event is printed above the bars: not if the bars show it.
    fn leaves_a_line(&self, event: &Event) -> bool {
        match event {
            Event::BuildStarted { .. } | Event::ActionFinished { outcome: Outcome::Passed, .. } => false,
            Event::Waiting { .. } => self.lanes.is_empty(),
            _ => true,
        }
    }

    fn say(&self, event: &Event) {
        if let Some(line) = self.lines.of(event).filter(|_| self.leaves_a_line(event)) {
            let _ = self.screen.println(line);
        }
    }
}

impl Reporter for Fancy {
    fn report(&mut self, event: &Event) {
        match event {
            Event::BuildStarted { actions, lanes } => self.plan(*actions, lanes),
            Event::ActionStarted { target, lane, .. } => self.begin(lane, target),
            Event::ActionFinished { target, lane, .. }
            | Event::ActionCancelled { target, lane, .. }
            | Event::ActionAgain { target, lane, .. }
            | Event::ActionLost { target, lane: Some(lane), .. } => {
                self.end(lane, target);
            }
            Event::Finished { .. } => self.clear(),
            _ => {}
        }
        if settles(event) {
            self.total.inc(1);
        }
        self.wait(event);
        self.say(event);
    }
}

impl Drop for Fancy {
    fn drop(&mut self) {
        self.clear();
    }
}

impl LaneBar {
    fn show(&self) {
        let names: Vec<String> = self.running.iter().map(named).collect();
        self.bar.set_message(names.join(", "));
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is right").progress_chars("━╸ ")
}

fn settles(event: &Event) -> bool {
    matches!(
        event,
        Event::ActionFinished { .. }
            | Event::ActionFresh { .. }
            | Event::ActionRestored { .. }
            | Event::ActionSkipped { .. }
            | Event::ActionMissing { .. }
            | Event::ActionLost { .. }
    )
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;
    use t2t_model::action::Phase;
    use t2t_model::digest::Digest;
    use t2t_model::event::Tally;
    use t2t_model::spans::Times;

    use super::*;

    fn target(variant: &str, phase: Phase) -> Target {
        Target::of_variant("softmax", variant, phase)
    }

    #[test]
    fn bars_show_what_runs_on_each_lane_and_how_far_the_build_is() {
        let term = InMemoryTerm::new(10, 80);
        let mut fancy = Fancy::on(ProgressDrawTarget::term_like(Box::new(term.clone())), Paint::Plain);
        let (lane, outcome) = ("interpreter".to_owned(), Outcome::Passed);
        let started = |variant| Event::ActionStarted {
            target: target(variant, Phase::Check),
            lane: "interpreter".into(),
            why: vec![],
        };
        let slots = BTreeMap::from([("cpu".to_owned(), 2), (lane.clone(), 1)]);
        fancy.report(&Event::BuildStarted { actions: 4, lanes: slots });
        assert_eq!(term.contents(), "");
        fancy.report(&started("v1"));
        fancy.report(&Event::ActionFinished {
            target: target("v1", Phase::Check),
            lane,
            outcome,
            wall: Duration::ZERO,
            times: Times::default(),
            key: Digest::of(b""),
        });
        fancy.report(&started("v2"));
        fancy.report(&Event::ActionSkipped { target: target("v1", Phase::Bench), because: target("v1", Phase::Check) });
        fancy.lanes.values().for_each(|lane| lane.bar.force_draw());
        fancy.total.force_draw();
        let shown = term.contents();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 4, "{shown}");
        assert_eq!(lines[0], "bench softmax/v1 … skipped, after softmax/v1:check");
        assert!(lines[1].starts_with("        cpu ") && lines[1].ends_with("0 done"), "{shown}");
        assert!(lines[2].starts_with("interpreter ") && lines[2].ends_with("1 done  check softmax/v2"), "{shown}");
        assert!(lines[3].starts_with("      total ━━━━━━━━━━━━━━━━╸ ") && lines[3].contains(" 2/4 "), "{shown}");
        let tally = Tally { ran: 1, skipped: 1, ..Tally::default() };
        fancy.report(&Event::Finished { tally, wall: Duration::ZERO, exit_code: 0 });
        assert_eq!(
            term.contents(),
            "bench softmax/v1 … skipped, after softmax/v1:check\nfresh 0, restored 0, ran 1, skipped 1 in 0 ms"
        );
    }
}
