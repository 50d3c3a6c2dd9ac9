//! Children that are ready before their request.

use std::fs;
use std::path::Path;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};
use t2t_protocol::{DEVICE, End, Fault, Request, WarmChild};

use crate::worker::worker_leftovers::runs;
use crate::worker_setup::{Bench, SOON, Server, reply};

mod device;

const MODULE: &str = r#"
import errno, os, threading, time, zlib
import t2t_worker

got = []

def start():
    got.append(os.getpid())
    open(os.environ["NOTE"] + str(os.getpid()), "w").close()

def slow():
    time.sleep(0.3)
    start()

def threaded():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    start()

def fails_when_told():
    while not os.path.exists(os.environ["NOTE"] + "go"):
        time.sleep(0.01)
    fails()

def fails():
    open(os.environ["NOTE"] + str(os.getpid()), "w").close()
    raise OSError("no device")

def ready_when_told():
    while not os.path.exists(os.environ["NOTE"] + "go"):
        time.sleep(0.001)
    start()

def begins_and_waits():
    open(os.environ["NOTE"] + str(os.getpid()), "w").close()
    while not os.path.exists(os.path.dirname(os.environ["NOTE"][:-1]) + "/go"):
        time.sleep(0.001)

def is_quiet(arguments):
    while not os.path.exists(arguments["quiet"]):
        time.sleep(0.001)
    with open(arguments["quiet"]) as file:
        return {"quiet": [file.read(), os.path.exists(arguments["go"])]}

def waits_for(arguments):
    while not os.path.exists(arguments["path"]):
        time.sleep(0.001)

def told_in_its_folder(arguments):
    with open("begun.new", "w") as file:
        file.write(arguments["word"] + " " + os.environ["HOME"])
    os.rename("begun.new", "begun")
    while not os.path.exists("go"):
        time.sleep(0.001)
    open("went", "w").close()

def burns():
    while time.process_time() < 0.5:
        pass
    start()

def waits():
    end = time.monotonic() + 300
    while not t2t_worker.is_awaited():
        assert time.monotonic() < end
        time.sleep(0.001)
    start()

objects = [str(number) * 3 for number in range(200_000)]
block = bytes(range(256)) * 40_000

def holds(arguments):
    total = 0
    for text in objects:
        total = (total * 31 + int(text)) % 1_000_003
    return {"objects": total, "block": zlib.crc32(block)}

def takes_its_time(arguments):
    # Long enough to be looked at.
    time.sleep(0.2)
    return {**says(arguments), "awaited": t2t_worker.is_awaited()}

def says(arguments):
    try:
        open("/tmp/t2t-reserve", "w")
        wall = "open"
    except OSError as error:
        wall = "shut" if error.errno in (errno.EACCES, errno.EROFS) else str(error)
    left = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]
    return {"ready": got == [os.getpid()], "wall": wall, "cwd": os.getcwd(), "note": os.environ.get("NOTE"),
            "length": len(arguments.get("text", "")), "descriptors": left}

def ends(arguments):
    os._exit(7)
"#;

/// How many children start one device at once (`START_AT_ONCE` of the worker).
const AT_ONCE: usize = 6;

fn bench() -> Bench {
    let bench = Bench::new(MODULE);
    fs::create_dir(bench.path("notes")).unwrap();
    bench
}

fn reserve(bench: &Bench, function: &str) -> WarmChild {
    WarmChild {
        key: "device".to_owned(),
        function: format!("work:{function}"),
        arguments: Value::Null,
        scratch: None,
        environment: [("NOTE".to_owned(), format!("{}/", bench.path("notes").display()))].into(),
        cores: None,
        needs: None,
    }
}

fn request(bench: &Bench, id: u64) -> Request {
    Request { reserve: Some("device".to_owned()), ..bench.request(id, "says") }
}

/// Waits until so many children have got ready, and returns them.
fn ready(bench: &Bench, count: usize) -> Vec<i32> {
    let end = Instant::now() + SOON;
    loop {
        let names = fs::read_dir(bench.path("notes")).unwrap();
        let found: Vec<i32> = names.map(|name| name.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < end, "they did not get ready");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Waits while something is so.
fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while is_so() {
        assert!(Instant::now() < end, "it went on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn is_ready(server: &Server, request: Request) -> bool {
    reply(&server.run(request))["ready"] == json!(true)
}

#[test]
fn a_request_that_names_the_key_gets_the_child_that_is_ready_and_the_next_one_its_own() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "start")).unwrap();
    let waiting = ready(&bench, 1);
    assert!(!is_ready(&server, bench.request(1, "says")), "a request without the key took it");
    let finished = server.run(request(&bench, 2));
    let told: &Value = reply(&finished);
    assert_eq!(told["ready"], json!(true));
    assert_eq!(told["cwd"].as_str().map(Path::new), Some(&*bench.path("scratch")));
    assert_eq!(told["note"], Value::Null, "the environment is the request's");
    assert_eq!(told["wall"], "shut", "the walls are the request's");
    assert_eq!(told["descriptors"], json!([0, 1, 2, 3]), "the pipe of the request is closed");
    assert!(!is_ready(&server, request(&bench, 3)));
    // Its end is told while the kernel takes it apart.
    until(|| runs(waiting[0]));
}

#[test]
fn a_request_gets_a_child_that_is_ready_before_an_elder_one_that_is_not() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "ready_when_told")).unwrap();
    server.worker.prepare(reserve(&bench, "start")).unwrap();
    let [younger] = ready(&bench, 1)[..] else { panic!("one is to be told") };
    // It says so once its function has returned.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(is_ready(&server, request(&bench, 1)));
    // The kernel may still take it apart.
    until(|| runs(younger));
    fs::write(bench.path("notes/go"), "").unwrap();
    assert!(is_ready(&server, request(&bench, 2)), "the elder one is there for the next");
}

#[test]
fn a_server_makes_every_child_that_it_is_told_to_and_each_request_uses_one_up() {
    let bench = bench();
    let server = bench.start();
    let ask = || server.worker.prepare(reserve(&bench, "start")).unwrap();
    (0..3).for_each(|_| ask());
    ready(&bench, 3);
    assert!(is_ready(&server, request(&bench, 1)));
    let longer = Request { arguments: json!({"text": "x".repeat(2_000_000)}), ..request(&bench, 2) };
    assert_eq!(reply(&server.run(longer))["ready"], json!(false), "it has a child of its own");
    assert!(is_ready(&server, request(&bench, 3)));
    assert!(!is_ready(&server, request(&bench, 4)), "the one that the long request would have had was ended");
    ask();
    assert!(is_ready(&server, request(&bench, 5)));
    assert_eq!(ready(&bench, 4).len(), 4);
}

#[test]
fn a_request_may_come_before_its_child_is_ready_and_be_long() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "slow")).unwrap();
    let long = Request { arguments: json!({"text": "x".repeat(500_000)}), ..request(&bench, 1) };
    let told = server.run(long);
    assert_eq!((&reply(&told)["ready"], &reply(&told)["length"]), (&json!(true), &json!(500_000)));
    server.worker.prepare(reserve(&bench, "start")).unwrap();
    let longer = Request { arguments: json!({"text": "x".repeat(2_000_000)}), ..request(&bench, 2) };
    assert_eq!(
        reply(&server.run(longer))["ready"],
        json!(false),
        "a request that its pipe cannot hold gets its own child"
    );
}

#[test]
fn threads_of_a_child_that_is_ready_do_not_keep_it_from_its_request() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "threaded")).unwrap();
    ready(&bench, 1);
    assert!(is_ready(&server, request(&bench, 1)));
}

#[test]
fn a_child_that_died_or_could_not_get_ready_is_made_up_for() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "start")).unwrap();
    let waiting = ready(&bench, 1)[0];
    nix::sys::signal::kill(Pid::from_raw(waiting), Signal::SIGKILL).unwrap();
    // A request that is faster than its death ends with it, and whoever asked tries once more.
    until(|| runs(waiting));
    assert!(!is_ready(&server, request(&bench, 1)));
    server.worker.prepare(reserve(&bench, "fails")).unwrap();
    let failed = ready(&bench, 2).into_iter().find(|pid| *pid != waiting).unwrap();
    until(|| runs(failed));
    assert!(!is_ready(&server, request(&bench, 2)));
}

#[test]
fn a_request_that_came_before_its_child_failed_to_get_ready_is_told_why_and_it_is_no_kernels_fault() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "fails_when_told")).unwrap();
    server.started(request(&bench, 1));
    fs::write(bench.path("notes/go"), "").unwrap();
    let finished = server.finished();
    let End::Refused(reason) = &finished.end else { panic!("{:?}", finished.end) };
    assert!(reason.contains("the child did not get ready") && reason.contains("OSError: no device"), "{reason}");
    assert!(matches!(finished.end.fault(), Some(Fault::Machine(_))));
}

#[test]
fn what_ends_a_child_that_was_ready_is_told_as_of_any_other() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "start")).unwrap();
    let finished = server.run(Request { function: "work:ends".to_owned(), ..request(&bench, 1) });
    assert_eq!(finished.end, End::Exit(7));
}

#[test]
fn what_it_took_to_get_ready_is_no_cpu_time_of_the_request() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "burns")).unwrap();
    ready(&bench, 1);
    let mut asked = Request { function: "work:takes_its_time".to_owned(), ..request(&bench, 1) };
    asked.limits.cpu_ms = Some(450);
    let finished = server.run(asked);
    assert_eq!(reply(&finished)["ready"], json!(true));
    assert!(finished.usage.cpu_ms < 450, "{:?}", finished.usage);
}

#[test]
fn a_child_that_gets_ready_can_tell_that_its_request_is_there() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(reserve(&bench, "waits")).unwrap();
    let finished = server.run(Request { function: "work:takes_its_time".to_owned(), ..request(&bench, 1) });
    assert_eq!((&reply(&finished)["ready"], &reply(&finished)["awaited"]), (&json!(true), &json!(false)));
}

#[test]
fn a_server_that_rested_serves_what_it_held_before() {
    let bench = bench();
    let server = bench.start();
    let held = |id| reply(&server.run(bench.request(id, "holds"))).clone();
    let before = held(1);
    server.worker.rest().unwrap();
    server.worker.prepare(reserve(&bench, "start")).unwrap();
    assert_eq!(held(2), before);
    server.worker.rest().unwrap();
    assert_eq!(reply(&server.run(Request { function: "work:holds".to_owned(), ..request(&bench, 3) })), &before);
}

#[test]
fn children_that_wait_end_with_their_server() {
    let bench = bench();
    let server = bench.start();
    for _ in 0..2 {
        server.worker.prepare(reserve(&bench, "start")).unwrap();
    }
    let waiting = ready(&bench, 2);
    drop(server);
    until(|| waiting.iter().any(|pid| runs(*pid)));
}

fn on_device(mut reserve: WarmChild) -> WarmChild {
    reserve.environment.insert(DEVICE.to_owned(), "GPU-1".to_owned());
    reserve
}

#[test]
fn a_request_that_comes_before_its_child_has_begun_takes_its_place() {
    let bench = bench();
    let server = bench.start();
    for _ in 0..AT_ONCE {
        server.worker.prepare(on_device(reserve(&bench, "begins_and_waits"))).unwrap();
    }
    let late = || on_device(WarmChild { key: "late".to_owned(), ..reserve(&bench, "start") });
    server.worker.prepare(late()).unwrap();
    ready(&bench, AT_ONCE);
    let request = Request { reserve: Some("late".to_owned()), ..bench.request(1, "says") };
    assert!(!is_ready(&server, request), "it got a child of its own");
    fs::write(bench.path("go"), "").unwrap();
    server.worker.prepare(WarmChild { key: "last".to_owned(), ..late() }).unwrap();
    ready(&bench, AT_ONCE + 1);
    assert!(!is_ready(&server, bench.request(2, "says")));
    assert_eq!(ready(&bench, AT_ONCE + 1).len(), AT_ONCE + 1, "the one that was to be ready is not made any more");
}

#[test]
fn a_link_where_the_word_is_to_come_leads_nowhere() {
    let bench = bench();
    let server = bench.start();
    let (own, link) = (bench.path("notes/own"), bench.path("scratch/quiet.new"));
    fs::write(&own, "mine").unwrap();
    std::os::unix::fs::symlink(&own, &link).unwrap();
    let request = Request {
        undisturbed: true,
        arguments: json!({"quiet": bench.path("scratch/quiet"), "go": own}),
        sandbox: None,
        ..bench.request(1, "is_quiet")
    };
    assert_eq!(reply(&server.run(request))["quiet"], json!(["0", true]));
    assert_eq!(fs::read_to_string(own).unwrap(), "mine");
}
