//! `t2t import`: problems of a public benchmark's form become ops of ops.yaml, each with its file as the reference.
//!
//! A child of the user's Python says what a problem asks for. All is worked out before anything is written. It does not know what a problem computes.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value};
use t2t_spec::names::Form;
use t2t_spec::{Spec, entry};
use t2t_store::fs;

use super::error::CliError;
use super::{Common, ImportForm, context, held, init, script, streams};
use crate::session::{self, OPS};

/// What the child runs.
const EVALUATE: &str = include_str!("import/kernelbench.py");

/// The modules beside a problem, with words in capitals for what differs.
const REFERENCE: &str = include_str!("import/reference.py.txt");
const CASES: &str = include_str!("import/cases.py.txt");

/// Where imported problems lie in the workspace.
const FOLDER: &str = "references";

/// Runs the command.
pub(crate) fn import(common: &Common, form: &ImportForm) -> Result<u8, CliError> {
    let ImportForm::Kernelbench { what } = form;
    let here = env::current_dir().context("cannot tell the current folder")?;
    let root = session::workspace(&here).unwrap_or_else(|| here.clone());
    let problems = Problem::all(what)?;
    let _held = held::hold(&root).context("cannot lock the workspace")?;
    let before = fs::read_if_there(&root.join(OPS)).context("cannot read `ops.yaml`")?;
    are_free(&root, before.as_deref(), &problems)?;
    let told = evaluated(common, &root, &problems)?;
    let mut asked = Vec::new();
    for (problem, told) in problems.iter().zip(told) {
        match told {
            Told::Refused { error, line } => {
                let place = line.map_or(String::new(), |line| format!(":{line}"));
                let message = format!("{}{place}: {error}", problem.place);
                if !what.is_dir() {
                    let hint = "docs/reference/import.md says which problems can be imported";
                    return Err(CliError::misuse(message, hint));
                }
                streams::say(&format!("skipped {message}"));
            }
            Told::Asked(one) => asked.push((problem, one)),
        }
    }
    if asked.is_empty() {
        let message = format!("{}: none of its {} problems can be imported", what.display(), problems.len());
        return Err(CliError::misuse(message, "each one's reason is above; docs/reference/import.md has the form"));
    }
    write(&root, before.as_deref(), &asked)?;
    if before.is_none() && init::ignore(&root)? && !common.quiet {
        streams::say("wrote .gitignore");
    }
    for (problem, asked) in asked.iter().filter(|_| !common.quiet) {
        let takes: Vec<&str> = asked.inputs.iter().map(|input| input.name.as_str()).collect();
        streams::say(&format!("`{}` is {}: triton_{}({})", problem.op, problem.place, problem.op, takes.join(", ")));
    }
    let skipped = problems.len() - asked.len();
    let left = if skipped == 0 { String::new() } else { format!(", skipped {skipped}") };
    streams::say(&format!("imported {}{left}; next: `t2t build --phase analyze`", asked.len()));
    Ok(0)
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
        let op = name(&file.file_stem().unwrap_or_default().to_string_lossy());
        if !Form::Name.fits(&op) {
            return Err(CliError::misuse(format!("{place}: `{op}` is not a valid op name"), Form::Name.hint(&op)));
        }
        Ok(Self { op, place, bytes, path })
    }

    fn folder(&self) -> String {
        format!("{FOLDER}/{}", self.op)
    }
}

/// Returns a file's name as a name in Python: in lower case, `_` for all but letters and digits, `p` before a digit.
fn name(stem: &str) -> String {
    let lower = stem.to_ascii_lowercase();
    let plain: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
    let joined = words.join("_");
    if joined.starts_with(|c: char| c.is_ascii_digit()) { format!("p{joined}") } else { joined }
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

/// An op that is declared already stays as it is, and so does a folder that is there.
fn are_free(root: &Path, before: Option<&[u8]>, problems: &[Problem]) -> Result<(), CliError> {
    // A file that only lacks ops is made whole by them.
    let spec = before.and_then(|bytes| Spec::parse(OPS, bytes, None).ok());
    for problem in problems {
        let hint = "rename the file, or remove what is there";
        if spec.as_ref().is_some_and(|spec| spec.op(&problem.op).is_some()) {
            let message = format!("{}: ops.yaml declares `{}` already", problem.place, problem.op);
            return Err(CliError::misuse(message, hint));
        }
        if fs::stat(&root.join(problem.folder())).is_some() {
            let message = format!("{}: the folder `{}` is there already", problem.place, problem.folder());
            return Err(CliError::misuse(message, hint));
        }
    }
    Ok(())
}

/// Returns what a child of the user's Python says of each problem.
fn evaluated(common: &Common, root: &Path, problems: &[Problem]) -> Result<Vec<Told>, CliError> {
    let python = context::python(common, root.to_owned()).ok_or_else(|| CliError::Machine {
        message: "there is no Python with torch".to_owned(),
        hint: Some("name one with `--python`; `t2t doctor` says what is there".to_owned()),
    })?;
    let paths: Vec<String> = problems.iter().map(|problem| problem.path.to_string_lossy().into_owned()).collect();
    let ended = script::run(Command::new(&python.path), EVALUATE, &Value::from(paths))?;
    let told: Vec<Told> =
        String::from_utf8_lossy(&ended.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !ended.status.success() || told.len() != problems.len() {
        return Err(CliError::machine(format!("`{}` did not say what the problems ask for", python.path.display())));
    }
    Ok(told)
}

/// Writes the files of all problems, then ops.yaml. What was written is removed where the rest cannot be.
fn write(root: &Path, before: Option<&[u8]>, asked: &[(&Problem, Asked)]) -> Result<(), CliError> {
    let entries: String = asked.iter().map(|(problem, asked)| asked.entry(problem)).collect();
    let old = before.map_or("version: 1\n".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned());
    let new = entry::inserted(&old, &entries)
        .ok_or_else(|| CliError::by_hand("its ops are no blocks of their own", &entries))?;
    Spec::parse(OPS, new.as_bytes(), None).map_err(CliError::Spec)?;
    let written = || {
        for (path, bytes) in asked.iter().flat_map(|(problem, asked)| asked.files(problem)) {
            let path = root.join(path);
            fs::make_folder(path.parent().unwrap_or(root))?;
            fs::write(&path, &bytes)?;
        }
        fs::write(&root.join(OPS), new.as_bytes())
    };
    written().map_err(|error| {
        for (problem, _) in asked {
            let _ = fs::remove(&root.join(problem.folder()));
        }
        CliError::from(anyhow::Error::from(error).context("cannot write the imported problems"))
    })
}
