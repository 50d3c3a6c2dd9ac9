//! The builder of end-to-end tests: a workspace in a temporary folder, the t2t of this source run in it with the real worker, and what it
//! left in its store.
//!
//! It does not know what a kernel is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use t2t_model::action::{DeviceClass, Identity, Phase, Target};
use t2t_model::record::{Outcome, Record};
use t2t_store::store::cas::Cas;
use t2t_store::store::journal::Journal;
use tempfile::TempDir;

use crate::environment;
use crate::project::{expect_none_lost, know_harness};
use crate::zygote;

/// A workspace, gone when it is dropped.
pub struct Workspace {
    folder: TempDir,
    python: PathBuf,
}

/// How a run of t2t ended, and what it printed.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub told: String,
}

impl Workspace {
    /// Makes a workspace with this ops.yaml.
    pub fn new(ops: &str) -> Self {
        Self::of(ops, environment::python())
    }

    /// Makes one whose fork servers start at once: what is tested is what comes of kernels, not how servers start.
    pub fn with_zygote(ops: &str) -> Self {
        let workspace = Self::of(ops, zygote::python());
        know_harness(&workspace.path("cache/toolchain"));
        workspace
    }

    fn of(ops: &str, python: PathBuf) -> Self {
        let workspace = Self { folder: environment::folder(), python };
        workspace.write("ops.yaml", ops);
        workspace
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Copies a file of the repository to the place that it has there, or to another.
    pub fn copy(&self, name: &str, to: &str) {
        self.write(to, fs::read(environment::root().join(name)).unwrap());
    }

    /// Replaces the first `from` in a file.
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no `{from}`");
        self.write(name, text.replacen(from, to, 1));
    }

    /// Returns t2t with the tests' interpreter, to be run in the workspace. All processes under it have a variable that names the workspace.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(environment::binary());
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null());
        command.env("T2T_PYTHON", &self.python).env("T2T_LOCK_DIR", self.path("locks"));
        command.env("HOME", self.path("home")).env_remove("PYTHONPATH").env_remove("T2T_HARNESS");
        // Each workspace has a home of its own, which would be filled anew.
        command.env("T2T_BYTECODE", environment::bytecode());
        if let Some(module) = std::env::var_os("T2T_TEST_MODULE") {
            command.env("PYTHONPATH", module);
        }
        command
    }

    /// Runs t2t to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        finished(self.command(arguments))
    }

    /// Builds `targets`, or everything, on the interpreter.
    pub fn build(&self, targets: &[&str]) -> Ran {
        self.run(&[&["build", "--device", "cpu"], targets].concat())
    }

    /// Returns the last record of a target on the interpreter.
    pub fn record(&self, target: &str) -> Option<Record> {
        self.record_on(DeviceClass::Interpreter, target)
    }

    /// Returns the last record of a target on a device.
    pub fn record_on(&self, device: DeviceClass, target: &str) -> Option<Record> {
        let target = Target::try_from(target.to_owned()).unwrap();
        let anywhere = matches!(target.phase, Phase::Analyze | Phase::Compile);
        let identity = Identity { target, device: (!anywhere).then_some(device) };
        Journal::open(&self.path("cache")).load().unwrap().history.last(&identity).map(|record| (**record).clone())
    }

    /// Returns `passed`, `not-judged`, the class of a rejection, or `none` where there is no record.
    pub fn outcome(&self, target: &str) -> String {
        match self.record(target).map(|record| record.outcome) {
            Some(Outcome::Passed) => "passed".to_owned(),
            Some(Outcome::Rejected { class }) => class,
            Some(Outcome::NotJudged { .. }) => "not-judged".to_owned(),
            Some(Outcome::Lost { .. }) | None => "none".to_owned(),
        }
    }

    /// Returns an artifact of a target's last record.
    pub fn artifact(&self, target: &str, name: &str) -> Vec<u8> {
        let record = self.record(target).unwrap_or_else(|| panic!("{target} has no record"));
        let blob = record.outputs.get(name).unwrap_or_else(|| panic!("{target} has no `{name}`"));
        Cas::open(&self.path("cache")).get(blob.digest).unwrap()
    }

    /// Returns a JSON artifact.
    pub fn document(&self, target: &str, name: &str) -> Value {
        serde_json::from_slice(&self.artifact(target, name)).unwrap()
    }

    /// Returns the targets of all records, in the order in which they were kept.
    pub fn journal(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("cache/journal")).unwrap_or_default();
        let bodies = text.lines().skip(1).filter_map(|line| line.split_once(' '));
        let records = bodies.filter_map(|(_, body)| serde_json::from_str::<Value>(body).ok());
        records.filter_map(|record| record["identity"]["target"].as_str().map(str::to_owned)).collect()
    }

    /// Returns the targets that were kept while `work` ran, sorted.
    pub fn kept_by(&self, work: impl FnOnce()) -> Vec<String> {
        let before = self.journal().len();
        work();
        let mut kept = self.journal().split_off(before);
        kept.sort();
        kept
    }
}

/// Runs a command to its end.
#[track_caller]
pub fn finished(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    expect_none_lost(output.status.code(), &text(&output.stderr));
    Ran { code: output.status.code(), out: text(&output.stdout), told: text(&output.stderr) }
}
