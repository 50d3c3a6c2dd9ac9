//! Problems in KernelBench's form: a child of the user's Python says what each asks for, which becomes an op.
//!
//! It does not know what a problem computes, nor where the entry goes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value};
use t2t_spec::entry;
use t2t_spec::names::Form;
use t2t_store::fs;

use super::imported::{self, FOLDER, Imported};
use crate::cli::error::CliError;
use crate::cli::{Common, script, streams};

/// What the child runs.
const EVALUATE: &str = include_str!("kernelbench.py");

/// The modules beside a problem, with words in capitals for what differs.
const REFERENCE: &str = include_str!("reference.py.txt");
const CASES: &str = include_str!("cases.py.txt");

/// The problems of a file or a folder.
pub(super) struct Problems<'a> {
    what: &'a Path,
    problems: Vec<Problem>,
}

impl<'a> Problems<'a> {
    /// Returns the file `what`, or all Python files right in the folder `what`. Fails where there is none, or where two become the same op.
    pub(super) fn read(what: &'a Path) -> Result<Self, CliError> {
        Ok(Self { what, problems: Problem::all(what)? })
    }

    /// Returns the op and the place of each.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.problems.iter().map(|problem| (problem.op.as_str(), problem.place.as_str()))
    }

    /// Returns what becomes of them, by what a child of the user's Python says. Those of a folder that cannot be imported are told and left out.
    pub(super) fn imported(&self, common: &Common, root: &Path) -> Result<Vec<Imported>, CliError> {
        let told = evaluated(common, root, &self.problems)?;
        let mut found = Vec::new();
        for (problem, told) in self.problems.iter().zip(told) {
            match told {
                Told::Refused { error, line } => {
                    let place = line.map_or(String::new(), |line| format!(":{line}"));
                    let message = format!("{}{place}: {error}", problem.place);
                    if !self.what.is_dir() {
                        let hint = "docs/reference/import.md says which problems can be imported";
                        return Err(CliError::misuse(message, hint));
                    }
                    streams::say(&format!("skipped {message}"));
                }
                Told::Asked(asked) => found.push(asked.imported(problem)),
            }
        }
        if found.is_empty() {
            let message =
                format!("{}: none of its {} problems can be imported", self.what.display(), self.problems.len());
            return Err(CliError::misuse(message, "each one's reason is above; docs/reference/import.md has the form"));
        }
        Ok(found)
    }
}

/// A file in the form of a problem.
struct Problem {
    /// What the op is called.
    op: String,
    /// The file, as it was named.
    place: String,
    bytes: Vec<u8>,
    path: PathBuf,
}

impl Problem {
    /// Returns the file `what`, or all Python files right in the folder `what`, in the order of their names. Fails where there is none, or where two become the same op.
    fn all(what: &Path) -> Result<Vec<Self>, CliError> {
        let mut files = vec![what.to_owned()];
        if what.is_dir() {
            let is_python = |name: &String| Path::new(name).extension().is_some_and(|ending| ending == "py");
            let mut names: Vec<String> = fs::names(what).into_iter().filter(is_python).collect();
            names.retain(|name| name != "__init__.py");
            names.sort();
            files = names.iter().map(|name| what.join(name)).collect();
        }
        let problems = files.iter().map(|file| Self::read(file)).collect::<Result<Vec<_>, _>>()?;
        if problems.is_empty() {
            let message = format!("{}: there is no Python file in this folder", what.display());
            return Err(CliError::misuse(message, "name a folder with problems in it, such as KernelBench's level1"));
        }
        for (at, problem) in problems.iter().enumerate() {
            if let Some(other) = problems[..at].iter().find(|other| other.op == problem.op) {
                let message = format!("{} and {} would both be `{}`", other.place, problem.place, problem.op);
                return Err(CliError::misuse(message, "rename one of the files"));
            }
        }
        Ok(problems)
    }

    fn read(file: &Path) -> Result<Self, CliError> {
        let place = file.display().to_string();
        let bytes = fs::read(file)
            .map_err(|error| CliError::misuse(format!("{place}: {error}"), "name a Python file or a folder of them"))?;
        let path = std::path::absolute(file).with_context(|| format!("cannot find {place}"))?;
        let op = imported::name(&file.file_stem().unwrap_or_default().to_string_lossy());
        if !Form::Name.fits(&op) {
            return Err(CliError::misuse(format!("{place}: `{op}` is not a valid op name"), Form::Name.hint(&op)));
        }
        Ok(Self { op, place, bytes, path })
    }

    fn folder(&self) -> String {
        format!("{FOLDER}/{}", self.op)
    }
}

/// What the child says of a problem.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Refused { error: String, line: Option<usize> },
    Asked(Asked),
}

/// What a problem asks for.
#[derive(Deserialize)]
struct Asked {
    inputs: Vec<Input>,
    /// The names of the tensors of `get_inputs`.
    returns: Vec<String>,
    /// The names of weights as inputs, and as the module has them.
    weights: Map<String, Value>,
    init: Map<String, Value>,
    mutates: Vec<String>,
    /// The module's values at the smallest size, where they differ.
    small: Map<String, Value>,
    sizes: Map<String, Value>,
}

#[derive(Deserialize)]
struct Input {
    name: String,
    shape: Value,
    dtype: Option<String>,
    init: Option<Value>,
}

impl Asked {
    fn imported(&self, problem: &Problem) -> Imported {
        Imported {
            op: problem.op.clone(),
            place: problem.place.clone(),
            takes: self.inputs.iter().map(|input| input.name.clone()).collect(),
            entry: self.entry(problem),
            files: self.files(problem).into(),
        }
    }

    /// Returns the text of the op's entry in ops.yaml, its key without indentation.
    fn entry(&self, problem: &Problem) -> String {
        let folder = problem.folder();
        let init = Value::Object(self.init.clone());
        let init = if self.init.is_empty() { String::new() } else { format!(", init: {}", entry::flow(&init)) };
        let mut text = format!("{}:\n", problem.op);
        let _ = writeln!(text, "  reference: {{file: {folder}/reference.py, name: Reference{init}}}");
        text += "  inputs:\n";
        for input in &self.inputs {
            let mut written = format!("shape: {}", entry::flow(&input.shape));
            for (key, value) in [("dtype", input.dtype.clone().map(Value::String)), ("init", input.init.clone())] {
                if let Some(value) = value {
                    let _ = write!(written, ", {key}: {}", entry::flow(&value));
                }
            }
            let _ = writeln!(text, "    {}: {{{written}}}", input.name);
        }
        if !self.mutates.is_empty() {
            let _ = writeln!(text, "  mutates: [{}]", self.mutates.join(", "));
        }
        let small = entry::flow(&self.sizes["small"]);
        if small != "{}" {
            let of = |size: &str| self.sizes.get(size).map(|dims| format!("{size}: {}", entry::flow(dims)));
            let all: Vec<String> = ["small", "medium", "large"].into_iter().filter_map(of).collect();
            let _ = writeln!(text, "  bench: {{sizes: {{{}}}}}", all.join(", "));
            let _ = writeln!(text, "  check: {{sizes: {{small: {small}}}}}");
            let _ = writeln!(text, "  profiles: {{cpu: {{bench: {{sizes: {{small: {small}}}}}}}}}");
        }
        let _ = writeln!(text, "  cases: {folder}/cases.py");
        text + "  variants: [v1_baseline]\n"
    }

    /// Returns the files of the problem, as paths in the workspace with their bytes.
    fn files(&self, problem: &Problem) -> [(String, Vec<u8>); 3] {
        let folder = problem.folder();
        let names: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        let weights = Value::Object(self.weights.clone()).to_string();
        let filled = |template: &str| {
            let text = template.replace("OP", &problem.op).replace("PARAMETERS", &names.join(", "));
            let text = text.replace("RETURNED", &Value::from(self.returns.clone()).to_string());
            let text = text.replace("ARGUMENTS", &self.returns.join(", "));
            let mut pairs = String::new();
            for (name, full) in &self.weights {
                let _ = writeln!(pairs, "            {full}: {},", name.as_str());
            }
            let small = Value::Object(self.small.clone()).to_string();
            text.replace("            GIVEN\n", &pairs)
                .replace("WEIGHTS_BY_NAME", &weights)
                .replace("SMALL_VALUES", &small)
        };
        [
            (format!("{folder}/problem.py"), problem.bytes.clone()),
            (format!("{folder}/reference.py"), filled(REFERENCE).into_bytes()),
            (format!("{folder}/cases.py"), filled(CASES).into_bytes()),
        ]
    }
}

/// Returns what a child of the user's Python says of each problem.
fn evaluated(common: &Common, root: &Path, problems: &[Problem]) -> Result<Vec<Told>, CliError> {
    let python = imported::python(common, root)?;
    let paths: Vec<String> = problems.iter().map(|problem| problem.path.to_string_lossy().into_owned()).collect();
    let ended = script::run(Command::new(&python), EVALUATE, &Value::from(paths))?;
    let told: Vec<Told> =
        String::from_utf8_lossy(&ended.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !ended.status.success() || told.len() != problems.len() {
        return Err(CliError::machine(format!("`{}` did not say what the problems ask for", python.display())));
    }
    Ok(told)
}
