//! A watch that runs, for tests: its lines as they come, and what the stand-in for Python ran since.
//!
//! Each wait is for a line, and longer than anything takes that works; only where none is to come does time pass.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::project::{LOST, Project, SOON, until};

/// A `t2t watch` that runs in a project.
pub struct Watching<'a> {
    project: &'a Project,
    child: Option<Child>,
    lines: Receiver<String>,
    told: String,
    /// Whether the test waited for an action that is lost to the machine.
    may_lose: bool,
    /// How many lines the interpreter had logged when counting began.
    mark: usize,
}

impl<'a> Watching<'a> {
    /// Starts `t2t watch` in `project` and waits until the first round is over.
    pub fn start(project: &'a Project, arguments: &str) -> Self {
        let mut watching = Self::begin(project, arguments);
        watching.settles();
        watching
    }

    /// Starts `t2t watch` in `project`.
    pub fn begin(project: &'a Project, arguments: &str) -> Self {
        Self::of(project, &mut project.command(&format!("watch {arguments}")))
    }

    /// Starts a command that watches `project`.
    pub fn of(project: &'a Project, command: &mut Command) -> Self {
        project.is_watched.store(true, Ordering::Relaxed);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for stream in streams {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        Self { project, child: Some(child), lines, told: String::new(), may_lose: false, mark: project.log().len() }
    }

    /// Waits for a line that has this text.
    #[track_caller]
    pub fn says(&mut self, text: &str) -> String {
        self.may_lose |= text.contains("lost");
        loop {
            let Ok(line) = self.lines.recv_timeout(SOON) else {
                panic!("no line with `{text}` came; told was\n{}", self.told);
            };
            writeln!(self.told, "{line}").unwrap();
            assert!(self.may_lose || !line.contains(LOST), "told was\n{}", self.told);
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits for a line of each of these texts, in any order.
    #[track_caller]
    pub fn says_all(&mut self, texts: &[&str]) {
        let mut open: Vec<&str> = texts.to_vec();
        while !open.is_empty() {
            let line = self.says("");
            open.retain(|text| !line.contains(text));
        }
    }

    /// Fails where a line comes within a time in which one would, were it to come. On a slow machine it may be missed; it never fails for being slow.
    #[track_caller]
    pub fn says_nothing(&mut self) {
        thread::sleep(Duration::from_millis(200));
        let line = self.lines.try_recv();
        assert!(line.is_err(), "`{}` after\n{}", line.unwrap_or_default(), self.told);
    }

    /// Waits until a round is over.
    #[track_caller]
    pub fn settles(&mut self) -> String {
        self.says("fresh ")
    }

    /// Counts what runs from here on.
    pub fn count(&mut self) {
        self.mark = self.project.log().len();
    }

    /// Waits until a child of the interpreter has begun since counting did, as in `softmax/v2_tiling:check candidate:run`.
    pub fn begins(&self, call: &str) {
        until(|| self.project.log()[self.mark..].iter().any(|line| line == call).then_some(()));
    }

    /// Returns what the interpreter's children did since counting began: target → how often its first child ran.
    pub fn ran(&self) -> BTreeMap<String, usize> {
        let first = ["candidate:run", "compile:compile_variant", "bench:bench", "analyze:analyze", "baseline:baseline"];
        let mut ran = BTreeMap::new();
        for line in &self.project.log()[self.mark..] {
            if let Some((target, function)) = line.split_once(' ')
                && first.contains(&function)
            {
                *ran.entry(target.to_owned()).or_default() += 1;
            }
        }
        ran
    }

    /// Fails unless since counting began exactly these ran in children, each once.
    #[track_caller]
    pub fn ran_once(&self, targets: &[&str]) {
        let expected: BTreeMap<String, usize> = targets.iter().map(|target| ((*target).to_owned(), 1)).collect();
        assert_eq!(self.ran(), expected, "told was\n{}", self.told);
    }

    /// Returns all lines so far.
    pub fn told(&self) -> &str {
        &self.told
    }

    /// Types keys.
    pub fn press(&mut self, keys: &str) {
        self.child.as_mut().unwrap().stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().unwrap();
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    }

    /// Ends the watch by a signal, and returns its exit code and all lines.
    pub fn stop(mut self, signal: Signal) -> (i32, String) {
        self.signal(signal);
        self.wait()
    }

    /// Waits for the watch to end, and returns its exit code and all lines.
    pub fn wait(&mut self) -> (i32, String) {
        while let Ok(line) = self.lines.recv_timeout(SOON) {
            writeln!(self.told, "{line}").unwrap();
        }
        let status = self.child.take().unwrap().wait().unwrap();
        (status.code().unwrap_or(-1), self.told.clone())
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.project.is_watched.store(false, Ordering::Relaxed);
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
