//! The system's clock set back, or ahead and back again, while t2t runs: it is never believed where that could hide an edit, and nothing runs for it.
//!
//! The binary gets another clock by `set_back.c`, which takes a C compiler and a dynamic linker that preloads: `tests/soak.sh` runs this. What needs no such thing is
//! tested where the clock is read: `crates/store/src/fingerprint.rs`, `crates/host/src/watch/hold.rs`, `crates/store/src/store/noop_cache.rs`, and in `damage.rs`.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::environment;
use crate::project::{Project, Ran};
use crate::soak::Count;
use crate::watching::Watching;

const KERNEL: &str = "kernels/softmax/v2_tiling.py";
/// What the code of that kernel reruns.
const RERUN: &str = "softmax:select,log softmax/v2_tiling:compile,check,bench summary";
/// A day in seconds.
const DAY: i64 = 86_400;

/// A clock that is off by so many seconds first, and after so many readings by so many.
#[derive(Debug, Clone, Copy)]
struct Clock {
    first: i64,
    readings: u32,
    then: i64,
}

impl Clock {
    fn off_by(seconds: i64) -> Self {
        Self { first: seconds, readings: 0, then: seconds }
    }
}

/// Compiles the clock into the project's folder.
pub fn shim(project: &Project) -> PathBuf {
    let made = project.path("../set_back.so");
    let source = environment::root().join("tests/it/set_back.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&made).arg(source);
    assert!(compiler.status().expect("there is a C compiler").success());
    made
}

fn command(project: &Project, clock: Clock, arguments: &str) -> Command {
    let mut command = project.command(arguments);
    command.env("LD_PRELOAD", project.path("../set_back.so"));
    let told = [("FIRST", clock.first), ("READINGS", i64::from(clock.readings)), ("THEN", clock.then)];
    command.envs(told.map(|(name, value)| (format!("T2T_CLOCK_{name}"), value.to_string())));
    command
}

fn t2t(project: &Project, clock: Clock, arguments: &str) -> Ran {
    project.run(&mut command(project, clock, arguments))
}

/// Gives the kernel other code of the same length.
fn edit(project: &Project, number: &mut u32) {
    project.edit(KERNEL, &format!("input + {number}"), &format!("input + {}", *number % 9 + 1));
    *number = *number % 9 + 1;
}

#[test]
#[ignore = "it takes a C compiler: tests/soak.sh runs it"]
fn a_clock_that_is_set_while_a_build_runs_changes_nothing() {
    let project = Project::new();
    shim(&project);
    let count = Count::of("clocks", "set");
    let mut number = 1;
    for (first, then) in [(0, -DAY), (DAY, 0), (-DAY, DAY), (0, i64::from(i32::MIN))] {
        for readings in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55] {
            let clock = Clock { first, readings, then };
            if project.exists("cache") {
                project.remove("cache");
            }
            let ran = t2t(&project, clock, "build --events ../events.jsonl");
            assert_eq!(ran.code, 0, "{clock:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("warning"), "{clock:?}: {}", ran.stderr);
            count.add(1);
            expect_no_step_back(&project.read("../events.jsonl"));
            project.build().exits(0).runs("");
            edit(&project, &mut number);
            let ran = t2t(&project, clock, "build");
            assert_eq!((ran.code, ran.actions.as_str()), (0, RERUN), "{clock:?}: {}", ran.stderr);
            for arguments in ["build", "cache stats", "cache gc --max-age 1h", "cache verify", "status", "build"] {
                t2t(&project, clock, arguments).exits(0).runs("");
            }
            project.build().exits(0).runs("");
        }
    }
}

#[test]
#[ignore = "it takes a C compiler: tests/soak.sh runs it"]
fn a_store_made_tomorrow_is_as_good_as_one_made_today() {
    let project = Project::new();
    shim(&project);
    let mut number = 1;
    for days in [1, 0, -1, 400, -400, 0, 20_000, 0] {
        let clock = Clock::off_by(days * DAY);
        if number > 1 {
            t2t(&project, clock, "build").exits(0).runs("");
        }
        edit(&project, &mut number);
        let ran = t2t(&project, clock, "build");
        let is_first = days == 1;
        assert_eq!(ran.code, 0, "{days}: {}", ran.stderr);
        assert!(is_first || ran.actions == RERUN, "{days}: {}", ran.actions);
        t2t(&project, clock, "build").exits(0).runs("");
        t2t(&project, clock, "cache gc --max-age 1h").exits(0);
        t2t(&project, clock, "build").exits(0).runs("");
    }
}

#[test]
#[ignore = "it takes a C compiler: tests/soak.sh runs it"]
fn a_watch_whose_clock_is_set_sees_every_save() {
    let project = Project::new();
    shim(&project);
    let mut number = 1;
    for readings in [1, 10, 20, 30, 40] {
        let clock = Clock { first: 0, readings, then: -DAY };
        let mut watching = Watching::of(&project, &mut command(&project, clock, "watch"));
        watching.settles();
        for _ in 0..2 {
            let before = project.log().len();
            let text = project.read(KERNEL);
            // No code comes again, of which a result would stand.
            let next = text.replace(&format!("input + {number}"), &format!("input + {}", number + 1));
            number += 1;
            project.write(KERNEL, next);
            watching.says("bench softmax/v2_tiling … passed");
            watching.settles();
            let log = project.log().split_off(before);
            let benches = log.iter().filter(|line| line.as_str() == "softmax/v2_tiling:bench bench:bench").count();
            assert_eq!(benches, 1, "{readings}: {log:?}");
        }
        let (code, told) = watching.stop(Signal::SIGINT);
        assert_eq!(code, 130, "{told}");
        project.build().exits(0).runs("");
    }
}

/// Events tell the seconds since the first by a clock that nobody sets.
fn expect_no_step_back(events: &str) {
    let seconds = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let seconds: Vec<f64> = seconds.map(|event| event["seconds"].as_f64().unwrap()).collect();
    assert!(seconds.len() > 20 && seconds.is_sorted(), "{seconds:?}");
}
