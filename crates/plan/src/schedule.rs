//! The schedule: which actions may be decided now, and what was decided.
//!
//! Readiness is apart from freshness: an action is decided at the moment its dependencies have settled, so early cutoff, restoring and
//! skipping all fall out of one loop. It performs nothing and reads nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;

use t2t_model::action::{Action, Dependency, Need, Phase, Source, Target};
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::manifest::{Fact, Manifest};
use t2t_model::path::RepoPath;
use t2t_model::record::{Blob, KERNEL, Outcome, Record, Seen};

use crate::decide::{Decision, Tree, Why, decide};
use crate::graph::expand::meanings;
use crate::graph::{Graph, Index, Wanted};

/// The fact in place of an artifact of an action that would run: in a dry run the artifact is unknown.
pub(crate) const PLANNED: &str = "to be made";

/// What became of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// Its last result stands.
    Fresh(Arc<Record>),
    /// An earlier result came back.
    Restored(Arc<Record>),
    /// It ran.
    Ran(Arc<Record>),
    /// It did not run, since this one did not end as needed.
    Skipped(Target),
    /// The machine failed.
    Lost(String),
    /// It would run. In a dry run its artifacts are unknown.
    Planned,
    /// No result of it stands, and it must not run. Its artifacts are unknown.
    Missing,
    /// It did not run, for a reason that has nothing to do with it: what the build may spend is spent.
    Withheld(String),
    /// It is of an attempt that nothing asks for: none before was rejected for what another one can help, or there is no other.
    NotNeeded,
}

impl Settled {
    /// Returns the record behind it, where there is one.
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Fresh(record) | Self::Restored(record) | Self::Ran(record) => Some(record),
            Self::Skipped(_) | Self::Lost(_) | Self::Planned | Self::Missing | Self::Withheld(_) | Self::NotNeeded => {
                None
            }
        }
    }

    fn meets(&self, need: Need) -> bool {
        // How it would end is unknown. A pass is assumed, so that its dependents are listed, too.
        if matches!(self, Self::Planned | Self::Missing) {
            return need != Need::Reject;
        }
        let outcome = self.record().map(|record| &record.outcome);
        match need {
            Need::Pass => outcome.is_some_and(Outcome::is_pass),
            Need::Reject => outcome.is_some_and(Outcome::asks_for_another),
            Need::Settle => true,
        }
    }

    fn artifact(&self, name: &str) -> Option<Blob> {
        self.record().and_then(|record| record.outputs.get(name)).copied()
    }
}

/// What the caller is to do.
#[derive(Debug)]
pub enum Step {
    /// Nothing: this action settled without running. For those who watch.
    Settled(Index),
    /// Nothing of this action yet: the history may lack results of this key. Have it recall them, then call `again`.
    Recall {
        /// Which.
        index: Index,
        /// Its key.
        key: Digest,
    },
    /// Nothing of this action yet: its kernel file was made by another action. Read it, call `supply`, then it is decided.
    Read {
        /// Which.
        index: Index,
        /// The kernel file's place.
        path: RepoPath,
        /// Its bytes.
        kernel: Blob,
    },
    /// Perform this action, then call `finish`.
    Run {
        /// Which.
        index: Index,
        /// Its manifest, whole.
        manifest: Manifest,
        /// Why it runs.
        why: Why,
    },
}

/// A kernel file that another action made, as far as results depend on it.
#[derive(Debug, Clone, Default)]
pub struct Made {
    /// The file and the workspace files it imports.
    pub closure: BTreeMap<RepoPath, Source>,
    /// Why it cannot be used.
    pub fault: Option<String>,
}

/// The loop's state.
#[derive(Debug)]
pub struct Schedule<'g> {
    graph: &'g Graph,
    wanted: Wanted,
    settled: Vec<Option<Settled>>,
    waiting: Vec<usize>,
    ready: BinaryHeap<Reverse<Index>>,
    /// What settled since it was asked last.
    news: Vec<Index>,
    /// Actions whose kernel files were made, with what is known of them by that.
    supplied: HashMap<Index, Action>,
}

impl<'g> Schedule<'g> {
    /// Returns the schedule of the wanted part of `graph`, nothing settled.
    #[must_use]
    pub fn new(graph: &'g Graph, wanted: Wanted) -> Self {
        let waiting: Vec<usize> = graph.indices().map(|index| graph.dependencies(index).len()).collect();
        let ready = graph
            .indices()
            .filter(|index| wanted.wanted[index.number()] && waiting[index.number()] == 0)
            .map(Reverse)
            .collect();
        Self {
            graph,
            wanted,
            settled: vec![None; graph.count()],
            waiting,
            ready,
            news: Vec::new(),
            supplied: HashMap::new(),
        }
    }

    /// Decides the next action whose dependencies have settled. None when all that could be decided is: the caller performs what it was
    /// given, finishes it, and asks again.
    pub fn next_step(&mut self, history: &History, tree: &Tree<'_>) -> Option<Step> {
        // The lowest index first, so that actions are decided in the order of ops.yaml, which is the order in which people read them.
        let Reverse(index) = self.ready.pop()?;
        if let Some(settled) = self.without_running(index) {
            return Some(self.settle(index, settled));
        }
        if let Some((path, kernel)) = self.unread(index) {
            return Some(Step::Read { index, path, kernel });
        }
        let upstream = self.upstream(index);
        let action = self.action(index);
        let key = Manifest::key_with(&action.facts, &upstream);
        let decision = if self.wanted.forced[index.number()] {
            Decision::Stale(Why::Forced)
        } else {
            decide(action, key, history, &|path, like| seen_by(action, path, like, tree))
        };
        if !matches!(decision, Decision::Fresh(_) | Decision::Stale(Why::Forced)) && !history.has_all_of(key) {
            return Some(Step::Recall { index, key });
        }
        Some(match decision {
            Decision::Fresh(record) => self.settle(index, Settled::Fresh(Arc::clone(record))),
            Decision::Restore(record) if record.identity == action.identity => {
                self.settle(index, Settled::Restored(Arc::clone(record)))
            }
            Decision::Restore(record) => {
                // It comes from an identical action. Kept under this identity, the next build finds it as this action's own.
                let adopted = Record { identity: action.identity.clone(), ..(**record).clone() };
                self.settle(index, Settled::Restored(Arc::new(adopted)))
            }
            Decision::Stale(why) => {
                let facts = action.facts.clone().into_iter().chain(upstream).collect();
                Step::Run { index, manifest: Manifest { facts }, why }
            }
        })
    }

    /// Returns the action at `index`, with what is known of its kernel file where another action made that.
    #[must_use]
    pub fn action(&self, index: Index) -> &Action {
        self.supplied.get(&index).unwrap_or_else(|| self.graph.action(index))
    }

    /// Takes the kernel file of an action that was to be read for. Its facts are those of an action with such a file from the beginning, so its key is, too.
    pub fn supply(&mut self, index: Index, made: Made) {
        let mut action = self.graph.action(index).clone();
        action.facts.extend(meanings(&made.closure));
        action.facts.extend(made.fault.map(|fault| ("fault".to_owned(), Fact::Text(fault))));
        action.sources.extend(made.closure);
        self.supplied.insert(index, action);
        self.again(index);
    }

    /// Returns the kernel file of an action that another action made and that was not read yet. Where that would run first its meaning is to be made, too.
    fn unread(&mut self, index: Index) -> Option<(RepoPath, Blob)> {
        let action = self.graph.action(index);
        let path = action.generated.as_ref().filter(|_| !self.supplied.contains_key(&index))?;
        let maker = Target { phase: Phase::Generate, ..action.target().clone() };
        let settled = self.graph.find(&maker).and_then(|maker| self.settled(maker));
        if let Some(kernel) = settled.and_then(|settled| settled.artifact(KERNEL)) {
            return Some((path.clone(), kernel));
        }
        let fact = (format!("source.{path}"), Fact::Text(PLANNED.to_owned()));
        let mut planned = action.clone();
        planned.facts.extend([fact]);
        self.supplied.insert(index, planned);
        None
    }

    /// Puts an action that was to run back: it is decided again, for more may be known by now.
    pub fn again(&mut self, index: Index) {
        debug_assert!(self.settled(index).is_none(), "what has settled is not decided again");
        self.ready.push(Reverse(index));
    }

    /// Takes what became of an action that was to run.
    pub fn finish(&mut self, index: Index, settled: Settled) {
        self.settle(index, settled);
    }

    /// Returns what became of the action at `index`, if it settled.
    #[must_use]
    pub fn settled(&self, index: Index) -> Option<&Settled> {
        self.settled[index.number()].as_ref()
    }

    /// Returns the actions that settled since it was asked last.
    pub fn take_news(&mut self) -> Vec<Index> {
        std::mem::take(&mut self.news)
    }

    /// Returns the artifacts that the action at `index` reads: fact name → blob.
    #[must_use]
    pub fn inputs(&self, index: Index) -> BTreeMap<String, Blob> {
        let mut inputs = BTreeMap::new();
        for (source, dependency) in self.graph.dependencies(index) {
            let Some(settled) = self.settled(source) else { continue };
            for name in dependency.reads {
                if let Some(blob) = settled.artifact(name) {
                    inputs.insert(self.fact_name(index, dependency, name), blob);
                }
            }
        }
        inputs
    }

    /// Returns the key under which the result of the source of the artifact `digest` is known.
    #[must_use]
    pub fn source_of(&self, digest: Digest) -> Option<Digest> {
        let records = self.settled.iter().flatten().filter_map(Settled::record);
        records
            .into_iter()
            .find(|record| record.outputs.values().any(|blob| blob.digest == digest))
            .map(|record| record.key)
    }

    fn settle(&mut self, index: Index, settled: Settled) -> Step {
        debug_assert!(self.settled[index.number()].is_none(), "an action settles once");
        self.settled[index.number()] = Some(settled);
        self.news.push(index);
        for dependent in self.graph.dependents(index) {
            self.waiting[dependent.number()] -= 1;
            if self.waiting[dependent.number()] == 0 && self.wanted.wanted[dependent.number()] {
                self.ready.push(Reverse(dependent));
            }
        }
        Step::Settled(index)
    }

    /// Returns what becomes of an action that its dependencies keep from running; None where they do not.
    fn without_running(&self, index: Index) -> Option<Settled> {
        let dependencies = self.graph.dependencies(index);
        let of = |source: Index| self.settled(source).expect("an action is decided after its dependencies");
        let (asking, others): (Vec<_>, Vec<_>) = dependencies.iter().partition(|(_, edge)| edge.need == Need::Reject);
        let unmet: Vec<_> = others.into_iter().filter(|(source, edge)| !of(*source).meets(edge.need)).collect();
        let ends_the_attempt = |source: Index| {
            let is_later = self.graph.action(source).target().attempt > 1;
            let is_no_kernel = self.graph.action(source).target().phase == Phase::Generate;
            let is_over = of(source).record().is_some() || matches!(of(source), Settled::Withheld(_));
            *of(source) == Settled::NotNeeded || (is_later && is_no_kernel && is_over)
        };
        if unmet.iter().any(|(source, _)| ends_the_attempt(*source)) {
            return Some(Settled::NotNeeded);
        }
        if let Some((source, edge)) = unmet.first() {
            // What is made again is none of what follows from it.
            let outcome = of(*source).record().map(|record| &record.outcome);
            let is_made_again = outcome.and_then(|outcome| self.graph.next_attempt(*source, outcome)).is_some();
            return Some(if is_made_again { Settled::NotNeeded } else { Settled::Skipped(edge.on.clone()) });
        }
        let asks =
            |source: Index| !self.graph.action(source).facts.contains_key("fault") && of(source).meets(Need::Reject);
        (!asking.is_empty() && !asking.iter().any(|(source, _)| asks(*source))).then_some(Settled::NotNeeded)
    }

    /// Returns the facts of an action's manifest that are known when its dependencies have settled, as they must have.
    #[must_use]
    pub fn upstream(&self, index: Index) -> BTreeMap<String, Fact> {
        let mut facts = BTreeMap::new();
        for (source, dependency) in self.graph.dependencies(index) {
            let settled = self.settled(source).expect("an action is decided after its dependencies");
            // Whoever reads what became of a variant knows nothing of attempts that were not made. The summary tells of all actions that there are.
            let is_told = self.graph.action(index).target().phase == Phase::Summary || dependency.on.attempt == 1;
            if *settled == Settled::NotNeeded && !is_told {
                continue;
            }
            for name in dependency.reads {
                facts.insert(self.fact_name(index, dependency, name), upstream(settled, name));
            }
        }
        facts
    }

    /// Returns the name of the fact of an artifact that the action at `index` reads. What becomes of a kernel file is told alike whichever attempt made it, and of
    /// several attempts the last one counts. Only what is about attempts tells them apart.
    fn fact_name(&self, index: Index, dependency: &Dependency, artifact: &str) -> String {
        let is_about_attempts = matches!(self.graph.action(index).target().phase, Phase::Generate | Phase::Summary);
        let on = &dependency.on;
        if is_about_attempts || on.phase == Phase::Generate || on.attempt == 1 {
            format!("from.{on}.{artifact}")
        } else {
            format!("from.{}.{artifact}", on.of_attempt(1))
        }
    }
}

/// Returns what a file is to an action, in the terms in which it was seen: its own kernel file is what was made for it, whatever lies in its place now.
pub fn seen_by(action: &Action, path: &RepoPath, like: Seen, tree: &Tree<'_>) -> Seen {
    let made = action.generated.as_ref().filter(|generated| *generated == path).and_then(|_| action.sources.get(path));
    match (made, like) {
        (None, _) => tree(path, like),
        (Some(source), Seen::Bytes(_)) => Seen::Bytes(source.bytes),
        (Some(source), Seen::Meaning(_) | Seen::Absent) => Seen::Meaning(source.meaning),
    }
}

fn upstream(settled: &Settled, name: &str) -> Fact {
    match settled {
        Settled::Skipped(_) | Settled::Withheld(_) | Settled::NotNeeded => Fact::Text("skipped".to_owned()),
        Settled::Lost(_) => Fact::Text("lost".to_owned()),
        Settled::Planned | Settled::Missing => Fact::Text(PLANNED.to_owned()),
        Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record) => {
            match (record.outputs.get(name), &record.outcome) {
                (Some(blob), _) => Fact::Digest(blob.digest),
                (None, Outcome::Rejected { class }) => Fact::Text(format!("rejected: {class}")),
                (None, _) => Fact::Text("none".to_owned()),
            }
        }
    }
}
