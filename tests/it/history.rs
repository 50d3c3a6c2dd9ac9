//! `t2t explain` after random edits, held against the history itself: for every action that is stale exactly the inputs that changed since its last result, with
//! what they were and what they are; for every other, nothing.
//!
//! What an action depends on stands here once more, written down from docs/design/keys.md. Of t2t it takes the artifacts that builds made, which the journal
//! tells, and what code means.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use serde_json::Value;
use t2t_model::digest::Digest;

use crate::project::Project;

/// Input → what it is, as far as it ever changes here. An input is named as explanations name it.
type Inputs = BTreeMap<String, String>;

/// What stands for the artifact of an action that would run first.
const PLANNED: &str = "to be made";

const OPS: [&str; 2] = ["softmax", "gelu"];

/// What the workspace holds: what edits change.
#[derive(Clone, Debug, PartialEq)]
struct State {
    /// File → number that its code returns.
    code: BTreeMap<String, u64>,
    docstring: u64,
    table: Option<u64>,
    dim: i64,
    atol: &'static str,
    size: u64,
    template: u64,
    torch: u64,
    triton: u64,
    has_third: bool,
    /// Comments and blanks, which nothing depends on.
    noise: u64,
}

impl State {
    fn new() -> Self {
        let files = [
            "kernels/softmax/v1_baseline.py",
            "kernels/softmax/v2_tiling.py",
            "kernels/softmax/v3_coalesced.py",
            "kernels/gelu/v1_baseline.py",
            "kernels/common.py",
            "cases/softmax.py",
        ];
        Self {
            code: files.map(|file| (file.to_owned(), 1)).into(),
            docstring: 1,
            table: None,
            dim: -1,
            atol: "0.00001",
            size: 16,
            template: 1,
            torch: 11,
            triton: 6,
            has_third: false,
            noise: 0,
        }
    }

    /// Makes one edit of those that a person makes.
    fn edit(&mut self, draw: &mut Draw) {
        match draw.below(14) {
            0..=3 => {
                let number = usize::try_from(draw.below(self.code.len() as u64)).unwrap();
                *self.code.values_mut().nth(number).unwrap() = 1 + draw.below(3);
            }
            4 => self.docstring = 1 + draw.below(3),
            5 => self.table = [None, Some(1), Some(2)][usize::try_from(draw.below(3)).unwrap()],
            6 => self.dim = if self.dim == 0 { -1 } else { 0 },
            7 => self.atol = ["0.00001", "0.001", "0.01"][usize::try_from(draw.below(3)).unwrap()],
            8 => self.size = [8, 16, 32][usize::try_from(draw.below(3)).unwrap()],
            9 => self.template = 1 + draw.below(3),
            10 => self.torch = 11 + draw.below(2),
            11 => self.triton = 6 + draw.below(2),
            12 => self.has_third = !self.has_third,
            _ => self.noise += 1,
        }
    }

    fn variants(&self, op: &str) -> Vec<&'static str> {
        match (op, self.has_third) {
            ("gelu", _) => vec!["v1_baseline"],
            (_, false) => vec!["v1_baseline", "v2_tiling"],
            (_, true) => vec!["v1_baseline", "v2_tiling", "v3_coalesced"],
        }
    }

    fn text(&self, file: &str) -> String {
        let (number, noise) = (self.code[file], self.noise);
        match file {
            "kernels/common.py" => format!("# {noise}\ndef add(x):\n    return x + {number}\n"),
            "cases/softmax.py" => format!("def cases(spec, generator):  # {noise}\n    return [][{number}:]\n"),
            _ => {
                let op = file.split('/').nth(1).unwrap();
                let import = if file.contains("v1_") { "from kernels.common import add\n" } else { "" };
                let mark = if file.contains("v2_") { "READS data/table.txt" } else { "" };
                let docstring = if file == "kernels/softmax/v1_baseline.py" { self.docstring } else { 0 };
                format!(
                    "\"\"\"Of {docstring}.\"\"\"\nimport triton\n{import}\nMARK = \"{mark}\"\n\n\ndef triton_{op}(input):  # {noise}\n    return input + {number}\n"
                )
            }
        }
    }

    fn ops(&self) -> String {
        let mut text = format!(
            "version: 1 # {}\ndefaults:\n  bench: {{sizes: {{small: [{}, {}]}}}}\nops:\n",
            self.noise, self.size, self.size
        );
        for op in OPS {
            write!(text, "  {op}:\n    torch: torch.nn.functional.{op}\n    inputs: {{input: [M, N]}}\n").unwrap();
            writeln!(text, "    variants: [{}]", self.variants(op).join(", ")).unwrap();
        }
        let softmax = format!(
            "    kwargs: {{dim: {}}}\n    check: {{atol: {}}}\n    cases: cases/softmax.py\n",
            self.dim, self.atol
        );
        text.replacen("    inputs: {input: [M, N]}\n", &format!("    inputs: {{input: [M, N]}}\n{softmax}"), 1)
    }

    fn template(&self) -> String {
        format!("# {{{{ op }}}} {}\n", self.template)
    }

    fn write(&self, project: &Project) {
        for file in self.code.keys() {
            project.write(file, self.text(file));
        }
        project.write("ops.yaml", self.ops());
        project.write("assets/log_template.md", self.template());
        match self.table {
            Some(number) => project.write("data/table.txt", number.to_string()),
            None => _ = std::fs::remove_file(project.path("data/table.txt")),
        }
        let (torch, triton) = (format!("2.{}.0", self.torch), format!("3.{}.0", self.triton));
        project.install(&[("torch", &torch), ("triton", &triton)]);
    }

    /// Returns the actions, each after those that it needs.
    fn actions(&self) -> Vec<String> {
        let mut actions = Vec::new();
        for op in OPS {
            actions.push(format!("{op}:analyze"));
            for variant in self.variants(op) {
                actions.extend(["compile", "check", "bench"].map(|phase| format!("{op}/{variant}:{phase}")));
            }
            actions.extend(["select", "log"].map(|phase| format!("{op}:{phase}")));
        }
        actions.push("summary".to_owned());
        actions
    }

    /// Returns what an action depends on. `made` tells what an artifact of another is now.
    fn inputs(&self, action: &str, made: &dyn Fn(&str, &str) -> String) -> Inputs {
        let mut inputs = Inputs::new();
        let (place, phase) = action.rsplit_once(':').unwrap_or(("", action));
        let (op, variant) = place.split_once('/').map_or((place, None), |(op, variant)| (op, Some(variant)));
        let is_softmax = op == "softmax";
        let mut set = |name: String, value: String| _ = inputs.insert(name, value);
        let of = |field: &str| format!("`{field}` in ops.yaml");
        if is_softmax && ["analyze", "compile", "check", "bench", "log"].contains(&phase) {
            set(of("kwargs"), format!("{{\"dim\":{}}}", self.dim));
        }
        if ["analyze", "compile"].contains(&phase) {
            set(of("sizes"), self.sizes());
        }
        if phase == "compile" {
            set(of("check_sizes"), self.sizes());
        }
        if phase == "check" {
            set(of("measured"), self.sizes());
        }
        if is_softmax && phase == "check" {
            let rest = "\"bfloat16\":[0.016,0.01],\"float16\":[0.001,0.001]";
            set(of("tolerances"), format!("{{{rest},\"float32\":[{},0.00001],\"float64\":[1e-7,1e-7]}}", self.atol));
        }
        if ["analyze", "compile", "check", "bench"].contains(&phase) {
            set("torch version".to_owned(), format!("2.{}.0", self.torch));
        }
        if let Some(variant) = variant {
            set("triton version".to_owned(), format!("3.{}.0", self.triton));
            for file in Self::sources(op, variant) {
                set(format!("code of `{file}`"), t2t_python::read(self.text(&file).as_bytes()).meaning.short());
            }
            if variant == "v2_tiling" {
                let table =
                    self.table.map_or("absent".to_owned(), |number| Digest::of(number.to_string().as_bytes()).short());
                set("data/table.txt".to_owned(), table);
            }
        }
        for (source, artifact) in self.reads(op, variant, phase) {
            set(format!("`{artifact}` of `{source}`"), made(&source, artifact));
        }
        if phase == "select" {
            let names: Vec<String> = self.variants(op).iter().map(|name| format!("\"{name}\"")).collect();
            set("variants".to_owned(), format!("[{}]", names.join(",")));
        }
        if phase == "log" {
            set("template".to_owned(), Digest::of(self.template().as_bytes()).short());
            for variant in self.variants(op) {
                let docstring = if (op, variant) == ("softmax", "v1_baseline") { self.docstring } else { 0 };
                set(format!("docstring of `{variant}`"), format!("Of {docstring}."));
                set(format!("file of `{variant}`"), format!("kernels/{op}/{variant}.py"));
            }
        }
        inputs
    }

    fn sizes(&self) -> String {
        format!("{{\"small\":{{\"M\":{},\"N\":{}}}}}", self.size, self.size)
    }

    fn sources(op: &str, variant: &str) -> Vec<String> {
        let mut files = vec![format!("kernels/{op}/{variant}.py")];
        files.extend((variant == "v1_baseline").then(|| "kernels/common.py".to_owned()));
        files.extend((op == "softmax").then(|| "cases/softmax.py".to_owned()));
        files
    }

    /// Returns the artifacts of others that an action reads.
    fn reads(&self, op: &str, variant: Option<&str>, phase: &str) -> Vec<(String, &'static str)> {
        let mut reads = Vec::new();
        let mut read =
            |source: String, names: &[&'static str]| reads.extend(names.iter().map(|name| (source.clone(), *name)));
        match (phase, variant) {
            ("compile" | "check", Some(_)) => read(format!("{op}:analyze"), &["lengths"]),
            ("bench", Some(variant)) => read(format!("{op}/{variant}:check"), &["verdict"]),
            ("select", _) => {
                for variant in self.variants(op) {
                    read(format!("{op}/{variant}:check"), &["verdict"]);
                    read(format!("{op}/{variant}:bench"), &["bench"]);
                }
            }
            ("log", _) => {
                read(format!("{op}:analyze"), &["analysis", "failure"]);
                read(format!("{op}:select"), &["selection"]);
                for variant in self.variants(op) {
                    read(format!("{op}/{variant}:compile"), &["launches", "resources", "failure"]);
                    read(format!("{op}/{variant}:check"), &["verdict", "evidence", "failure"]);
                    read(format!("{op}/{variant}:bench"), &["bench", "failure"]);
                }
            }
            ("summary", _) => {
                for op in OPS {
                    read(format!("{op}:select"), &["selection", "cost"]);
                    read(format!("{op}:analyze"), &["cost"]);
                    for variant in self.variants(op) {
                        for phase in ["compile", "check", "bench"] {
                            read(format!("{op}/{variant}:{phase}"), &["cost"]);
                        }
                    }
                }
            }
            _ => {}
        }
        reads
    }
}

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
