//! Secrets in the environment of t2t: nobody of the same user can look them up.

use std::fs;
use std::io::{self, Write};
use std::os::unix::{fs::MetadataExt, process::CommandExt};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::environment;
use crate::project::SOON;

const SECRET: &str = "planted-secret";
/// A user without any power, where the tests run as root, who may read everything.
const NOBODY: u32 = 65_534;

/// Starts a program, with a secret, as a user without power, before a pipe that nobody reads.
fn started(program: &mut Command) -> (Child, io::PipeReader) {
    let (kept, mut full) = io::pipe().unwrap();
    // All that a pipe holds, but for what is soon written.
    full.write_all(&vec![b'.'; 65_000]).unwrap();
    let child = as_nobody(program).env("T2T_REMOTE_TOKEN", SECRET).current_dir("/").stdout(full).spawn().unwrap();
    (child, kept)
}

fn as_nobody(command: &mut Command) -> &mut Command {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return command;
    }
    environment::expect_open_to_others();
    command.uid(NOBODY).gid(NOBODY)
}

/// Returns whether the secret is seen in the environment of a process by another one of its user.
fn is_seen(process: &Child) -> bool {
    let mut look = Command::new("cat");
    look.arg(format!("/proc/{}/environ", process.id())).stderr(Stdio::null());
    String::from_utf8_lossy(&as_nobody(&mut look).output().unwrap().stdout).contains(SECRET)
}

#[test]
fn the_environment_of_t2t_is_closed_to_other_processes_of_its_user() {
    let (mut open, _kept) = started(Command::new("sleep").arg("1000"));
    let (mut closed, _also) = started(Command::new(environment::binary()).args(["completions", "bash"]));
    let end = Instant::now() + SOON;
    // Before its first lines have run it is as open as any.
    while !is_seen(&open) || is_seen(&closed) {
        assert!(Instant::now() < end, "seen: {}, {}", is_seen(&open), is_seen(&closed));
        thread::sleep(Duration::from_millis(5));
    }
    assert!(closed.try_wait().unwrap().is_none(), "it has ended, and so has nothing to see");
    for process in [&mut open, &mut closed] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}
