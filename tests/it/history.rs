//! `t2t explain` after random edits, held against the history itself: for every action that is stale exactly the inputs that changed since its last result, with
//! what they were and what they are; for every other, nothing.
//!
//! What an action depends on stands here once more, written down from docs/design/keys.md. Of t2t it takes the artifacts that builds made, which the journal
//! tells, and what code means.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use t2t_model::digest::Digest;

use crate::project::Project;

mod state;

use self::state::State;

/// Input → what it is, as far as it ever changes here. An input is named as explanations name it.
type Inputs = BTreeMap<String, String>;

/// What stands for the artifact of an action that would run first.
const PLANNED: &str = "to be made";

const OPS: [&str; 2] = ["softmax", "gelu"];

/// Numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 += 1;
        let mixed = Digest::of(&self.0.to_le_bytes());
        let (bytes, _) = mixed.as_bytes().split_first_chunk::<8>().unwrap();
        u64::from_le_bytes(*bytes) % end
    }
}

/// Artifact → digest, as the journal tells.
type Made = BTreeMap<String, String>;

/// What came of builds so far.
#[derive(Default)]
struct Past {
    /// Action → what its last result depended on.
    last: BTreeMap<String, Inputs>,
    /// What is known: of an action with these inputs, what it made.
    known: HashMap<(String, Inputs), Made>,
}

/// What an explanation says of an action.
#[derive(Debug, PartialEq, Default)]
struct Told {
    is_stale: bool,
    never_ran: bool,
    /// Input → what it was and what it is; empty where there was, or is, none.
    changes: BTreeMap<String, (String, String)>,
    /// The actions that would run first.
    first: BTreeSet<String>,
}

impl Past {
    /// Returns what an explanation must say of every action, and the inputs of each.
    fn expected(&self, state: &State) -> BTreeMap<String, (Told, Inputs)> {
        let mut found: BTreeMap<String, Option<Made>> = BTreeMap::new();
        let mut expected = BTreeMap::new();
        for action in state.actions() {
            let made = |source: &str, artifact: &str| match &found[source] {
                None => PLANNED.to_owned(),
                Some(made) => made.get(artifact).cloned().unwrap_or_else(|| "none".to_owned()),
            };
            let inputs = state.inputs(&action, &made);
            let known = self.known.get(&(action.clone(), inputs.clone())).cloned();
            let told = if known.is_some() { Told::default() } else { self.stale(&action, &inputs) };
            found.insert(action.clone(), known);
            expected.insert(action, (told, inputs));
        }
        expected
    }

    fn stale(&self, action: &str, inputs: &Inputs) -> Told {
        let mut told = Told { is_stale: true, ..Told::default() };
        let Some(last) = self.last.get(action) else { return Told { never_ran: true, ..told } };
        let names: BTreeSet<&String> = last.keys().chain(inputs.keys()).collect();
        for name in names {
            let (old, new) = (last.get(name), inputs.get(name));
            if new.is_some_and(|new| new == PLANNED) {
                told.first.insert(name.split('`').nth(3).unwrap().to_owned());
            } else if old != new {
                let value = |value: Option<&String>| value.cloned().unwrap_or_default();
                told.changes.insert(name.clone(), (value(old), value(new)));
            }
        }
        told
    }

    /// Takes what a build left.
    fn take(&mut self, state: &State, project: &Project) {
        let made = made_by(project);
        let made_of =
            |source: &str, artifact: &str| made[source].get(artifact).cloned().unwrap_or_else(|| "none".to_owned());
        for action in state.actions() {
            let inputs = state.inputs(&action, &made_of);
            self.known.insert((action.clone(), inputs.clone()), made[&action].clone());
            self.last.insert(action, inputs);
        }
    }
}

/// Returns what the last result of each action is made of.
fn made_by(project: &Project) -> BTreeMap<String, Made> {
    let mut made = BTreeMap::new();
    for line in project.read("cache/journal").lines().skip(1) {
        let record: Value = serde_json::from_str(line.split_once(' ').unwrap().1).unwrap();
        let outputs = record["outputs"].as_object().unwrap().iter();
        let short = |blob: &Value| blob["digest"].as_str().unwrap()[..12].to_owned();
        let outputs = outputs.map(|(name, blob)| (name.clone(), short(blob))).collect();
        made.insert(record["identity"]["target"].as_str().unwrap().to_owned(), outputs);
    }
    made
}

/// Reads what `t2t explain` printed.
fn told(text: &str) -> BTreeMap<String, Told> {
    let mut all: BTreeMap<String, Told> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(reason) = line.strip_prefix("  because ") {
            take_reason(all.get_mut(&current).unwrap(), reason);
        } else if !line.starts_with(' ') {
            let (action, state) = line.split_once(": ").unwrap();
            action.clone_into(&mut current);
            assert!(state == "stale" || state.starts_with("fresh"), "{line}");
            all.insert(current.clone(), Told { is_stale: state == "stale", ..Told::default() });
        }
    }
    all
}

fn take_reason(told: &mut Told, reason: &str) {
    if reason == "never ran" {
        told.never_ran = true;
    } else if let Some(actions) = reason.strip_suffix(" would run first") {
        told.first = actions.split(", ").map(|action| action.trim_matches('`').to_owned()).collect();
    } else if let Some((name, value)) = reason.split_once(" is new: ") {
        told.changes.insert(name.to_owned(), (String::new(), value.to_owned()));
    } else if let Some((name, value)) = reason.split_once(" is gone: ").filter(|_| !reason.contains(" → ")) {
        told.changes.insert(name.to_owned(), (value.to_owned(), String::new()));
    } else {
        let verb = [" changed: ", " appeared: ", " is gone: "].into_iter().find(|verb| reason.contains(verb));
        let (name, values) = reason.split_once(verb.unwrap_or_else(|| panic!("{reason}"))).unwrap();
        let (old, new) = values.split_once(" → ").unwrap();
        told.changes.insert(name.to_owned(), (old.to_owned(), new.to_owned()));
    }
}

/// Whether what is shown of a value is the value, or a part of it with what was left out marked.
fn shows(shown: &str, value: &str) -> bool {
    shown == value || (shown.contains('…') && shown.split('…').all(|part| value.contains(part.trim())))
}

#[track_caller]
fn expect_told(told: &Told, expected: &Told, what: &str) {
    let names = |told: &Told| told.changes.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(told), names(expected), "{what}");
    for (name, (old, new)) in &expected.changes {
        let shown = &told.changes[name];
        assert!(shows(&shown.0, old) && shows(&shown.1, new), "{what}: {name}: {old} → {new} is told as {shown:?}");
        assert_ne!(shown.0, shown.1, "{what}: {name}");
    }
    let rest = |told: &Told| (told.is_stale, told.never_ran, told.first.clone());
    assert_eq!(rest(told), rest(expected), "{what}");
}

fn explanations_follow_the_history(seed: u64, steps: usize) {
    let project = Project::with("");
    let (mut state, mut past, mut draw) = (State::new(), Past::default(), Draw(seed << 32));
    let mut reasons = 0;
    for step in 0..steps {
        state.write(&project);
        let ran = project.run_raw("explain softmax gelu summary");
        let (told, expected) = (told(&ran), past.expected(&state));
        let what = |action: &str| format!("seed {seed}, step {step}: {action} after\n{state:#?}\n{ran}");
        assert_eq!(told.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", what("all"));
        for (action, (expected, _)) in &expected {
            expect_told(&told[action], expected, &what(action));
            reasons += expected.changes.len();
        }
        // Edits pile up over a step or two, and now and then one is taken back before a build.
        if draw.below(3) > 0 {
            project.build().exits(0);
            past.take(&state, &project);
        }
        for _ in 0..=draw.below(3) {
            state.edit(&mut draw);
        }
    }
    assert!(reasons > steps * 2, "{reasons} reasons in {steps} steps");
}

#[test]
fn explanations_name_exactly_what_changed_since() {
    explanations_follow_the_history(1, 12);
}

#[test]
fn explanations_name_exactly_what_changed_since_in_another_history() {
    explanations_follow_the_history(2, 24);
}
