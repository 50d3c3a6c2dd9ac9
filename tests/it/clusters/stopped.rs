//! Who stops a build, or is stopped: nothing runs on any node soon after.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Clustered;
use crate::project::{Project, SOON, until};

/// Waits until no node of a workspace performs anything any more, and expects that within 5 s.
pub(super) fn expect_nothing_runs(home: &Project, since: Instant) {
    let place = home.path("..").canonicalize().unwrap().display().to_string();
    let of_node = |process: PathBuf| {
        let read = |file: &str| fs::read(process.join(file)).unwrap_or_default();
        let [command, environment] =
            ["cmdline", "environ"].map(|file| String::from_utf8_lossy(&read(file)).into_owned());
        // Those of the interpreter, and the t2t that started it. A node of Ray goes on.
        let is_t2t = command.contains("\0perform\0") && environment.contains(&place);
        let is_own = is_t2t || (command.contains(&place) && command.contains("/python/bin/"));
        is_own.then(|| format!("{} {}", process.display(), command.replace('\0', " ")))
    };
    let running = || fs::read_dir("/proc").unwrap().flatten().filter_map(|process| of_node(process.path()));
    let end = Instant::now() + SOON;
    while let Some(one) = running().next() {
        assert!(Instant::now() < end, "it goes on: {one}, {:?}", running().collect::<Vec<_>>());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(since.elapsed() < Duration::from_secs(5), "it took {:?}", since.elapsed());
}

#[test]
fn whoever_is_interrupted_or_killed_leaves_nothing_running_on_any_node() {
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let cluster = Clustered::new();
        cluster.home.kernel("softmax", "v1_baseline", "HANG");
        let child = cluster
            .command("build --on ray://head:10001 softmax/v1_baseline:check")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until(|| cluster.ran_on("one").iter().chain(&cluster.ran_on("two")).next().map(|_| ()));
        let began = Instant::now();
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        let code = cluster.home.wait(child).code;
        assert_eq!(code, if signal == Signal::SIGINT { 130 } else { -1 });
        expect_nothing_runs(&cluster.home, began);
    }
}
