//! Kill -9 of t2t, of a fork server and of a child, at many moments: the next build ends as a clean one would, runs nothing again that had finished, and leaves
//! nothing half-written and no process.
//!
//! Moments are drawn with fixed seeds, and are counted in what happens (lines of events, children seen) with a short delay behind it: so they spread over a
//! build however fast the machine is. A soak draws more of them, for as long as it goes on, and counts the kills that landed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use t2t_model::digest::Digest;

use crate::lite;
use crate::project::{Project, until};
use crate::soak::{Count, rounds};
use crate::worker::worker_leftovers::marked;

mod stores;

/// How many moments a test draws, where it is no soak.
const MOMENTS: u64 = 10;

/// Numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = Digest::of(&self.0.to_le_bytes());
        let (bytes, _) = mixed.as_bytes().split_first_chunk::<8>().unwrap();
        u64::from_le_bytes(*bytes) % end
    }
}

/// Which interpreter a build has.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The one that is a script, a process a server.
    StandIn,
    /// The real worker.
    Lite,
}

/// A workspace that is built again and again.
struct Stage {
    project: Project,
    kind: Kind,
    /// What a clean build leaves, by which kernel is edited.
    clean: [Left; 2],
}

/// What a build came to: its exit code, its logs, and what its results are made of.
#[derive(Debug, PartialEq, Clone)]
struct Left {
    code: i32,
    logs: BTreeMap<String, String>,
    artifacts: BTreeMap<String, Value>,
}

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

impl Stage {
    fn new(kind: Kind) -> Self {
        let project = Project::new();
        project.kernel("gelu", "v2_tiling", "REJECT mismatch");
        project.kernel("gelu", "v1_baseline", "SLEEP 0.01");
        project.write("../python/bin/steady", "");
        // The carried one tells how long it took.
        project.write("assets/summary_template.md", "# Of my own\n");
        if kind == Kind::Lite {
            lite::prepare(&project);
        }
        let none = Left { code: 0, logs: BTreeMap::new(), artifacts: BTreeMap::new() };
        let mut stage = Self { project, kind, clean: [none.clone(), none] };
        let before = stage.build();
        stage.project.edit(KERNEL, "input + 1", "input + 2");
        stage.empty();
        let after = stage.build();
        assert_eq!((before.code, after.code), (1, 1), "{}", stage.project.read("../next.told"));
        assert_ne!(before.artifacts, after.artifacts);
        assert_eq!(before.artifacts.len(), 32, "{:?}", before.artifacts.keys());
        stage.clean = [before, after];
        stage
    }

    fn spawn(&self, events: &str) -> Child {
        let arguments = format!("build --events ../{events}");
        let mut command = match self.kind {
            Kind::StandIn => self.project.command(&arguments),
            Kind::Lite => lite::command(&self.project, &arguments),
        };
        let told = fs::File::create(self.project.path(&format!("../{events}.told"))).unwrap();
        command.stdout(Stdio::null()).stderr(told).spawn().unwrap()
    }

    fn build(&self) -> Left {
        self.left(self.spawn("next").wait().unwrap().code().unwrap())
    }

    fn left(&self, code: i32) -> Left {
        let shown = |path: &PathBuf| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        };
        let logs = self.project.files("logs").iter().map(shown).collect();
        let mut artifacts = BTreeMap::new();
        for record in self.records() {
            let target = record["identity"]["target"].as_str().unwrap();
            for (name, blob) in record["outputs"].as_object().unwrap() {
                if name != "cost" {
                    artifacts.insert(format!("{target} {name}"), blob["digest"].clone());
                }
            }
        }
        Left { code, logs, artifacts }
    }

    /// Returns the whole lines of the journal, oldest first.
    fn records(&self) -> Vec<Value> {
        let journal = fs::read(self.project.path("cache/journal")).unwrap_or_default();
        let text = String::from_utf8_lossy(&journal);
        let bodies = text.split_inclusive('\n').skip(1).filter(|line| line.ends_with('\n'));
        bodies.filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok()).collect()
    }

    /// Returns the targets of the events of this kind, in order. A line that was torn by a kill is none.
    fn told(&self, events: &str, kind: &str, how: Option<&str>) -> Vec<String> {
        let text = fs::read_to_string(self.project.path(&format!("../{events}"))).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let events = events.filter(|event| event["event"] == kind && how.is_none_or(|how| event["how"] == how));
        events.map(|event| event["target"].as_str().unwrap().to_owned()).collect()
    }

    /// Removes what was built.
    fn empty(&self) {
        for folder in ["cache", "logs"] {
            fs::remove_dir_all(self.project.path(folder)).ok();
        }
    }

    /// Brings the workspace before a build: of nothing, or of a kernel that was edited since the last one. Returns which of the clean builds it must come to.
    fn set(&self, round: u64) -> usize {
        if round.is_multiple_of(2) {
            self.empty();
        }
        let text = self.project.read(KERNEL);
        let is_second = text.contains("input + 2");
        // Every second round begins with the results of the other text in the store.
        let (from, to) = if is_second { ("input + 2", "input + 1") } else { ("input + 1", "input + 2") };
        if round % 2 == 1 {
            self.project.edit(KERNEL, from, to);
            // Nothing of that text is known, so that there is something to run.
            let journal = self.project.read("cache/journal");
            let is_of_it = |line: &&str| !(line.contains("softmax") || line.contains("\"summary\""));
            let kept: Vec<&str> = journal.lines().filter(is_of_it).collect();
            self.project.write("cache/journal", kept.join("\n") + "\n");
            return usize::from(!is_second);
        }
        usize::from(is_second)
    }

    /// Builds after a kill, and fails where that does not end as a clean build does.
    fn expect_mended(&self, clean: usize, what: &str) {
        let known: BTreeSet<String> =
            self.records().iter().map(|record| record["identity"]["target"].as_str().unwrap().to_owned()).collect();
        for told in self.told("killed", "action-finished", Some("ran")) {
            assert!(known.contains(&told), "{what}: {told} was told as finished and is not kept");
        }
        self.expect_no_process();
        let left = self.build();
        assert_eq!(left, self.clean[clean], "{what}\n{}", self.project.read("../next.told"));
        let again: Vec<String> = self.told("next", "action-started", None);
        let again: Vec<&String> = again.iter().filter(|target| known.contains(*target)).collect();
        assert!(again.is_empty(), "{what}: {again:?} had finished and ran again");
        let unfinished: Vec<PathBuf> = [self.project.files("cache"), self.project.files("logs")].concat();
        let is_left = |path: &&PathBuf| {
            path.extension().is_some_and(|ending| ending == "tmp") || path.to_str().unwrap().contains("cache/scratch/")
        };
        let unfinished: Vec<&PathBuf> = unfinished.iter().filter(is_left).filter(|path| path.is_file()).collect();
        assert!(unfinished.is_empty(), "{what}: {unfinished:?}");
        assert!(!self.project.exists("cache/replaced"), "{what}: a log was taken for an edited one");
        self.project.t2t("cache verify").exits(0).says(": 0 damages").never_says("1 unfinished");
    }

    /// Waits until no process has to do with the workspace. One that is being forked can be overlooked once, and not for long.
    fn expect_no_process(&self) {
        let folder = self.project.path("..").canonicalize().unwrap();
        let is_quiet = || {
            thread::sleep(Duration::from_millis(20));
            marked(&folder).is_empty()
        };
        until(|| (0..3).all(|_| is_quiet()).then_some(()));
    }
}

/// Waits until so many lines of events were written, or the build has ended, and a moment longer.
fn wait_for(stage: &Stage, build: &mut Child, lines: u64, delay: Duration) {
    let path = stage.project.path("../killed");
    until(|| {
        let written = fs::read_to_string(&path).unwrap_or_default().lines().count() as u64;
        (written >= lines || build.try_wait().unwrap().is_some()).then_some(())
    });
    thread::sleep(delay);
}

/// Whether a kill met a process that ran.
#[derive(Clone, Copy, PartialEq)]
enum Kill {
    Landed,
    TooLate,
}

/// Runs `round` for every moment, with what was drawn for it, and counts the kills that landed.
fn every_moment(usual: u64, seed: u64, mut round: impl FnMut(u64, &mut Draw, &mut dyn FnMut(Kill))) {
    let count = Count::of("kills", "landed");
    let mut draw = Draw(seed);
    for number in rounds(usual) {
        round(number, &mut draw, &mut |kill| count.add(usize::from(kill == Kill::Landed)));
    }
}

fn kill_hard(pid: i32) -> Kill {
    let runs = state_of(pid).is_some_and(|state| !"ZX".contains(state));
    let is_sent = kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok();
    if runs && is_sent { Kill::Landed } else { Kill::TooLate }
}

/// Returns the letter of a process's state.
fn state_of(pid: i32) -> Option<char> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit_once(") ")?.1.chars().next()
}

/// Kills a process of ours, and says whether that is what ended it.
fn kill_own(process: &mut Child) -> Kill {
    process.kill().ok();
    let ended = process.wait().unwrap();
    if ended.signal() == Some(Signal::SIGKILL as i32) { Kill::Landed } else { Kill::TooLate }
}

/// Returns the processes that a process has started and that have not ended.
pub fn children_of(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
}

fn t2t_is_killed(kind: Kind, seed: u64) {
    let stage = Stage::new(kind);
    every_moment(MOMENTS, seed, |number, draw, count| {
        let clean = stage.set(number);
        let (lines, delay) = (draw.below(48), Duration::from_micros(draw.below(20_000)));
        let what = format!("round {number}, killed {delay:?} after line {lines}");
        stage.project.write("../killed", "");
        let mut build = stage.spawn("killed");
        wait_for(&stage, &mut build, lines, delay);
        let kill = kill_own(&mut build);
        stage.expect_mended(clean, &what);
        count(kill);
    });
}

#[test]
fn a_killed_t2t_has_lost_nothing_that_had_finished() {
    t2t_is_killed(Kind::StandIn, 1);
}

#[test]
fn a_killed_t2t_takes_the_real_worker_along_and_has_lost_nothing() {
    t2t_is_killed(Kind::Lite, 2);
}

#[test]
fn a_killed_server_costs_the_build_nothing_but_time() {
    let stage = Stage::new(Kind::Lite);
    every_moment(MOMENTS, 3, |number, draw, count| {
        let clean = stage.set(number);
        let (lines, delay) = (draw.below(44), Duration::from_micros(draw.below(20_000)));
        let what = format!("round {number}, a server killed {delay:?} after line {lines}");
        stage.project.write("../killed", "");
        let mut build = stage.spawn("killed");
        wait_for(&stage, &mut build, lines, delay);
        let servers = children_of(build.id().cast_signed());
        let server = servers.get(usize::try_from(draw.below(2)).unwrap() % servers.len().max(1));
        let kill = server.map_or(Kill::TooLate, |server| kill_hard(*server));
        let code = build.wait().unwrap().code().unwrap();
        // A server that dies while t2t asks the interpreter what it has ends the build.
        let was_probing = stage.told("killed", "action-started", None).is_empty();
        assert!(
            code == stage.clean[clean].code || (was_probing && code == 3),
            "{what}: {code}\n{}",
            stage.project.read("../killed.told")
        );
        stage.expect_mended(clean, &what);
        count(kill);
    });
}

#[test]
fn a_killed_child_costs_the_build_nothing_but_time() {
    let stage = Stage::new(Kind::Lite);
    every_moment(MOMENTS, 4, |number, draw, count| {
        let clean = stage.set(number);
        let (nth, delay) = (draw.below(22), Duration::from_micros(draw.below(3000)));
        let what = format!("round {number}, child {nth} killed after {delay:?}");
        stage.project.write("../killed", "");
        let mut build = stage.spawn("killed");
        let kill = kill_child(&mut build, nth, delay);
        let code = build.wait().unwrap().code().unwrap();
        let was_probing = stage.told("killed", "action-started", None).is_empty();
        assert!(
            code == stage.clean[clean].code || (was_probing && code == 3),
            "{what}: {code}\n{}",
            stage.project.read("../killed.told")
        );
        stage.expect_mended(clean, &what);
        count(kill);
    });
}

/// Kills the n-th child that is seen, or the first after it that still runs when the delay is over.
fn kill_child(build: &mut Child, nth: u64, delay: Duration) -> Kill {
    let t2t = build.id().cast_signed();
    let children = || -> Vec<i32> { children_of(t2t).into_iter().flat_map(children_of).collect() };
    let mut seen = BTreeSet::new();
    while build.try_wait().unwrap().is_none() {
        for child in children() {
            if seen.insert(child) && seen.len() as u64 > nth {
                thread::sleep(delay);
                if children().contains(&child) && kill_hard(child) == Kill::Landed {
                    return Kill::Landed;
                }
            }
        }
    }
    Kill::TooLate
}
