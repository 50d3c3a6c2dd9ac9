//! Children that stay: one after another they serve requests that name their key, behind the walls of the first.

use std::fs;

use serde_json::{Value, json};
use t2t_host::interrupt::Interrupt;
use t2t_host::pool::{Cancel, Heard, Pool, Serving};
use t2t_protocol::{End, Finished, Request, Sandbox, ServerKind, WarmChild};

use crate::worker_setup::{Bench, Server, reply, text};

const MODULE: &str = r#"
import errno
import os
import sys
import time

served = []

def start():
    pass

def says(arguments):
    served.append(arguments["name"])
    print("out", arguments["name"])
    sys.stderr.write("err " + arguments["name"])
    try:
        open("/tmp/t2t-stays", "w")
        wall = "open"
    except OSError as error:
        wall = "shut" if error.errno in (errno.EACCES, errno.EROFS) else str(error)
    return {"pid": os.getpid(), "served": list(served), "cwd": os.getcwd(), "own": os.environ.get("OWN"), "wall": wall}

def raises(arguments):
    raise ValueError("no")

def hangs(arguments):
    time.sleep(600)

def descriptors(arguments):
    return {"pid": os.getpid(), "left": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]}
"#;

fn reserve() -> WarmChild {
    WarmChild {
        key: "judges".to_owned(),
        function: "work:start".to_owned(),
        arguments: Value::Null,
        scratch: None,
        environment: [].into(),
        cores: None,
        needs: None,
    }
}

struct Staying {
    bench: Bench,
    server: Server,
}

impl Staying {
    fn new() -> Self {
        let bench = Bench::new(MODULE);
        let server = bench.start();
        Self { bench, server }
    }

    fn prepare(&self) {
        self.server.worker.prepare(reserve()).unwrap();
    }

    /// A request whose scratch folder is named like itself, in the folder that the walls of all leave open.
    fn request(&self, id: u64, function: &str) -> Request {
        let name = format!("r{id}");
        let folder = self.bench.path("scratch").join(&name);
        fs::create_dir_all(&folder).unwrap();
        Request {
            arguments: json!({"name": name}),
            scratch: text(&folder),
            environment: [("OWN".to_owned(), name)].into(),
            sandbox: Some(Sandbox { write: vec![text(&self.bench.path("scratch"))], ..Sandbox::default() }),
            reserve: Some("judges".to_owned()),
            stays: true,
            ..self.bench.request(id, function)
        }
    }

    fn run(&self, id: u64, function: &str) -> Finished {
        self.server.run(self.request(id, function))
    }

    fn says(&self, id: u64) -> Value {
        reply(&self.run(id, "says")).clone()
    }
}

#[test]
fn requests_that_let_the_child_stay_are_served_by_one_each_in_its_own_folder_and_told_apart() {
    let staying = Staying::new();
    staying.prepare();
    let (first, second) = (staying.run(1, "says"), staying.run(2, "says"));
    assert!(first.stayed && second.stayed);
    assert_eq!(reply(&first)["pid"], reply(&second)["pid"]);
    assert_eq!(reply(&second)["served"], json!(["r1", "r2"]));
    assert_eq!(reply(&second)["cwd"], json!(text(&staying.bench.path("scratch/r2"))));
    assert_eq!((&reply(&first)["own"], &reply(&second)["own"]), (&json!("r1"), &json!("r2")));
    assert_eq!((&reply(&first)["wall"], &reply(&second)["wall"]), (&json!("shut"), &json!("shut")));
    assert_eq!((first.stdout.text(), second.stdout.text()), ("out r1\n".to_owned(), "out r2\n".to_owned()));
    assert_eq!((first.stderr.text(), second.stderr.text()), ("err r1".to_owned(), "err r2".to_owned()));
}

#[test]
fn one_that_was_not_made_ready_ends_with_its_reply() {
    let staying = Staying::new();
    let (first, second) = (staying.run(1, "says"), staying.run(2, "says"));
    assert!(!first.stayed && !second.stayed);
    assert_ne!(reply(&first)["pid"], reply(&second)["pid"]);
}

#[test]
fn it_ends_with_a_request_that_does_not_let_it_stay_which_finds_no_pipe() {
    let staying = Staying::new();
    staying.prepare();
    let told = staying.says(1);
    let last = staying.server.run(Request { stays: false, ..staying.request(2, "descriptors") });
    assert_eq!((&reply(&last)["pid"], &reply(&last)["left"]), (&told["pid"], &json!([0, 1, 2, 3])));
    assert!(!last.stayed);
    assert_ne!(staying.says(3)["pid"], told["pid"]);
}

#[test]
fn whatever_is_no_reply_ends_it_and_the_next_request_has_another() {
    let staying = Staying::new();
    staying.prepare();
    let told = staying.says(1);
    let raised = staying.run(2, "raises");
    assert!(matches!(raised.end, End::Raised { .. }) && !raised.stayed, "{:?}", raised.end);
    assert_eq!(staying.says(3)["served"], json!(["r3"]));
    staying.prepare();
    let other = staying.says(4);
    assert_ne!(other["pid"], told["pid"]);
    let mut hanging = staying.request(5, "hangs");
    hanging.limits.wall_ms = 50;
    let ended = staying.server.run(hanging);
    assert_eq!((&ended.end, ended.stayed), (&End::Timeout, false));
    assert_ne!(staying.says(6)["pid"], other["pid"]);
}

#[test]
fn a_pool_says_which_server_took_a_call_how_many_children_it_has_made_and_which_of_them_stayed() {
    let staying = Staying::new();
    let pool = Pool::new(vec![staying.bench.config()], Interrupt::default());
    let kind = ServerKind::Compiled;
    assert_eq!(pool.heard(kind), None);
    let serial = pool.serving(kind).unwrap().serial();
    let prepare = || pool.serving(kind).unwrap().prepare(reserve());
    let call = |id, function| {
        let is_same = |serving: &Serving, _| assert_eq!(serving.serial(), serial);
        pool.call(kind, staying.request(id, function), &Cancel::default(), is_same).unwrap()
    };
    let heard = |prepared| assert_eq!(pool.heard(kind), Some(Heard { serial, prepared, is_gone: false }));
    heard(0);
    prepare();
    assert!(call(1, "says").stayed);
    heard(1);
    let second = call(2, "says");
    assert_eq!((second.stayed, &reply(&second)["served"]), (true, &json!(["r1", "r2"])));
    let raised = call(3, "raises");
    assert!(matches!(raised.end, End::Raised { .. }) && !raised.stayed);
    prepare();
    let other = call(4, "says");
    assert_eq!((other.stayed, &reply(&other)["served"]), (true, &json!(["r4"])));
    heard(2);
    let another = Pool::new(vec![staying.bench.config()], Interrupt::default());
    assert!(another.serving(kind).unwrap().serial() > serial);
}
