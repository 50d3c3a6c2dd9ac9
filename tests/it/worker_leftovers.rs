//! Whoever dies, however: nothing that a child started is left.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use t2t_host::worker::WorkerEvent;
use t2t_protocol::{End, Request};

use crate::worker_setup::{Bench, SOON, Server, reply, text};

const MODULE: &str = r#"
import os, subprocess, sys, time

def daemon(name):
    between = os.fork()
    if between == 0:
        os.setsid()
        if os.fork() == 0:
            open(f"{os.getcwd()}/{name}.pid", "w").write(str(os.getpid()))
            os.chdir("/")
            os.closerange(0, 1024)
            time.sleep(1000)
        os._exit(0)
    while not os.path.exists(f"{name}.pid") or not open(f"{name}.pid").read():
        time.sleep(0.001)
    os.waitpid(between, 0)

def leaves_daemons(arguments):
    daemon("one")
    daemon("two")
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return os.getpid()

def lives_with_all(arguments):
    daemon(arguments["name"])
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL)
    if os.fork() == 0:
        time.sleep(1000)
    open(arguments["name"] + ".ready", "w").close()
    time.sleep(1000)

def quick(arguments):
    return 1

def meets(arguments):
    open(f"{arguments['index']}.here", "w").close()
    while sum(name.endswith(".here") for name in os.listdir(".")) < 10:
        time.sleep(0.01)
    return arguments["index"]
"#;

/// A server whose descendants can all be found: it has a variable that names the bench.
fn start(bench: &Bench) -> Server {
    let mut config = bench.config();
    config.environment.insert("T2T_TEST_MARK".to_owned(), text(bench.folder.path()));
    Server::start(&config)
}

/// A child with a daemon, a process of its group, one of another session, and a fork; once all of them live.
fn family(bench: &Bench, id: u64, name: &str) -> Request {
    let mut request = bench.request(id, "lives_with_all");
    request.arguments = json!({ "name": name });
    request
}

fn wait_for_family(bench: &Bench, name: &str) {
    let ready = bench.path(&format!("scratch/{name}.ready"));
    wait("the family to be complete", || ready.exists());
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + SOON;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Lists the processes that have to do with the bench, by their environment, words or working directory.
pub fn marked(bench: &Path) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| is_marked(*pid, bench)).collect()
}

fn is_marked(pid: i32, bench: &Path) -> bool {
    let bench = text(bench);
    let holds = |file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(&bench)
    };
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    // Zombies have none of the three.
    holds("environ") || holds("cmdline") || folder.starts_with(&bench)
}

/// Whether a process is there, and no zombie.
pub fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn kill_hard(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

fn expect_nothing_left(bench: &Bench) {
    expect_none_marked(bench.folder.path());
}

/// Expects every process that has to do with `folder` to end, or to have ended.
pub fn expect_none_marked(folder: &Path) {
    let left = || marked(folder);
    wait(&format!("{:?} to end", left()), || left().is_empty());
}

#[test]
fn daemons_are_killed_before_the_end_is_told_and_do_not_change_it() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    let finished = server.run(bench.request(1, "leaves_daemons"));
    reply(&finished);
    assert_eq!(finished.left_behind, 3);
    assert_eq!(marked(bench.folder.path()), [server.worker.hello().pid]);
}

#[test]
fn the_end_of_one_action_spares_the_daemons_of_another() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    server.started(family(&bench, 1, "one"));
    wait_for_family(&bench, "one");
    let daemon: i32 = fs::read_to_string(bench.path("scratch/one.pid")).unwrap().parse().unwrap();
    let mut request = bench.request(2, "leaves_daemons");
    fs::create_dir(bench.path("scratch/other")).unwrap();
    request.scratch = text(&bench.path("scratch/other"));
    assert_eq!(server.run(request).left_behind, 3);
    assert!(runs(daemon));
    server.worker.cancel(1).unwrap();
    let finished = server.finished();
    assert_eq!((finished.id, finished.end), (1, End::Cancelled));
    // What was in the child's group died with it.
    assert_eq!(finished.left_behind, 2);
    assert!(!runs(daemon));
}

#[test]
fn a_killed_child_takes_its_family_with_it() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    let pid = server.started(family(&bench, 1, "one"));
    wait_for_family(&bench, "one");
    assert!(marked(bench.folder.path()).len() >= 6);
    kill_hard(pid);
    let finished = server.finished();
    assert_eq!(finished.end, End::Signal(9));
    assert_eq!(marked(bench.folder.path()), [server.worker.hello().pid]);
}

#[test]
fn a_killed_server_takes_everything_with_it_and_names_what_is_lost() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    for (id, name) in [(4, "one"), (9, "two")] {
        server.started(family(&bench, id, name));
        wait_for_family(&bench, name);
    }
    kill_hard(server.worker.hello().pid);
    match server.next() {
        WorkerEvent::Died { reason, outstanding } => {
            assert_eq!((reason.as_str(), outstanding), ("signal: 9 (SIGKILL)", vec![4, 9]));
        }
        other => panic!("{other:?}"),
    }
    expect_nothing_left(&bench);
    assert!(server.worker.submit(bench.request(10, "quick")).is_err());
}

#[test]
fn a_terminated_server_ends_its_children_first() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    server.started(family(&bench, 1, "one"));
    wait_for_family(&bench, "one");
    kill(Pid::from_raw(server.worker.hello().pid), Signal::SIGTERM).unwrap();
    assert!(matches!(server.next(), WorkerEvent::Died { outstanding, .. } if outstanding == [1]));
    assert!(marked(bench.folder.path()).is_empty());
}

#[test]
fn shutdown_ends_running_children() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    server.started(family(&bench, 1, "one"));
    wait_for_family(&bench, "one");
    server.worker.shutdown();
    assert!(marked(bench.folder.path()).is_empty());
}

/// The t2t of the next tests, in a process of its own that can be killed.
#[test]
#[ignore = "other tests start it"]
fn client_to_be_killed() {
    let folder = PathBuf::from(env::var_os("T2T_TEST_BENCH").unwrap());
    let mut config = Bench::new(MODULE).config();
    config.harness = Some(folder.join("harness"));
    config.environment.insert("T2T_TEST_MARK".to_owned(), text(&folder));
    let server = Server::start(&config);
    let request = Request { scratch: text(&folder.join("scratch")), ..family(&Bench::new(MODULE), 1, "one") };
    server.started(request);
    thread::sleep(Duration::from_secs(1000));
}

fn start_client(bench: &Bench) -> std::process::Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "worker::worker_leftovers::client_to_be_killed", "--ignored"])
        .env("T2T_TEST_BENCH", bench.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_t2t_takes_server_and_children_with_it() {
    let bench = Bench::new(MODULE);
    let mut client = start_client(&bench);
    wait_for_family(&bench, "one");
    client.kill().unwrap();
    client.wait().unwrap();
    expect_nothing_left(&bench);
}

#[test]
fn a_t2t_that_is_killed_while_its_server_imports_takes_it_along() {
    let bench = Bench::new("import time; open('/proc/self/comm', 'w').write('importing'); time.sleep(1000)");
    let mut client = start_client(&bench);
    let imports = || {
        let found = marked(bench.folder.path());
        found.iter().any(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "importing\n"))
    };
    wait("the import to begin", imports);
    client.kill().unwrap();
    client.wait().unwrap();
    expect_nothing_left(&bench);
}

#[test]
fn children_run_side_by_side() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    for index in 0..10 {
        let mut request = bench.request(index, "meets");
        request.arguments = json!({ "index": index });
        server.worker.submit(request).unwrap();
    }
    for _ in 0..10 {
        let finished = server.finished();
        assert_eq!(*reply(&finished), json!(finished.id));
    }
}

#[test]
fn a_hundred_children_leave_the_server_as_it_was() {
    let bench = Bench::new(MODULE);
    let server = start(&bench);
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", server.worker.hello().pid)).unwrap().count();
    reply(&server.run(bench.request(0, "quick")));
    let before = descriptors();
    for id in 1..=100 {
        assert_eq!(*reply(&server.run(bench.request(id, "quick"))), json!(1));
    }
    // It may be looking at its processes, which takes one for a moment.
    wait("descriptors to be closed", || descriptors() <= before);
    // A child has told its end before its process is gone.
    wait("the last child to be gone", || marked(bench.folder.path()) == [server.worker.hello().pid]);
}
