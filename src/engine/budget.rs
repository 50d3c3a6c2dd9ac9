//! What authors have taken of a build, and whether that is all that they may.
//!
//! It does not know what an attempt is about.

use std::time::{Duration, Instant};

use t2t_model::event::Event;
use t2t_plan::dispatcher::{Event as Told, Ticket};
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_report::render::attempts::Attempt;
use t2t_spec::authors::Budget;

use super::asking::ATTEMPT;
use super::{Run, Stop};
use crate::engine::perform::Performed;

/// What authors have taken of a build.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    attempts: u64,
    tokens: u64,
    /// When the first attempt began.
    since: Option<Instant>,
}

impl Spent {
    /// Notes that an attempt begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.attempts += 1;
        self.since.get_or_insert(now);
    }

    /// Notes how many tokens an author says that it took.
    pub(crate) fn add_tokens(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Returns which limit is reached, in words.
    pub(crate) fn reached(&self, budget: &Budget, now: Instant) -> Option<String> {
        let since = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let limits = [
            ("max_attempts", budget.attempts, self.attempts),
            ("max_tokens", budget.tokens, self.tokens),
            ("max_minutes", budget.minutes, since.as_secs() / 60),
        ];
        let (name, limit) = limits
            .into_iter()
            .find_map(|(name, limit, spent)| limit.filter(|limit| spent >= *limit).map(|limit| (name, limit)))?;
        Some(format!("the budget of this build is spent (`{name}: {limit}`)"))
    }
}

impl Run<'_, '_> {
    /// Counts an attempt of an author that is about to begin in this slot. Where the budget is spent it is withheld instead, and false is returned.
    pub(super) fn may_ask(&mut self, index: Index, ticket: Ticket) -> Result<bool, Stop> {
        if !self.askings.contains_key(&index) {
            return Ok(true);
        }
        let now = Instant::now();
        let Some(reason) = self.spent.reached(&self.session.spec.authors.budget, now) else {
            self.spent.begin(now);
            return Ok(true);
        };
        self.in_flight.dispatcher().handle(Told::Ended(ticket));
        self.pending.remove(&index);
        let target = self.session.graph.action(index).target().clone();
        let text = format!("no kernel of {} is asked for: {reason}", target.place());
        (self.emit)(Event::Warning { text });
        (self.emit)(Event::ActionMissing { target: target.clone(), why: vec![reason.clone()] });
        self.schedule.finish(index, Settled::Withheld(reason));
        self.has_withheld = true;
        if target.attempt > 1 {
            self.tell_withheld(&target)?;
        }
        Ok(false)
    }

    /// Adds what an author says that it took.
    pub(super) fn count_tokens(&mut self, performed: &Performed) {
        let attempt = performed.documents.get(ATTEMPT);
        let attempt: Option<Attempt> = attempt.and_then(|bytes| serde_json::from_slice(bytes).ok());
        let tokens = attempt.and_then(|attempt| attempt.usage?.tokens);
        self.spent.add_tokens(tokens.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_that_is_reached_is_named() {
        let now = Instant::now();
        let mut spent = Spent::default();
        let budget = Budget { attempts: Some(2), tokens: Some(1000), minutes: Some(1) };
        assert_eq!(spent.reached(&budget, now), None);
        spent.begin(now);
        spent.tokens = 999;
        assert_eq!(spent.reached(&budget, now), None);
        let later = now + Duration::from_mins(1);
        assert!(spent.reached(&budget, later).unwrap().contains("`max_minutes: 1`"));
        spent.tokens = 1000;
        assert!(spent.reached(&budget, now).unwrap().contains("`max_tokens: 1000`"));
        spent.begin(later);
        assert!(spent.reached(&budget, now).unwrap().contains("`max_attempts: 2`"));
        assert_eq!(spent.reached(&Budget::default(), later), None);
    }
}
