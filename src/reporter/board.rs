//! The board: the state of a watched workspace, redrawn in place on a terminal: a line an op, what runs, what failed and why.
//!
//! It knows of the workspace what events say, and nothing of keys but their names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::{Duration, Instant};

use console::{Style, measure_text_width, truncate_str};
use t2t_model::action::{Phase, Target};
use t2t_model::event::Event;
use t2t_model::record::Outcome;
use t2t_report::figures;

use crate::reporter::lines::{Lines, named};
use crate::reporter::{Reporter, Screen, View, said};

/// What the keys do.
const KEYS: &str = "r rerun · f failed only · e explain · q quit";

/// How many notices stay.
const NOTICES: usize = 3;

/// How often the times of running actions are redrawn.
const TICK: Duration = Duration::from_secs(1);

/// How a place, an op or a variant, stands by its phases.
type Standing = BTreeMap<Phase, Stand>;

/// How an action stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stand {
    Passed,
    Rejected(String),
    NotJudged,
    Skipped,
    Lost,
}

/// Draws the board.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub(crate) struct Board<W> {
    out: W,
    lines: Lines,
    screen: Box<dyn Fn() -> Screen>,
    height: Box<dyn Fn() -> usize>,
    /// Op → variant, or nothing for the op itself → its state. The ops are in the order in which they appeared.
    ops: Vec<(String, BTreeMap<Option<String>, Standing>)>,
    /// Targets that this round has reported, and that therefore still exist.
    met: BTreeSet<Target>,
    /// The ops that this round looks at, where it does not look at all.
    part: Option<BTreeSet<String>>,
    failures: Vec<(Target, String)>,
    running: Vec<(Target, Instant)>,
    /// Why the actions of the last round that ran any ran.
    whys: Vec<(Target, Vec<String>)>,
    is_new_round: bool,
    is_building: bool,
    is_explaining: bool,
    notices: Vec<String>,
    problem: Option<String>,
    last: Option<String>,
    drawn: usize,
    drawn_at: Option<Instant>,
    is_changed: bool,
}

impl<W: Write> Board<W> {
    /// Returns the board on `out`, a terminal that `screen` and `height` describe at each time.
    pub(super) fn new(
        out: W,
        lines: Lines,
        screen: impl Fn() -> Screen + 'static,
        height: impl Fn() -> usize + 'static,
    ) -> Self {
        Self {
            out,
            lines,
            screen: Box::new(screen),
            height: Box::new(height),
            ops: Vec::new(),
            met: BTreeSet::new(),
            part: None,
            failures: Vec::new(),
            running: Vec::new(),
            whys: Vec::new(),
            is_new_round: false,
            is_building: true,
            is_explaining: false,
            notices: Vec::new(),
            problem: None,
            last: None,
            drawn: 0,
            drawn_at: None,
            is_changed: true,
        }
    }

    fn begin(&mut self) {
        self.met.clear();
        self.part = None;
        self.problem = None;
        self.is_new_round = true;
        self.is_building = true;
    }

    fn start(&mut self, target: &Target, why: &[String]) {
        if std::mem::take(&mut self.is_new_round) {
            self.whys.clear();
            self.notices.clear();
        }
        self.whys.push((target.clone(), why.to_vec()));
        self.running.push((target.clone(), Instant::now()));
    }

    fn settle(&mut self, target: &Target, stand: Stand) {
        self.running.retain(|(running, _)| running != target);
        self.met.insert(target.of_attempt(1));
        self.failures.retain(|(failed, _)| failed != target);
        if target.op.is_empty() {
            return;
        }
        let place = self.ops.iter().position(|(op, _)| *op == target.op).unwrap_or_else(|| {
            self.ops.push((target.op.clone(), BTreeMap::new()));
            self.ops.len() - 1
        });
        self.ops[place].1.entry(target.variant.clone()).or_default().insert(target.phase, stand);
    }

    /// Drops what a round that is over did not meet where it looked: it is not there any more.
    fn finish(&mut self) {
        let is_looked_at = |op: &String| self.part.as_ref().is_none_or(|part| part.contains(op));
        let is_there = |target: &Target| self.met.contains(&target.of_attempt(1)) || !is_looked_at(&target.op);
        self.failures.retain(|(target, _)| is_there(target));
        for (op, variants) in &mut self.ops {
            for (variant, standing) in &mut *variants {
                standing.retain(|phase, _| is_there(&Target { variant: variant.clone(), ..Target::of_op(op, *phase) }));
            }
            variants.retain(|_, standing| !standing.is_empty());
        }
        self.ops.retain(|(_, variants)| !variants.is_empty());
    }

    fn notice(&mut self, line: String) {
        self.notices.push(line);
        let surplus = self.notices.len().saturating_sub(NOTICES);
        self.notices.drain(..surplus);
    }

    fn painted(&self, style: Style, text: &str) -> String {
        self.lines.painted(style, text)
    }

    /// Returns the lines of the board, whatever their number and width.
    fn rows(&self) -> Vec<String> {
        let widest = self.ops.iter().map(|(op, _)| measure_text_width(op)).max().unwrap_or(0);
        let mut rows: Vec<String> =
            self.ops.iter().map(|(op, variants)| format!("{op:widest$}  {}", self.stands(op, variants))).collect();
        let dim = || Style::new().dim();
        let mut part = |lines: Vec<String>| {
            if !lines.is_empty() {
                rows.push(String::new());
                rows.extend(lines);
            }
        };
        part(self.failures.iter().flat_map(|(_, text)| text.lines().map(str::to_owned)).collect());
        part(self.problem.iter().flat_map(|text| text.lines().map(str::to_owned)).collect());
        if self.is_explaining {
            part(self.explained());
        }
        part(self.notices.clone());
        let running = self.running.iter().map(|(target, since)| {
            let seconds = since.elapsed().as_secs();
            let time =
                if seconds == 0 { String::new() } else { format!(" {}", figures::time(Duration::from_secs(seconds))) };
            named(target) + &time
        });
        let running: Vec<String> = running.collect();
        let state = match (running.is_empty(), &self.last) {
            (false, _) => format!("{} {}", self.painted(Style::new().cyan(), "running"), running.join(" · ")),
            (true, _) if self.is_building => "building".to_owned(),
            (true, last) => last.clone().unwrap_or_else(|| "waiting for a change".to_owned()),
        };
        part(vec![state, self.painted(dim(), KEYS)]);
        rows
    }

    fn stands(&self, op: &str, variants: &BTreeMap<Option<String>, Standing>) -> String {
        let words = variants.iter().filter_map(|(variant, standing)| {
            let runs = |(target, _): &&(Target, Instant)| target.op == *op && target.variant == *variant;
            let mark = if self.running.iter().any(|running| runs(&running)) {
                self.painted(Style::new().cyan(), "…")
            } else {
                self.mark(standing)
            };
            match variant {
                Some(variant) => Some(format!("{mark} {variant}")),
                // Of the op's own phases only what is wrong is shown.
                None => standing.values().any(|stand| *stand != Stand::Passed).then(|| mark.clone()),
            }
        });
        words.collect::<Vec<_>>().join("  ")
    }

    fn mark(&self, standing: &Standing) -> String {
        let red = || Style::new().red().bold();
        let rejected = standing.values().find_map(|stand| match stand {
            Stand::Rejected(class) => Some(class),
            _ => None,
        });
        if let Some(class) = rejected {
            return self.painted(red(), &format!("✖ {class}"));
        }
        if standing.values().any(|stand| *stand == Stand::Lost) {
            return self.painted(red(), "✖ lost");
        }
        if standing.values().any(|stand| *stand == Stand::NotJudged) {
            return self.painted(Style::new().yellow(), "⏭ not judged");
        }
        if standing.values().any(|stand| *stand == Stand::Skipped) {
            return self.painted(Style::new().yellow(), "⏭");
        }
        self.painted(Style::new().green(), "✔")
    }

    fn explained(&self) -> Vec<String> {
        if self.whys.is_empty() {
            return vec!["nothing has run yet".to_owned()];
        }
        self.whys.iter().map(|(target, why)| format!("{}: {}", named(target), why.join("; "))).collect()
    }

    /// Returns the rows as they fit: too many lose their middle, too wide ones their end.
    fn fitting(&self) -> Vec<String> {
        let (width, height) = ((self.screen)().width.unwrap_or(80), (self.height)().max(4));
        let rows = self.rows();
        let mut shown: Vec<String> = Vec::new();
        if rows.len() < height {
            shown.extend(rows);
        } else {
            // The end says what is going on.
            let tail = rows.len() - height.div_ceil(2) + 1;
            let head = height - (rows.len() - tail) - 2;
            shown.extend_from_slice(&rows[..head]);
            shown.push(format!("[{} lines more]", tail - head));
            shown.extend_from_slice(&rows[tail..]);
        }
        shown.iter().map(|row| truncate_str(row, width.saturating_sub(1), "…").into_owned()).collect()
    }
}

impl<W: Write> Reporter for Board<W> {
    fn report(&mut self, event: &Event) {
        self.is_changed = true;
        match event {
            Event::BuildStarted { .. } => self.begin(),
            Event::ActionStarted { target, why, .. } => self.start(target, why),
            Event::ActionFinished { target, outcome, .. }
            | Event::ActionFresh { target, outcome, .. }
            | Event::ActionRestored { target, outcome, .. } => self.settle(target, stand(outcome)),
            Event::ActionSkipped { target, .. } => self.settle(target, Stand::Skipped),
            Event::ActionLost { target, reason, .. } => {
                self.settle(target, Stand::Lost);
                self.failures.push((target.clone(), format!("{} … lost: {reason}", named(target))));
            }
            Event::ActionCancelled { target, .. } | Event::ActionAgain { target, .. } => {
                self.running.retain(|(running, _)| running != target);
            }
            Event::Failure { target, .. } => {
                let text = self.lines.of(event).unwrap_or_default();
                self.failures.retain(|(failed, _)| failed != target);
                self.failures.push((target.clone(), text));
            }
            Event::Finished { .. } => {
                self.is_building = false;
                self.finish();
                self.last = self.lines.of(event);
            }
            Event::Warning { .. }
            | Event::Note { .. }
            | Event::Waiting { .. }
            | Event::RemoteUsed { .. }
            | Event::Vouched { .. } => {
                if let Some(line) = self.lines.of(event) {
                    self.notice(line);
                }
            }
            Event::ActionMissing { .. } | Event::DeviceUsed { .. } => {}
        }
        // A build that looks at thousands of actions draws none of them by itself.
        if !matches!(event, Event::ActionFresh { .. } | Event::ActionRestored { .. }) {
            self.draw();
        }
    }
}

impl<W: Write> View for Board<W> {
    fn change(&mut self, files: &[String]) {
        self.is_changed = true;
        self.notices.clear();
        self.notice(self.painted(Style::new().dim(), &format!("changed: {}", said(files))));
    }

    fn begin_part(&mut self, ops: &BTreeSet<String>) {
        self.is_changed = true;
        self.begin();
        self.part = Some(ops.clone());
    }

    fn problem(&mut self, text: &str) {
        self.is_changed = true;
        self.problem = Some(text.to_owned());
        self.is_building = false;
        self.draw();
    }

    fn explain(&mut self) {
        self.is_changed = true;
        self.is_explaining = !self.is_explaining;
        self.draw();
    }

    fn draw(&mut self) {
        let is_due = !self.running.is_empty() && self.drawn_at.is_none_or(|at| at.elapsed() >= TICK);
        if !self.is_changed && !is_due {
            return;
        }
        let rows = self.fitting();
        let up = if self.drawn == 0 { String::new() } else { format!("\x1b[{}A", self.drawn) };
        let text: String = rows.iter().flat_map(|row| [row.as_str(), "\x1b[K\n"]).collect();
        let _ = self.out.write_all(format!("{up}\r{text}\x1b[J").as_bytes()).and_then(|()| self.out.flush());
        (self.drawn, self.drawn_at, self.is_changed) = (rows.len(), Some(Instant::now()), false);
    }

    fn close(&mut self) {
        self.is_changed = true;
        self.running.clear();
        self.draw();
    }
}

fn stand(outcome: &Outcome) -> Stand {
    match outcome {
        Outcome::Passed => Stand::Passed,
        Outcome::Rejected { class } => Stand::Rejected(class.clone()),
        Outcome::NotJudged { .. } => Stand::NotJudged,
        Outcome::Lost { .. } => Stand::Lost,
    }
}

#[cfg(test)]
mod tests;
