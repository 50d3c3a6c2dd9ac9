//! What a change can affect: the actions whose results before it need not be those after it.
//!
//! It compares two graphs, one of each state of the workspace, and what stands in each. It reads no file, and does not know what a revision is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use t2t_model::action::{Action, Phase, Target};
use t2t_model::manifest::Manifest;
use t2t_model::path::RepoPath;
use t2t_model::record::Record;

use crate::decide::{Tree, is_judged_otherwise};
use crate::explain::{JUDGED_OTHERWISE, Reason, differences};
use crate::graph::{Graph, Index};

/// How many files or actions one cause names in words.
const NAMED: usize = 3;

/// One state of the workspace.
pub struct State<'a> {
    /// Its actions.
    pub graph: &'a Graph,
    /// By number of the action: the result that stands, where one is known to.
    pub standing: &'a [Option<Record>],
    /// What its files are.
    pub tree: &'a Tree<'a>,
}

/// Why an action is affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// There was no such action.
    New,
    /// Its manifest differs in these.
    Facts(Vec<Reason>),
    /// It needs other actions, or other artifacts of them, than it did.
    Needs,
    /// It may take longer than it might: the deadline that it missed, it may keep.
    Deadline {
        /// How long it might take.
        old: Duration,
        /// How long it may.
        new: Duration,
    },
    /// It is a bench that was rejected, and what its timed calls are judged by differs.
    Judging,
    /// These files changed, which it turned out to read, or to look for.
    Read(Vec<RepoPath>),
    /// These files changed, which no import names; no result of it is known that would say whether it reads them.
    MayRead(Vec<RepoPath>),
    /// Another result stands than stood.
    Result,
    /// These are affected, and it needs them.
    After(Vec<Target>),
}

/// Returns what a change from `old` to `new` can affect, with the causes: every action whose result may differ or be gone, and those that need one. `loose` are the
/// changed files that no closure holds and that an action may read all the same. A result that is not known is taken to be a pass: what can undo a rejection alone (another line, a longer deadline) does
/// not count for it. Without `old` nothing could be built before, and everything is affected.
#[must_use]
pub fn affected(old: Option<&State<'_>>, new: &State<'_>, loose: &[RepoPath]) -> BTreeMap<Index, Vec<Cause>> {
    let mut found: BTreeMap<Index, Vec<Cause>> = BTreeMap::new();
    let mut same = BTreeSet::new();
    for index in new.graph.indices() {
        match compared(old, new, index, loose) {
            Verdict::Same => _ = same.insert(index),
            Verdict::Unlike(causes) => _ = found.insert(index, causes),
            Verdict::AsItsNeeds => {}
        }
    }
    spread(new.graph, &same, &mut found);
    found
}

/// What the action itself says.
enum Verdict {
    /// The same result stands in both states, even if its dependencies changed.
    Same,
    /// It is affected.
    Unlike(Vec<Cause>),
    /// It is affected if something is that it needs.
    AsItsNeeds,
}

fn compared(old: Option<&State<'_>>, new: &State<'_>, index: Index, loose: &[RepoPath]) -> Verdict {
    let after = new.graph.action(index);
    let before = old.and_then(|old| Some((old, old.graph.find(after.target())?)));
    let Some((old, there)) = before else { return Verdict::Unlike(vec![Cause::New]) };
    let mut causes: Vec<Cause> = declared(old.graph.action(there), after);
    let stood = old.standing[there.number()].as_ref();
    let stands = new.standing[index.number()].as_ref();
    causes.extend(read(stood.into_iter().chain(stands), old, new));
    // Only a result names the files that an action reads beside its imports. Without one every such file counts.
    if stood.is_none() && stands.is_none() && may_read(after) && !loose.is_empty() {
        causes.push(Cause::MayRead(loose.to_vec()));
    }
    let is_declared_alike = causes.is_empty();
    if let (Some(stood), Some(stands)) = (stood, stands) {
        if is_declared_alike && stood.outputs == stands.outputs && stood.outcome == stands.outcome {
            return Verdict::Same;
        }
        causes.extend(is_declared_alike.then_some(Cause::Result));
    }
    if stood.is_some_and(|record| record.outcome.is_timeout()) {
        causes.extend(longer(old.graph.action(there), after));
    }
    causes.extend(stood.is_some_and(|record| is_judged_otherwise(after, record)).then_some(Cause::Judging));
    if causes.is_empty() { Verdict::AsItsNeeds } else { Verdict::Unlike(causes) }
}

/// Returns in what the two declare other than each other.
fn declared(before: &Action, after: &Action) -> Vec<Cause> {
    let manifest = |action: &Action| Manifest { facts: action.facts.clone() };
    let facts = (before.facts != after.facts).then(|| Cause::Facts(differences(&manifest(before), &manifest(after))));
    let needs = (before.dependencies != after.dependencies).then_some(Cause::Needs);
    facts.into_iter().chain(needs).collect()
}

fn longer(before: &Action, after: &Action) -> Option<Cause> {
    let (old, new) = (before.deadline, after.deadline);
    (new > old).then_some(Cause::Deadline { old, new })
}

/// Returns the files that `records` read and that differ between the states.
fn read<'a>(records: impl Iterator<Item = &'a Record>, old: &State<'_>, new: &State<'_>) -> Option<Cause> {
    let seen = records.flat_map(|record| &record.discovered);
    let changed = seen.filter(|(path, like)| (old.tree)(path, **like) != (new.tree)(path, **like));
    let changed: BTreeSet<&RepoPath> = changed.map(|(path, _)| path).collect();
    (!changed.is_empty()).then(|| Cause::Read(changed.into_iter().cloned().collect()))
}

/// Whether the action runs kernel code, which can read any file of the kernels.
fn may_read(action: &Action) -> bool {
    matches!(action.target().phase, Phase::Compile | Phase::Check | Phase::Tune | Phase::Bench)
}

/// Adds the dependents of affected actions, except those with the `same` result in both states.
fn spread(graph: &Graph, same: &BTreeSet<Index>, found: &mut BTreeMap<Index, Vec<Cause>>) {
    let mut open: Vec<Index> = found.keys().copied().collect();
    let mut after: BTreeMap<Index, BTreeSet<Index>> = BTreeMap::new();
    while let Some(source) = open.pop() {
        for dependent in graph.dependents(source).into_iter().filter(|index| !same.contains(index)) {
            let is_first = !found.contains_key(&dependent) && !after.contains_key(&dependent);
            after.entry(dependent).or_default().insert(source);
            open.extend(is_first.then_some(dependent));
        }
    }
    for (index, sources) in after {
        let names = sources.into_iter().map(|source| graph.action(source).target().clone()).collect();
        found.entry(index).or_default().push(Cause::After(names));
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("it is new"),
            Self::Facts(reasons) => f.write_str(&words(reasons, "; ", usize::MAX)),
            Self::Needs => f.write_str("its dependencies differ"),
            Self::Deadline { old, new } => write!(f, "its deadline is longer: {old:?} → {new:?}"),
            Self::Judging => f.write_str(JUDGED_OTHERWISE),
            Self::Read(files) => write!(f, "it read what changed: {}", words(files, ", ", NAMED)),
            Self::MayRead(files) => {
                write!(f, "no result says whether it reads what changed: {}", words(files, ", ", NAMED))
            }
            Self::Result => f.write_str("another result stands"),
            Self::After(targets) => write!(f, "after {}", words(targets, ", ", NAMED)),
        }
    }
}

/// Returns the first `most` of `all`, and how many more there are.
fn words<T: fmt::Display>(all: &[T], between: &str, most: usize) -> String {
    let named: Vec<String> = all.iter().take(most).map(ToString::to_string).collect();
    let more = if all.len() > most { format!(" and {} more", all.len() - most) } else { String::new() };
    format!("{}{more}", named.join(between))
}
