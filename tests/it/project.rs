//! The builder of black-box tests: a workspace in a temporary folder, the shipped binary with a cleared environment, and the interpreter of
//! `fake_python/`, whose log says what ran.
//!
//! It knows t2t from outside alone: files, arguments, both streams, the exit code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use t2t_store::harness::Harness;
use tempfile::TempDir;

use crate::environment;

mod ran;

pub use self::ran::{LOST, Ran, expect_none_lost};
use self::ran::{grouped, is_local, redacted_line, reported};

/// Two ops of two variants each: on the interpreter 9 actions an op, and the summary.
pub const OPS: &str = "\
version: 1
defaults:
  variants: [v1_baseline, v2_tiling]
  bench: {sizes: {small: [16, 16]}}
ops:
  softmax:
    torch: torch.nn.functional.softmax
    inputs: {input: [M, N]}
    kwargs: {dim: -1}
  gelu:
    torch: torch.nn.functional.gelu
    inputs: {input: [M, N]}
";

/// A third op, to put behind them.
pub const RELU: &str = "  relu:\n    torch: torch.nn.functional.relu\n    inputs: {input: [M, N]}\n";

/// Longer than anything takes that works, on a machine that has much else to do.
pub const SOON: Duration = Duration::from_mins(5);

/// A workspace and an interpreter.
pub struct Project {
    folder: TempDir,
    /// Whether a watch looks at it.
    pub is_watched: AtomicBool,
}

impl Project {
    /// Makes a workspace with [`OPS`] and its kernels.
    pub fn new() -> Self {
        let project = Self::with(OPS);
        know_harness(&project.path("cache/toolchain"));
        for op in ["softmax", "gelu"] {
            for variant in ["v1_baseline", "v2_tiling"] {
                project.kernel(op, variant, "");
            }
        }
        project
    }

    /// Makes a workspace with this ops.yaml and no kernels.
    pub fn with(ops: &str) -> Self {
        let project = Self { folder: environment::folder(), is_watched: AtomicBool::new(false) };
        project.write("ops.yaml", ops);
        project.write("assets/log_template.md", LOG);
        install(&project.path("../python"));
        project
    }

    /// Makes a workspace that was built.
    pub fn built() -> Self {
        let project = Self::new();
        assert_eq!(project.build().code, 0);
        project
    }

    /// Returns a place in the workspace.
    pub fn path(&self, path: &str) -> PathBuf {
        let root = self.folder.path().join("work");
        match path.strip_prefix("../") {
            Some(outside) => self.folder.path().join(outside),
            None => root.join(path),
        }
    }

    /// Writes a file. Where a watch may look at any moment nobody sees it half-written: it is put in its place by a rename. How editors write is tried in
    /// `editors`.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if self.is_watched.load(Ordering::Relaxed) {
            let beside = self.path("../beside");
            fs::write(&beside, text).unwrap();
            fs::rename(beside, file).unwrap();
        } else {
            fs::write(file, text).unwrap();
        }
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Removes a file or a folder.
    pub fn remove(&self, path: &str) {
        let file = self.path(path);
        if file.is_dir() { fs::remove_dir_all(file) } else { fs::remove_file(file) }.unwrap();
    }

    /// Puts `to` in the place of `from`, which must be there.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} has no `{from}`:\n{text}");
        self.write(path, text.replacen(from, to, 1));
    }

    /// Writes a kernel file; `mark` says what is to become of it, as `fake_python/server.py` lists.
    pub fn kernel(&self, op: &str, variant: &str, mark: &str) {
        let text = format!(
            "\"\"\"{op}, {variant}.\"\"\"\nimport triton\n\nMARK = \"{mark}\"\n\n\ndef triton_{op}(input):\n    \"\"\"Launch it.\"\"\"\n    return input + 1\n"
        );
        self.write(&file(op, variant), text);
    }

    /// Writes `versions.json` as an installer does: beside it, then over it.
    pub fn install(&self, versions: &[(&str, &str)]) {
        versions_of(&self.path("../python"), versions);
    }

    pub fn build(&self) -> Ran {
        self.t2t("build")
    }

    /// Runs t2t in the workspace. Arguments are parted by spaces; `+` stands for a space in one.
    pub fn t2t(&self, arguments: &str) -> Ran {
        self.run(&mut self.command(arguments))
    }

    /// Runs t2t and returns what it printed as a result, nothing redacted.
    pub fn run_raw(&self, arguments: &str) -> String {
        String::from_utf8(self.command(arguments).output().unwrap().stdout).unwrap()
    }

    /// Returns the command for [`Self::run`], to be changed before it is run.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(environment::binary());
        command
            .args(arguments.split_whitespace().map(|argument| argument.replace('+', " ")))
            .args(if arguments.contains("--device") || arguments.contains("--as-device") {
                [].as_slice()
            } else {
                &["--device", "cpu"]
            })
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", self.folder.path())
            .env("T2T_PYTHON", self.path("../python/bin/python"))
            .env("T2T_BYTECODE", "")
            // A server answers late on a machine that has much else to do.
            .env("T2T_REMOTE_TIMEOUT", "240s")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command of this project.
    pub fn run(&self, command: &mut Command) -> Ran {
        let before = self.log().len();
        let output = command.output().unwrap();
        self.ran(&output, &self.log()[before..])
    }

    #[track_caller]
    fn ran(&self, output: &Output, log: &[String]) -> Ran {
        let stderr = self.redacted(&output.stderr);
        expect_none_lost(output.status.code(), &stderr);
        let children = log.iter().filter_map(|line| line.split_once(' ')).map(|(target, _)| target.to_owned());
        let children: Vec<String> = children.filter(|target| target.contains('/') || target.contains(':')).collect();
        let local = stderr.lines().filter_map(reported).filter(|target| is_local(target));
        let asked = children.len();
        let of_actions = children.into_iter().filter(|target| !target.ends_with(":probe"));
        let actions = grouped(of_actions.chain(local).collect());
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: self.redacted(&output.stdout),
            starts: log.iter().filter(|line| line.starts_with("start ")).count(),
            asked,
            stderr,
            actions,
        }
    }

    /// Has the next build look at everything.
    pub fn forget_answers(&self) {
        fs::remove_dir_all(self.path("cache/answers")).unwrap();
    }

    /// Lets kernels go on that wait or hang.
    pub fn calm(&self) {
        self.write("../python/bin/calm", "");
    }

    /// Returns the lines that the interpreter logged, oldest first.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("../python/bin/ran.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Starts a command and leaves it running.
    pub fn spawn(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits for a started command, and tells what it printed; of what ran, only what it reported.
    pub fn wait(&self, child: Child) -> Ran {
        self.ran(&child.wait_with_output().unwrap(), &[])
    }

    /// Waits until the interpreter logs a line that starts so, and returns the rest of it.
    pub fn until_logged(&self, start: &str) -> String {
        until(|| self.log().iter().find_map(|line| line.strip_prefix(start).map(|rest| rest.trim().to_owned())))
    }

    /// Returns text without what differs from run to run: the folder, times, digests, process ids.
    fn redacted(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let folder = self.folder.path().to_str().unwrap();
        let lines = text.replace(&format!("{folder}/work"), "[ROOT]").replace(folder, "[FOLDER]");
        lines.lines().map(|line| redacted_line(line) + "\n").collect()
    }

    /// Returns the files under a folder of the workspace, sorted.
    pub fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.path(folder)];
        while let Some(path) = open.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
                Err(_) => found.push(path),
            }
        }
        found.sort();
        found
    }
}

/// A small template that shows what every phase makes.
const LOG: &str = "\
# {{ op }}
{{ operation }} {{ kwargs | pairs }}
{% for variant in variants %}
{{ variant.name }} {{ variant.status }}: {{ variant.docstring | known }} {{ variant.notes | join(' ') }}
{% endfor %}
";

/// Returns the place of a kernel file.
pub fn file(op: &str, variant: &str) -> String {
    format!("kernels/{op}/{variant}.py")
}

/// Leaves in a folder what a build keeps there of the harness that t2t carries, whose 200 files take a debug binary half a second to parse.
pub fn know_harness(folder: &Path) {
    static KEPT: OnceLock<(OsString, Vec<u8>)> = OnceLock::new();
    let (name, bytes) = KEPT.get_or_init(|| {
        let folder = environment::folder();
        let meanings = Harness::open(None).unwrap().meanings(folder.path());
        assert!(!meanings.phases.is_empty());
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
        (file.file_name(), fs::read(file.path()).unwrap())
    });
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
}

/// Makes an environment with the interpreter for tests, as `bin/python` in `folder`.
pub fn install(folder: &Path) {
    fs::create_dir_all(folder.join("bin")).unwrap();
    symlink(environment::root().join("tests/it/fake_python/server.py"), folder.join("bin/python")).unwrap();
    versions_of(folder, &[("torch", "2.11.0"), ("triton", "3.6.0")]);
}

fn versions_of(folder: &Path, versions: &[(&str, &str)]) {
    let site = folder.join("site-packages");
    fs::create_dir_all(&site).unwrap();
    let versions: BTreeMap<&str, &str> = versions.iter().copied().collect();
    fs::write(site.join("new"), serde_json::to_vec(&versions).unwrap()).unwrap();
    fs::rename(site.join("new"), site.join("versions.json")).unwrap();
}

/// Writes a program. Another process does: a file that this one has open for writing, or a child that another test is just starting, cannot be executed.
pub fn program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

/// Copies a program, as [`program`] writes one.
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() { copy_folder(&entry.path(), &to) } else { _ = fs::copy(entry.path(), to).unwrap() }
    }
}

/// Asks until there is an answer.
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + SOON;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "it did not happen in time");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The folders in which the script finds `python3`: first that of the real one, which is not a slow script in front of it.
fn search_path() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let asked = asked.expect("`python3` is on the PATH");
        let python = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim());
        format!("{}:/usr/bin:/bin", python.parent().unwrap().display())
    })
}
