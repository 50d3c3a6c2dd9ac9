//! The short way of a round: what was edited since the last round that settled everything is built, and the rest stands as that left it.
//!
//! It is the way of `t2t build` ([`edit`](crate::cli::edit)), on servers that run and over what is in flight. It does not know what was edited.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use t2t_model::event::Event;
use t2t_store::store::noop_cache::NoopCache;

use super::Watching;
use super::inbox::Due;
use crate::cli::answer::{self, CACHE, Told};
use crate::cli::edit::{Ahead, Opened};
use crate::cli::edits::Edits;
use crate::cli::unchanged::{self, Since};
use crate::cli::{context, executor};
use crate::engine::{Begins, Ended, InFlight, Report};
use crate::reporter::View;
use crate::session::{Options, Probing, Session};

/// What the short way came to.
pub(super) enum Short {
    /// The round is over.
    Done,
    /// The whole is to be looked at.
    Look(Ahead),
}

impl Watching<'_> {
    /// Takes the short way, where there is one.
    pub(super) fn round_of_edits(&mut self, due: &Due, since: Instant) -> Short {
        let is_asked_again = due.again.is_some();
        let place = self.answer().filter(|_| self.is_read && self.picked.is_some() && !is_asked_again);
        let Some(place) = place else { return Short::Look(Ahead::default()) };
        let bytes = place.bytes();
        let running = self.in_flight.as_ref().map(InFlight::ops).unwrap_or_default();
        match unchanged::since(&place, &bytes, &self.root, &running, &|| {}) {
            Since::Nothing(told) => {
                self.tell_that_all_stands(&told, since);
                Short::Done
            }
            Since::Edits(edits) => self.build_part(*edits, &place, since),
            Since::More => Short::Look(Ahead::default()),
        }
    }

    /// Returns where the answer of the last round is kept.
    fn answer(&self) -> Option<NoopCache> {
        let options = context::options(self.common, &self.root, Probing::Never);
        let key = unchanged::key(self.common, &self.arguments, &options)?;
        Some(NoopCache::of(&self.root.join(CACHE), key))
    }

    fn tell_that_all_stands(&mut self, told: &Told, since: Instant) {
        let mut view = self.view.borrow_mut();
        view.begin_part(&BTreeSet::new());
        for event in &told.events {
            match event {
                Event::Finished { tally, exit_code, .. } => {
                    self.code = Some(*exit_code);
                    view.report(&Event::Finished { tally: *tally, wall: since.elapsed(), exit_code: *exit_code });
                }
                event => tell_of_others(event, &BTreeSet::new(), view.as_mut()),
            }
        }
    }

    fn build_part(&mut self, edits: Edits<'_>, place: &NoopCache, since: Instant) -> Short {
        let look = || Short::Look(Ahead::default());
        let Some((old, _)) = &self.picked else { return look() };
        let (servers, toolchain) = (Arc::clone(&old.pool), old.toolchain.clone());
        let pool = Some(Arc::clone(&servers));
        let executor = executor::given(self.arguments.on.as_deref());
        let known = context::options(self.common, &self.root, Probing::Known);
        let options = Options { executor, pool, toolchain, ..known };
        let opened = Opened::open(&self.arguments, edits, &self.root, &options, &self.interrupt);
        let Some(mut opened) = opened.filter(|opened| Arc::ptr_eq(&opened.session.pool, &servers)) else {
            return look();
        };
        let Ok(settings) = self.settings(&opened.session) else { return look() };
        if settings.remote.is_some() {
            return look();
        }
        if let Some((old, _)) = &self.picked {
            self.relevance.extend(old);
        }
        opened.session.pool.begin_build();
        self.settings = Some(settings.clone());
        let ops = opened.telling.ops();
        self.view.borrow_mut().begin_part(&ops);
        let wanted = opened.wanted.clone();
        let Opened { session, telling, .. } = &mut opened;
        let mut tell = |event: &Event, view: &mut dyn View| {
            telling.tell(session, event, &mut |event| tell_of_others(event, &ops, view));
        };
        let built = self.run(session, &wanted, &settings, Begins::Anything, &mut tell);
        let (session, short) = match built {
            Ok(report) => self.end_part(opened, &report, &ops, place, since),
            Err(error) => {
                self.fail(&error.into());
                (opened.session, Short::Done)
            }
        };
        self.picked = Some((session, wanted));
        short
    }

    fn end_part(
        &mut self,
        mut opened: Opened<'_>,
        report: &Report,
        ops: &BTreeSet<String>,
        place: &NoopCache,
        since: Instant,
    ) -> (Session, Short) {
        if !self.has_settled(report) {
            return (opened.session, Short::Done);
        }
        let Some(whole) = opened.whole(report, false) else {
            let ahead = opened.ahead(report);
            return (opened.session, Short::Look(ahead));
        };
        opened.telling.end(&mut |event| tell_of_others(event, ops, self.view.borrow_mut().as_mut()));
        self.failed.retain(|target| !ops.contains(&target.op));
        self.take_failed(&opened.session, report);
        self.tell_end(&opened.session, whole.tally, whole.exit_code, since);
        (opened.keep(place, report, whole, String::new()), Short::Done)
    }

    /// Keeps the answer of a round that looked at the whole: what the next one needs not look at.
    pub(super) fn keep_answer(&self, session: &Session, report: &Report, failures: &[Event], exit_code: u8) {
        let is_whole = report.ended == Ended::Settled && report.faults.is_empty();
        let Some(place) = self.answer().filter(|_| is_whole) else { return };
        let (events, summary) = (answer::told_again(session, report, failures), answer::summary(session, report));
        let told = Told { events, table: String::new(), exit_code, summary };
        answer::keep(&place, session, report, told, answer::summaries(session, report));
    }
}

/// Tells an event, but for a failure of another op than `ops`: that stands, and was told when it came to be.
fn tell_of_others(event: &Event, ops: &BTreeSet<String>, view: &mut dyn View) {
    let is_of_other = event.target().is_some_and(|target| !ops.contains(&target.op));
    if !(is_of_other && matches!(event, Event::Failure { .. })) {
        view.report(event);
    }
}
