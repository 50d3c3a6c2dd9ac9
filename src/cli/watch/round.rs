//! The build of a round of a watch: what runs, what it comes to, and what is got ready for the next one.

use std::cell::RefCell;
use std::time::Instant;

use t2t_host::cores;
use t2t_model::event::{Event, Tally};
use t2t_plan::graph::Wanted;
use t2t_plan::graph::pick::named;
use t2t_plan::schedule::Settled;

use super::inbox::{Again, Due};
use super::{WRITTEN, Watching, is_relevant};
use crate::cli::edit::Ahead;
use crate::cli::error::CliError;
use crate::cli::{setup, streams, totals};
use crate::engine::{self, Begins, Command, Control, Ended, Report, Settings};
use crate::reporter::View;
use crate::session::Session;

impl Watching<'_> {
    /// Builds the whole. Of it, `ahead` was built in this round before.
    pub(super) fn build(&mut self, session: Session, mut wanted: Wanted, due: &Due, since: Instant, ahead: &Ahead) {
        let settings = match self.settings(&session) {
            Ok(settings) => settings,
            Err(error) => return self.fail(&error),
        };
        self.settings = Some(settings.clone());
        if self.picked.is_none() {
            for event in setup::introduction(self.common, &session, self.lent().map(|nodes| &**nodes)) {
                self.view.borrow_mut().report(&event);
            }
        }
        self.force(&session, &mut wanted, due.again);
        self.view.borrow_mut().report(&setup::started(&session, &wanted, &settings));
        self.relevance.clear();
        let mut failures = Vec::new();
        let built = self.run(&session, &wanted, &settings, Begins::Anything, &mut |event, view| {
            view.report(event);
            failures.extend(Some(event).filter(|event| matches!(event, Event::Failure { .. })).cloned());
        });
        if let Err(error) = session.sources.save() {
            let text = format!("cannot keep what is known of the sources: {error}");
            self.view.borrow_mut().report(&Event::Warning { text });
        }
        match built {
            Ok(report) if self.has_settled(&report) => {
                let code = self.finish(&session, &report, since, ahead);
                self.keep_answer(&session, &report, &failures, code);
            }
            Ok(_) => {}
            Err(error) => self.fail(&error.into()),
        }
        self.picked = Some((session, wanted));
    }

    /// Says why nothing was built.
    pub(super) fn fail(&mut self, error: &CliError) {
        self.view.borrow_mut().problem(&error.text());
        self.code = Some(error.code());
    }

    /// Builds, taking over actions in flight, until all is settled or something changes. What happens is passed to `tell`.
    pub(super) fn run(
        &mut self,
        session: &Session,
        wanted: &Wanted,
        settings: &Settings,
        begins: Begins,
        tell: &mut dyn FnMut(&Event, &mut dyn View),
    ) -> Result<Report, engine::EngineError> {
        cores::keep_off_devices(&settings.shares);
        let mut in_flight = self.in_flight.take().unwrap_or_else(|| engine::in_flight(session, settings));
        let _ = self.waker.set(in_flight.waker());
        let (inbox, view, is_read, relevance) = (&self.inbox, &self.view, self.is_read, &self.relevance);
        let (last, is_first) = (&mut self.last, RefCell::new(true));
        let mut emit = |event: Event| {
            if let Event::ActionStarted { target, .. } = &event {
                if is_first.replace(false) {
                    last.clear();
                }
                last.insert(target.clone());
            }
            tell(&event, view.borrow_mut().as_mut());
        };
        let mut ask = || {
            let mut view = view.borrow_mut();
            view.draw();
            let mut inbox = inbox.borrow_mut();
            inbox.take(view.as_mut(), &session.root, &|path| {
                if is_read { is_relevant(session, relevance, path) } else { !streams::is_output(path) }
            });
            if let Some(touched) = inbox.take_passed() {
                return Command::Touched(touched);
            }
            match (inbox.due.is_any || inbox.is_quit, self.watch.is_unsettled()) {
                (true, _) => Command::Leave,
                (false, true) => Command::Hold,
                (false, false) => Command::GoOn,
            }
        };
        let mut control = Control::By { ask: &mut ask, begins };
        let built =
            engine::build_on(session, wanted, settings, &self.interrupt, &mut in_flight, &mut control, &mut emit);
        self.in_flight = Some(in_flight);
        built
    }

    /// Forces the requested actions to run although a result stands.
    fn force(&self, session: &Session, wanted: &mut Wanted, again: Option<Again>) {
        let targets = match again {
            None => return,
            Some(Again::Failed) => &self.failed,
            Some(Again::Last) => &self.last,
        };
        let all = again == Some(Again::Last) && targets.is_empty();
        let selection = self.arguments.targets.selection(session);
        let named =
            selection.map(|selection| named(&session.graph, &selection).unwrap_or_default()).unwrap_or_default();
        for index in session.graph.indices().filter(|index| wanted.wanted[index.number()]) {
            let is_meant = targets.contains(session.graph.action(index).target()) || (all && named.contains(&index));
            wanted.forced[index.number()] = is_meant;
        }
    }

    /// Returns whether a round came to its end: it was not left, and is not to be done again.
    pub(super) fn has_settled(&mut self, report: &Report) -> bool {
        if let Ended::Outdated(_) = &report.ended {
            // The file may not be written completely yet.
            let mut inbox = self.inbox.borrow_mut();
            inbox.wait(WRITTEN, self.view.borrow_mut().as_mut(), &self.root, &|_| true);
            inbox.due.is_any = true;
        }
        report.ended == Ended::Settled && !report.interrupted
    }

    /// Takes what a round of the whole came to, tells it, and returns the exit code.
    fn finish(&mut self, session: &Session, report: &Report, since: Instant, ahead: &Ahead) -> u8 {
        let mut tally = Tally::default();
        totals::count(report, &mut tally);
        ahead.correct(&mut tally, &|target| {
            let index = session.graph.find(target);
            index.is_some_and(|index| matches!(report.settled[index.number()], Some(Settled::Fresh(_))))
        });
        self.failed.clear();
        self.take_failed(session, report);
        let code = if report.faults.is_empty() { totals::exit_code(report) } else { 2 };
        self.tell_end(session, tally, code, since);
        let faults: Vec<String> = report.faults.iter().map(|fault| CliError::of_fault(fault).text()).collect();
        if !faults.is_empty() {
            self.view.borrow_mut().problem(&faults.join("\n"));
        }
        code
    }

    /// Notes what is rejected or lost.
    pub(super) fn take_failed(&mut self, session: &Session, report: &Report) {
        let settled =
            session.graph.indices().filter_map(|index| Some((index, report.settled[index.number()].as_ref()?)));
        let is_bad = |settled: &Settled| totals::is_rejected(settled) || matches!(settled, Settled::Lost(_));
        let bad = settled.filter(|(_, settled)| is_bad(settled));
        self.failed.extend(bad.map(|(index, _)| session.graph.action(index).target().clone()));
    }

    /// Tells that a round is over, and has the servers get ready for the next one.
    pub(super) fn tell_end(&mut self, session: &Session, tally: Tally, code: u8, since: Instant) {
        self.code = Some(code);
        self.view.borrow_mut().report(&Event::Finished { tally, wall: since.elapsed(), exit_code: code });
        // What the next save asks for first runs on a node.
        if self.lent().is_none() {
            engine::get_ready(session, self.in_flight.as_ref(), Some(&self.next_salt));
        }
    }
}
