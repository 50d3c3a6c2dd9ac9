//! Explaining: the reasons for which an action runs, in words, from the manifests that were hashed.
//!
//! It reads nothing: the caller passes the old manifest, if it is still known.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use t2t_model::manifest::{Fact, Manifest};
use t2t_model::path::RepoPath;
use t2t_model::record::Seen;

use crate::decide::{FileChange, Why};
use crate::schedule::PLANNED;

/// How many actions one reason names.
const NAMED: usize = 3;

/// One reason for which an action runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It was asked for.
    Forced,
    /// There is no earlier result.
    NeverRan,
    /// A fact differs from the last result's: its name, what it was, what it is.
    Fact {
        /// The fact.
        name: String,
        /// None where there was no such fact.
        old: Option<Fact>,
        /// None where there is no such fact any more.
        new: Option<Fact>,
    },
    /// In a dry run: these actions would run first, and what they make is an input.
    Upstream(Vec<String>),
    /// The last result's manifest is no longer in the store.
    Unknown,
    /// A file that the action turned out to read changed.
    File {
        /// The file.
        path: RepoPath,
        /// What it was.
        old: Seen,
        /// What it is.
        new: Seen,
    },
    /// It was rejected, and what its timed calls are judged by has changed.
    Judging,
    /// Its deadline is longer than the one it missed.
    Deadline {
        /// The one it missed.
        old: Duration,
        /// The one it has.
        new: Duration,
    },
    /// The last run was lost to the machine.
    Lost,
}

/// Returns the reasons behind `why`. `old` is the last result's manifest.
#[must_use]
pub fn reasons(why: &Why, old: Option<&Manifest>, new: &Manifest) -> Vec<Reason> {
    match why {
        Why::Forced => vec![Reason::Forced],
        Why::NeverRan => vec![Reason::NeverRan],
        Why::Lost => vec![Reason::Lost],
        Why::Objection { deadline, judging, files } => {
            let deadline = deadline.map(|(old, new)| Reason::Deadline { old, new });
            let judging = judging.then_some(Reason::Judging);
            deadline.into_iter().chain(judging).chain(files.iter().map(file)).collect()
        }
        Why::Changed { files, .. } => {
            let facts = old.map_or_else(|| vec![Reason::Unknown], |old| differences(old, new));
            let is_named = |change: &&FileChange| facts.iter().any(|fact| names_source(fact, &change.path));
            let files: Vec<Reason> = files.iter().filter(|change| !is_named(change)).map(file).collect();
            // What would run first comes last: it is no change yet.
            let (upstream, facts): (Vec<_>, Vec<_>) =
                facts.into_iter().partition(|fact| matches!(fact, Reason::Upstream(_)));
            [facts, files, upstream].concat()
        }
    }
}

fn file(change: &FileChange) -> Reason {
    Reason::File { path: change.path.clone(), old: change.old, new: change.new }
}

/// Whether the reason is that the meaning of this file, which the key holds, changed.
fn names_source(reason: &Reason, path: &RepoPath) -> bool {
    matches!(reason, Reason::Fact { name, .. } if name.strip_prefix("source.") == Some(path.as_str()))
}

/// Returns reasons as one line.
#[must_use]
pub fn line(reasons: &[Reason]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the facts in which two manifests differ, in order of names, and last the actions that would run first.
#[must_use]
pub fn differences(old: &Manifest, new: &Manifest) -> Vec<Reason> {
    let names: BTreeSet<&String> = old.facts.keys().chain(new.facts.keys()).collect();
    let changed = names.into_iter().filter(|name| old.facts.get(*name) != new.facts.get(*name));
    let (planned, known): (Vec<&String>, Vec<&String>) = changed.partition(|name| is_planned(new.facts.get(*name)));
    let fact = |name: &String| Reason::Fact {
        name: name.clone(),
        old: old.facts.get(name).cloned(),
        new: new.facts.get(name).cloned(),
    };
    let upstream: BTreeSet<String> = planned.into_iter().map(|name| source(name)).collect();
    let upstream = (!upstream.is_empty()).then(|| Reason::Upstream(upstream.into_iter().collect()));
    known.into_iter().map(fact).chain(upstream).collect()
}

fn is_planned(fact: Option<&Fact>) -> bool {
    matches!(fact, Some(Fact::Text(text)) if text == PLANNED)
}

/// Returns the action whose artifact the fact `name` holds.
fn source(name: &str) -> String {
    let artifact = name.strip_prefix("from.").unwrap_or(name);
    artifact.rsplit_once('.').map_or(artifact, |(target, _)| target).to_owned()
}

/// What is said where a rejected bench is judged otherwise now.
pub(crate) const JUDGED_OTHERWISE: &str = "the tolerances, outputs or mutated inputs changed by which it was rejected";

impl Reason {
    /// Returns the reason with every action that it names, however many there are.
    #[must_use]
    pub fn whole(&self) -> String {
        match self {
            Self::Upstream(actions) => upstream(actions, actions.len()),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forced => f.write_str("asked for by `--force`"),
            Self::NeverRan => f.write_str("never ran"),
            Self::Upstream(actions) => f.write_str(&upstream(actions, NAMED)),
            Self::Unknown => f.write_str("the last result's manifest is gone from the store"),
            Self::Lost => f.write_str("the last run was lost to the machine"),
            Self::Judging => f.write_str(JUDGED_OTHERWISE),
            Self::Deadline { old, new } => write!(f, "its deadline is now {new:?}; it missed {old:?}"),
            Self::File { path, old, new } => {
                write!(f, "{path} {}: {} → {}", verb(*old, *new), state(*old), state(*new))
            }
            Self::Fact { name, old, new } => fact(f, name, old.as_ref(), new.as_ref()),
        }
    }
}

fn fact(f: &mut fmt::Formatter<'_>, name: &str, old: Option<&Fact>, new: Option<&Fact>) -> fmt::Result {
    let what = subject(name);
    match (old, new) {
        (Some(old), Some(Fact::Text(new))) if name.starts_with("toolchain.") && new.is_empty() => {
            write!(f, "{what} is not known here; it was {}", brief(old))
        }
        (Some(old), Some(new)) => {
            let (old, new) = brief_change(old, new);
            write!(f, "{what} changed: {old} → {new}")
        }
        (None, Some(new)) => write!(f, "{what} is new: {}", brief(new)),
        (Some(old), None) => write!(f, "{what} is gone: {}", brief(old)),
        (None, None) => Ok(()),
    }
}

/// Returns what a fact's name means, for people.
fn subject(name: &str) -> String {
    let (kind, rest) = name.split_once('.').unwrap_or((name, ""));
    match (kind, rest) {
        ("source", path) => format!("code of `{path}`"),
        ("declaration", field) => format!("`{field}` in ops.yaml"),
        ("variant", field) => format!("`{field}` of the variant in ops.yaml"),
        ("toolchain", tool) => format!("{tool} version"),
        ("from", artifact) => match artifact.rsplit_once('.') {
            Some((target, name)) => format!("`{name}` of `{target}`"),
            None => format!("`{artifact}`"),
        },
        ("docstring", variant) => format!("docstring of `{variant}`"),
        ("file", variant) => format!("file of `{variant}`"),
        ("device", part) if !part.is_empty() => format!("device {part}"),
        ("target", model) => format!("target `{model}`"),
        ("sources", _) => "`sources` in ops.yaml".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// How many letters of a value a reason shows.
const SHOWN: usize = 72;

/// How many letters that did not change it shows before and behind what did.
const AROUND: usize = 12;

/// Longer texts are cut in the middle: a reason is one line.
fn brief(fact: &Fact) -> String {
    cut(&letters(fact))
}

/// Of two longer texts what differs is shown, with a little around it.
fn brief_change(old: &Fact, new: &Fact) -> (String, String) {
    let (old, new) = (letters(old), letters(new));
    if old.len() <= SHOWN && new.len() <= SHOWN {
        return (old.iter().collect(), new.iter().collect());
    }
    let same = |(one, other): &(&char, &char)| one == other;
    let before = old.iter().zip(&new).take_while(same).count();
    let behind = old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(same).count();
    let part = |text: &[char]| {
        let begin = before.saturating_sub(AROUND);
        let end = (text.len() - behind + AROUND).min(text.len());
        let (head, tail) = (if begin > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
        format!("{head}{}{tail}", cut(&text[begin..end]))
    };
    (part(&old), part(&new))
}

fn letters(fact: &Fact) -> Vec<char> {
    fact.to_string().replace('\n', "⏎").chars().collect()
}

fn cut(letters: &[char]) -> String {
    if letters.len() <= SHOWN {
        return letters.iter().collect();
    }
    let head: String = letters[..40].iter().collect();
    let tail: String = letters[letters.len() - 28..].iter().collect();
    format!("{head} … {tail}")
}

fn upstream(actions: &[String], most: usize) -> String {
    let named: Vec<String> = actions.iter().take(most).map(|action| format!("`{action}`")).collect();
    match actions.len().saturating_sub(most) {
        0 => format!("{} would run first", named.join(", ")),
        more => format!("{} and {more} more would run first", named.join(", ")),
    }
}

/// Returns what a discovered file was, in a word.
#[must_use]
pub fn state(seen: Seen) -> String {
    match seen {
        Seen::Absent => "absent".to_owned(),
        Seen::Meaning(digest) | Seen::Bytes(digest) => digest.short(),
    }
}

fn verb(old: Seen, new: Seen) -> &'static str {
    match (old, new) {
        (Seen::Absent, _) => "appeared",
        (_, Seen::Absent) => "is gone",
        _ => "changed",
    }
}
