//! Servers of two kinds from the same imports: the first one forks the second.

use std::{fs, thread};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, getpgid},
};
use serde_json::{Value, json};
use t2t_host::{
    interrupt::Interrupt,
    pool::{Cancel, Pool},
};
use t2t_protocol::ServerKind;

use crate::worker::worker_leftovers::{expect_none_marked, marked, runs};
use crate::worker_setup::{Bench, reply, text};

const KINDS: [ServerKind; 2] = [ServerKind::Interpreter, ServerKind::Compiled];

/// Each import leaves a line in a file; so does that of what comes after the fork.
const MODULE: &str = r#"
import os
import threading
import time

LOG = os.environ["T2T_TEST_MARK"] + "/"

def note(what):
    with open(LOG + what, "a") as file:
        file.write(f"{os.getpid()}\n")

note("imported")
if os.path.exists(LOG + "slow"):
    time.sleep(0.3)
if os.path.exists(LOG + "threads"):
    threading.Thread(target=time.sleep, args=(0.5,), daemon=True).start()

def later():
    note("later")
    return iter(())

def says(arguments):
    return {"triton": os.environ["TRITON_INTERPRET"], "server": os.getppid()}
"#;

struct Two {
    bench: Bench,
    pool: Pool,
}

impl Two {
    /// Configures both kinds; what is in `files` exists before they start.
    fn new(files: &[&str]) -> Self {
        let bench = Bench::new(MODULE);
        for file in files {
            fs::write(bench.path(file), "").unwrap();
        }
        let configs = KINDS.map(|kind| {
            let mut config = bench.config();
            config.kind = kind;
            config.preload = vec!["work".to_owned(), "work:later".to_owned()];
            config.fork_after = Some("work".to_owned());
            config.environment.insert("T2T_TEST_MARK".to_owned(), text(bench.folder.path()));
            config
        });
        Self { pool: Pool::new(configs.to_vec(), Interrupt::default()), bench }
    }

    /// Returns what a child of the server of `kind` says of it: its process, which leads a group of its own.
    fn server(&self, kind: ServerKind) -> i32 {
        let finished = self.pool.call(kind, self.bench.request(0, "says"), &Cancel::default(), |_, _| {}).unwrap();
        let told = reply(&finished);
        assert_eq!(told["triton"], json!(kind.triton_interpret()));
        let server = told["server"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap();
        assert_eq!(getpgid(Some(Pid::from_raw(server))), Ok(Pid::from_raw(server)));
        server
    }

    /// Counts the processes that have imported what is shared, and those that went on.
    fn counts(&self) -> [usize; 2] {
        ["imported", "later"].map(|file| fs::read_to_string(self.bench.path(file)).unwrap_or_default().lines().count())
    }
}

fn kill_hard(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

#[test]
fn both_kinds_have_the_imports_of_one() {
    let two = Two::new(&[]);
    let [first, second] = KINDS.map(|kind| two.server(kind));
    assert_ne!(first, second);
    assert_eq!(KINDS.map(|kind| two.server(kind)), [first, second]);
    assert_eq!(two.counts(), [1, 2]);
    assert_eq!(marked(two.bench.folder.path()).len(), 2);
    two.pool.stop();
    expect_none_marked(two.bench.folder.path());
}

#[test]
fn the_second_is_asked_for_while_the_first_imports() {
    let two = Two::new(&["slow"]);
    thread::scope(|scope| {
        let two = &two;
        let servers = KINDS.map(|kind| scope.spawn(move || two.server(kind)));
        let [first, second] = servers.map(|server| server.join().unwrap());
        assert_ne!(first, second);
    });
    assert_eq!(two.counts(), [1, 2]);
}

#[test]
fn what_was_forked_and_is_not_used_ends_with_the_pool() {
    let two = Two::new(&[]);
    two.server(ServerKind::Compiled);
    assert_eq!((two.counts(), marked(two.bench.folder.path()).len()), ([1, 1], 2));
    two.pool.stop();
    expect_none_marked(two.bench.folder.path());
}

#[test]
fn neither_needs_the_other_once_it_serves_and_each_can_start_again() {
    let two = Two::new(&[]);
    let [first, second] = KINDS.map(|kind| two.server(kind));
    kill_hard(first);
    assert_eq!(two.server(KINDS[1]), second);
    let again = until_served(&two, KINDS[0]);
    assert!(again != first && !runs(first) && runs(again));
    kill_hard(second);
    let other = until_served(&two, KINDS[1]);
    assert!(other != second && !runs(second) && runs(again));
    assert_eq!(two.counts(), [3, 4]);
}

/// Returns the server of `kind` once one serves: a call that meets the death of the one before is lost.
fn until_served(two: &Two, kind: ServerKind) -> i32 {
    loop {
        let ended = two.pool.call(kind, two.bench.request(0, "says"), &Cancel::default(), |_, _| {}).unwrap();
        if let t2t_protocol::End::Reply(Value::Object(told)) = &ended.end {
            return i32::try_from(told["server"].as_i64().unwrap()).unwrap();
        }
    }
}

#[test]
fn one_that_was_killed_before_it_was_used_is_replaced() {
    let two = Two::new(&[]);
    let first = two.server(KINDS[0]);
    let waiting = marked(two.bench.folder.path()).into_iter().find(|pid| *pid != first).unwrap();
    kill_hard(waiting);
    let second = two.server(KINDS[1]);
    assert!(second != waiting && runs(first) && runs(second));
    assert_eq!(two.counts(), [2, 2]);
}

#[test]
fn where_an_import_has_begun_a_thread_nothing_is_forked_and_both_import() {
    let two = Two::new(&["threads"]);
    for kind in KINDS {
        two.pool.hello(kind).unwrap();
    }
    assert_eq!(two.counts(), [2, 2]);
}
