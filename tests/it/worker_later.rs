//! What a server imports once it serves: in parts, when nothing is to be done, and before the children that need it.
//!
//! A server reads all that was written to it before it imports anything, so what is written together with the hello has a sure order.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};
use t2t_host::worker::WorkerConfig;
use t2t_protocol::{
    ClientHello, DEVICE, End, Finished, FrameReader, FromWorker, Request, ServerHello, ServerKind, ToWorker, VERSION,
    WarmChild, encode,
};

use crate::worker_setup::{Bench, SOON, Server, python, reply, text};

mod reserves;

/// Names of later modules are put into `order` as they are imported; a child has a copy of the list.
const MODULE: &str = r#"
import gc, os, time

order = []
made = []

def note(name):
    order.append(name)
    made.append([name])

def wait_for(file):
    end = time.monotonic() + 300
    while not os.path.exists(file):
        assert time.monotonic() < end
        time.sleep(0.002)

ready = []

def get_ready():
    ready.append(list(order))

def get_ready_and_say_so():
    open(os.environ["READY"], "w").close()

def waits(arguments):
    wait_for(arguments["file"])

def told(arguments):
    return order

def told_when_ready(arguments):
    return ready

def frees(arguments):
    open(os.path.join(os.getcwd(), "go"), "w").close()
    return order

def seen(arguments):
    "Which of the modules' objects a collection would look at."
    objects = gc.get_objects()
    return [thing[0] for thing in made if any(thing is other for other in objects)]
"#;

/// A module of its own whose text is `body`, which may use `work`.
fn module(bench: &Bench, name: &str, body: &str) {
    fs::write(bench.path("harness").join(format!("{name}.py")), format!("import work\n{body}\n")).unwrap();
}

/// A bench with two modules that only say that they were imported.
fn bench() -> Bench {
    let bench = Bench::new(MODULE);
    module(&bench, "one", "work.note('one')");
    module(&bench, "two", "work.note('two')");
    bench
}

fn request(bench: &Bench, id: u64, function: &str, needs: Option<&str>) -> Request {
    Request { needs: needs.map(str::to_owned), ..bench.request(id, function) }
}

/// A child that is to get ready by a function, for which nothing need be imported.
fn reserve(key: &str, function: &str) -> WarmChild {
    WarmChild {
        key: key.to_owned(),
        function: format!("work:{function}"),
        arguments: Value::Null,
        scratch: None,
        environment: [].into(),
        cores: None,
        needs: None,
    }
}

fn run(bench: &Bench, id: u64, function: &str, needs: Option<&str>) -> ToWorker {
    ToWorker::Run(Box::new(request(bench, id, function, needs)))
}

/// A server, and the socket to it.
struct Raw {
    server: Child,
    stream: UnixStream,
    reader: FrameReader,
}

impl Raw {
    /// Starts a server that finds a hello and these messages when it first looks.
    fn start(bench: &Bench, later: &[&str], messages: &[ToWorker]) -> Self {
        Self::asked(bench, later, &[], messages)
    }

    /// Starts one that has more to import, if it is asked for.
    fn asked(bench: &Bench, later: &[&str], asked: &[&str], messages: &[ToWorker]) -> Self {
        let (mut stream, theirs) = UnixStream::pair().unwrap();
        let hello = ClientHello {
            version: VERSION,
            kind: ServerKind::Compiled,
            harness: Some(text(&bench.path("harness"))),
            preload: vec!["work".to_owned()],
            later: later.iter().map(|name| (*name).to_owned()).collect(),
            asked: asked.iter().map(|name| (*name).to_owned()).collect(),
            fork_after: None,
        };
        let mut bytes = encode(&ToWorker::Hello(hello)).unwrap();
        bytes.extend(messages.iter().flat_map(|message| encode(message).unwrap()));
        stream.write_all(&bytes).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let server = Command::new(python())
            .args(["-B", "-c", "import t2t_worker; t2t_worker.serve()"])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { server, stream, reader: FrameReader::default() }
    }

    fn send(&mut self, message: &ToWorker) {
        self.stream.write_all(&encode(message).unwrap()).unwrap();
    }

    fn next(&mut self) -> FromWorker {
        let mut chunk = [0; 4096];
        loop {
            if let Some(message) = self.reader.next_message().unwrap() {
                return message;
            }
            let count = self.stream.read(&mut chunk).unwrap();
            assert!(count > 0, "the server went");
            self.reader.push(&chunk[..count]);
        }
    }

    fn hello(&mut self) -> ServerHello {
        match self.next() {
            FromWorker::Hello(hello) => *hello,
            other => panic!("{other:?}"),
        }
    }

    /// Returns which children were forked, in order, and how so many of them ended, by number.
    fn ends(&mut self, count: usize) -> (Vec<u64>, Vec<Finished>) {
        let (mut started, mut ended) = (Vec::new(), Vec::new());
        while ended.len() < count {
            match self.next() {
                FromWorker::Started { id, .. } => started.push(id),
                FromWorker::Finished(finished) => ended.push(*finished),
                FromWorker::Prepared { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        ended.sort_by_key(|finished| finished.id);
        (started, ended)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// Waits until something is so.
fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < end, "it did not come to that");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hello_and_a_child_that_needs_nothing_come_before_what_is_imported_later() {
    let bench = bench();
    // Imported before the child was forked, it would wait in vain.
    module(&bench, "one", &format!("work.wait_for({:?})\nwork.note('one')", text(&bench.path("scratch/go"))));
    let mut server = Raw::start(&bench, &["one"], &[run(&bench, 1, "frees", None)]);
    assert_eq!(server.hello().missing, []);
    assert_eq!(*reply(&server.ends(1).1[0]), json!([]));
    server.send(&run(&bench, 2, "told", Some("one")));
    assert_eq!(*reply(&server.ends(1).1[0]), json!(["one"]));
}

#[test]
fn a_child_is_forked_when_what_it_needs_is_there_and_not_later() {
    let bench = bench();
    module(&bench, "parts", "def all():\n    work.note('a')\n    yield\n    work.note('b')\n    yield");
    let asked = [
        run(&bench, 1, "told", Some("parts:all")),
        run(&bench, 2, "told", Some("two")),
        run(&bench, 3, "told", None),
        run(&bench, 4, "told", Some("one")),
        run(&bench, 5, "told", Some("no such entry")),
    ];
    let mut server = Raw::start(&bench, &["one", "two", "parts:all"], &asked);
    server.hello();
    let (started, ended) = server.ends(asked.len());
    assert_eq!(started, [3, 5, 4, 2, 1]);
    let told: Vec<_> = ended.iter().map(|finished| reply(finished).clone()).collect();
    let all = json!(["one", "two", "a", "b"]);
    assert_eq!(told, [all, json!(["one", "two"]), json!([]), json!(["one"]), json!([])]);
}

#[test]
fn between_two_parts_the_server_serves() {
    let bench = bench();
    let [begun, asked] = ["begun", "asked"].map(|name| text(&bench.path(name)));
    let body = format!(
        "def all():\n    open({begun:?}, 'w').close()\n    work.wait_for({asked:?})\n    work.note('a')\n    yield\n    work.note('b')\n    yield"
    );
    module(&bench, "parts", &body);
    let mut server = Raw::start(&bench, &["parts:all"], &[run(&bench, 1, "told", Some("parts:all"))]);
    server.hello();
    until(|| bench.path("begun").exists());
    server.send(&run(&bench, 2, "told", None));
    fs::write(&asked, "").unwrap();
    let (started, ended) = server.ends(2);
    assert_eq!(started, [2, 1]);
    assert_eq!([reply(&ended[0]), reply(&ended[1])], [&json!(["a", "b"]), &json!(["a"])]);
}

#[test]
fn a_server_that_is_asked_for_nothing_imports_all_and_keeps_it_from_the_collector() {
    let bench = bench();
    let end = text(&bench.path("end"));
    module(
        &bench,
        "parts",
        &format!("def all():\n    yield\n    work.note('a')\n    yield\n    open({end:?}, 'w').close()"),
    );
    let config = WorkerConfig { later: vec!["one".to_owned(), "parts:all".to_owned()], ..bench.config() };
    let server = Server::start(&config);
    until(|| bench.path("end").exists());
    assert_eq!(*reply(&server.run(request(&bench, 1, "told", None))), json!(["one", "a"]));
    assert_eq!(*reply(&server.run(request(&bench, 2, "seen", Some("parts:all")))), json!([]));
}

#[test]
fn a_server_imports_without_collecting_and_its_children_collect() {
    let bench = Bench::new(
        "import gc\n\nimported = gc.isenabled()\n\ndef told(arguments):\n    return [imported, gc.isenabled()]\n",
    );
    assert_eq!(*reply(&bench.run("told")), json!([false, true]));
}

#[test]
fn what_cannot_be_imported_keeps_nobody_waiting() {
    let bench = bench();
    module(&bench, "exits", "raise SystemExit(3)");
    module(
        &bench,
        "parts",
        "def breaks():\n    work.note('a')\n    yield\n    raise OSError('no')\ndef nothing():\n    return 1",
    );
    let later = ["nowhere", "exits", "parts:breaks", "parts:nothing", "parts:missing", "one"];
    let mut server = Raw::start(&bench, &later, &[run(&bench, 1, "told", Some("one"))]);
    assert_eq!(server.hello().missing, []);
    assert_eq!(*reply(&server.ends(1).1[0]), json!(["a", "one"]));
}

#[test]
fn a_request_that_waits_can_be_cancelled() {
    let bench = bench();
    let messages =
        [run(&bench, 1, "told", Some("one")), run(&bench, 2, "told", Some("one")), ToWorker::Cancel { id: 1 }];
    let mut server = Raw::start(&bench, &["one"], &messages);
    server.hello();
    let (started, ended) = server.ends(2);
    assert_eq!(started, [2]);
    assert_eq!(ended[0].end, End::Cancelled);
    assert_eq!(*reply(&ended[1]), json!(["one"]));
}

#[test]
fn what_is_to_be_asked_for_is_imported_once_something_needs_it_and_after_all_else() {
    let bench = bench();
    let mut server = Raw::asked(&bench, &["one"], &["two"], &[run(&bench, 1, "told", Some("one"))]);
    server.hello();
    server.ends(1);
    // Nobody asks for anything for a while.
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.send(&run(&bench, 2, "told", None));
    assert_eq!(*reply(&server.ends(1).1[0]), json!(["one"]));
    server.send(&run(&bench, 3, "told", Some("two")));
    assert_eq!(*reply(&server.ends(1).1[0]), json!(["one", "two"]));
}

#[test]
fn what_waits_for_something_else_has_nothing_imported() {
    let bench = bench();
    let device = [(DEVICE.to_owned(), "GPU-1".to_owned())];
    let go = text(&bench.path("go"));
    let reserve = WarmChild { environment: device.clone().into(), ..reserve("device", "get_ready") };
    let timed = Request {
        undisturbed: true,
        environment: device.into(),
        arguments: json!({ "file": go }),
        ..request(&bench, 1, "waits", None)
    };
    let mut server = Raw::asked(&bench, &[], &["two"], &[ToWorker::Run(Box::new(timed))]);
    server.hello();
    until(|| bench.path("scratch/quiet").exists());
    server.send(&ToWorker::Prepare(reserve));
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.send(&run(&bench, 2, "told", None));
    let (_, ended) = server.ends(1);
    assert_eq!((ended[0].id, reply(&ended[0])), (2, &json!([])));
    fs::write(&go, "").unwrap();
    server.ends(1);
}

/// Parts without end: whatever ends the server is seen between two of them.
#[test]
fn a_server_that_imports_leaves_when_it_is_told_and_when_t2t_goes() {
    for way in ["shutdown", "socket", "signal"] {
        let bench = bench();
        let begun = text(&bench.path("begun"));
        module(
            &bench,
            "parts",
            &format!("def forever():\n    open({begun:?}, 'w').close()\n    while True:\n        yield"),
        );
        let mut server = Raw::start(&bench, &["parts:forever"], &[run(&bench, 1, "told", Some("parts:forever"))]);
        server.hello();
        until(|| bench.path("begun").exists());
        match way {
            "shutdown" => server.send(&ToWorker::Shutdown),
            "socket" => server.stream.shutdown(std::net::Shutdown::Both).unwrap(),
            _ => nix::sys::signal::kill(Pid::from_raw(server.server.id().cast_signed()), Signal::SIGTERM).unwrap(),
        }
        until(|| server.server.try_wait().unwrap().is_some());
        assert_eq!(server.server.wait().unwrap().code(), Some(0), "{way}");
    }
}
