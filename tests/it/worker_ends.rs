//! Every way in which a child can end is told apart.

use std::fs;
use std::time::Instant;

use serde_json::json;
use t2t_protocol::{End, Fault, FaultClass};

use crate::worker::worker_leftovers::marked;
use crate::worker_setup::{Bench, SOON, reply};

const MODULE: &str = r#"
import mmap, os, signal, sys, threading, time

def echo(arguments):
    return arguments

def nothing(arguments):
    return None

def nan(arguments):
    return {"documents": {"error": [1.0, float("nan")]}}

def odd_type(arguments):
    return {"files": {1, 2}}

def long_reply(arguments):
    return "x" * 2000

def raises(arguments):
    def kernel():
        raise ValueError("block size 7")
    kernel()

def deep(arguments):
    return deep(arguments)

def memory_error(arguments):
    return bytearray(1 << 44)

def exits(arguments):
    sys.exit(3)

def exits_zero(arguments):
    sys.exit(0)

def exits_with_text(arguments):
    sys.exit("no such block")

def leaves(arguments):
    os._exit(4)

def leaves_silently(arguments):
    os._exit(0)

def closes_all(arguments):
    os.closerange(0, 1024)
    return 1

def segfaults(arguments):
    import ctypes
    print("before the crash")
    ctypes.string_at(0)

def aborts(arguments):
    os.abort()

def kills_itself(arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def buses(arguments):
    os.kill(os.getpid(), signal.SIGBUS)

def fills(arguments):
    os.mkdir("deep")
    with open("deep/file", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
        file.flush()
        time.sleep(1000)

def makes_many_files(arguments):
    for number in range(200_000):
        open(str(number), "w").close()
    time.sleep(1000)

def keeps_little(arguments):
    for _ in range(40):
        with open("file", "wb") as file:
            file.write(bytes(4 << 20))
        time.sleep(0.05)
    return 1

def forks_without_end(arguments):
    told, tells = os.pipe()
    while True:
        try:
            if os.fork() == 0:
                os.setsid()
                os.write(tells, b"x")
                time.sleep(1000)
            # What has not left the group yet would be killed with it, and be none that was left behind.
            os.read(told, 1)
        except OSError:
            time.sleep(0.01)

def sleeps(arguments):
    time.sleep(1000)

def ignores_everything(arguments):
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    while True:
        pass

def burns(arguments):
    threads = [threading.Thread(target=burn) for _ in range(2)]
    for thread in threads:
        thread.start()
    burn()

def burn():
    while True:
        sum(range(10000))

def hoards(arguments):
    blocks = []
    while True:
        blocks.append(bytearray(8 << 20))

def hoards_in_children(arguments):
    for _ in range(3):
        if os.fork() == 0:
            block = bytearray(60 << 20)
            time.sleep(1000)
    time.sleep(1000)

def writes_everywhere(arguments):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\x00\x00\x00\x05hello")
        except OSError:
            pass
    return 1

def holds_much(arguments):
    held = mmap.mmap(-1, 256 << 20)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(0, len(held), 4096):
        held[page] = 1
    globals()["held"] = held
    return os.getpid()

def forks_and_returns(arguments):
    os.fork()
    return "once"

def returns_with_threads(arguments):
    threading.Thread(target=sleeps, args=({},)).start()
    return "done"
"#;

#[test]
fn a_reply_comes_back_as_it_was_given() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let value = json!({"a": [1, -2, 1.5, true, null, "ü\n"], "b": {"c": 18_446_744_073_709_551_615_u64}});
    let mut request = bench.request(7, "echo");
    request.arguments = value.clone();
    let finished = server.run(request);
    assert_eq!((finished.id, reply(&finished)), (7, &value));
    assert_eq!(finished.left_behind, 0);
    assert!(finished.usage.max_rss_kib > 0);
    assert_eq!(server.run(bench.request(8, "nothing")).end, End::Reply(json!(null)));
}

/// How long the kernel takes to take a process apart is the kernel's, so it is tried until that is seen.
#[test]
fn a_child_that_has_replied_is_done_though_the_kernel_still_takes_it_apart() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let is_there = |pid: u64| fs::exists(format!("/proc/{pid}")).unwrap();
    let outlives = |id| {
        let finished = server.run(bench.request(id, "holds_much"));
        let pid = reply(&finished).as_u64().unwrap();
        let outlives = is_there(pid);
        let end = Instant::now() + SOON;
        while is_there(pid) {
            assert!(Instant::now() < end, "nobody waited for it");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        outlives
    };
    assert!((0..50).any(outlives));
}

#[test]
fn what_is_no_json_is_a_bad_reply_that_names_the_place() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let mut long = bench.request(3, "long_reply");
    long.limits.reply_bytes = 1000;
    let table = [
        (bench.request(1, "nan"), "the reply has a number that is not finite at $.documents.error[1]"),
        (bench.request(2, "odd_type"), "the reply has a value of type `set` at $.files"),
        (long, "a reply of 2012 bytes is longer than 1000"),
        (bench.request(4, "writes_everywhere"), "bytes that the worker did not write"),
    ];
    for (request, reason) in table {
        let end = server.run(request).end;
        assert_eq!(end, End::BadReply(reason.to_owned()));
        assert_eq!(end.fault(), Some(Fault::Kernel(FaultClass::NoReply)));
    }
}

#[test]
fn an_exception_comes_back_with_its_traceback() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let End::Raised { kind, message, traceback } = server.run(bench.request(1, "raises")).end else { panic!() };
    assert_eq!((kind.as_str(), message.as_str()), ("ValueError", "block size 7"));
    assert!(traceback.contains("work.py\", line ") && traceback.contains("in kernel"), "{traceback}");
    let End::Raised { kind, .. } = server.run(bench.request(2, "deep")).end else { panic!() };
    assert_eq!(kind, "RecursionError");
    let end = server.run(bench.request(3, "memory_error")).end;
    assert_eq!(end.fault(), Some(Fault::Kernel(FaultClass::Memory)), "{end}");
}

#[test]
fn exit_codes_are_told_from_silence() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let table = [
        ("exits", End::Exit(3)),
        ("exits_zero", End::Exit(0)),
        ("exits_with_text", End::Exit(1)),
        ("leaves", End::Exit(4)),
        ("leaves_silently", End::NoReply),
        ("closes_all", End::NoReply),
    ];
    for (id, (function, end)) in (1..).zip(table) {
        let finished = server.run(bench.request(id, function));
        assert_eq!(finished.end, end, "{function}");
        if function == "exits_with_text" {
            assert_eq!(finished.stderr.text(), "no such block\n");
        }
    }
}

#[test]
fn signals_are_named_and_sigkill_is_nobodys_proof() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let finished = server.run(bench.request(1, "segfaults"));
    assert_eq!(finished.end, End::Signal(11));
    assert_eq!(finished.stdout.text(), "before the crash\n");
    assert!(finished.stderr.text().contains("Segmentation fault"), "{}", finished.stderr.text());
    assert_eq!(server.run(bench.request(2, "aborts")).end, End::Signal(6));
    for (id, function, number) in [(3, "kills_itself", 9), (4, "buses", 7)] {
        let end = server.run(bench.request(id, function)).end;
        assert_eq!(end, End::Signal(number));
        assert!(matches!(end.fault(), Some(Fault::Machine(_))));
    }
}

#[test]
fn the_deadline_ends_what_ignores_everything() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    for (id, function) in [(1, "sleeps"), (2, "ignores_everything")] {
        let mut request = bench.request(id, function);
        request.limits.wall_ms = 300;
        // Neither would end by itself.
        assert_eq!(server.run(request).end, End::Timeout);
    }
}

#[test]
fn cpu_time_of_all_threads_counts() {
    let bench = Bench::new(MODULE);
    let mut request = bench.request(1, "burns");
    request.limits.cpu_ms = Some(200);
    let finished = bench.start().run(request);
    assert_eq!(finished.end, End::CpuLimit);
    assert!(finished.usage.cpu_ms >= 200, "{:?}", finished.usage);
}

#[test]
fn memory_of_the_child_and_of_its_children_is_limited() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    for (id, function) in [(1, "hoards"), (2, "hoards_in_children")] {
        let mut request = bench.request(id, function);
        request.limits.memory_bytes = Some(100 << 20);
        let finished = server.run(request);
        assert!(matches!(finished.end, End::Memory(_)), "{}", finished.end);
        assert!(finished.usage.grown_kib > 100 << 10);
    }
}

#[test]
fn what_a_child_writes_to_its_folder_is_limited() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    for (id, function) in [(1, "keeps_little"), (2, "fills"), (3, "makes_many_files")] {
        let mut request = bench.request(id, function);
        request.limits.scratch_bytes = Some(32 << 20);
        let finished = server.run(request);
        if function == "keeps_little" {
            assert_eq!(*reply(&finished), json!(1));
        } else {
            let is_told = matches!(&finished.end, End::Memory(how) if how.ends_with("MiB of files in scratch"));
            assert!(is_told, "{function}: {}", finished.end);
        }
    }
}

#[test]
fn what_forks_without_end_is_ended_with_all_that_it_forked() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let finished = server.run(bench.request(1, "forks_without_end"));
    assert!(matches!(&finished.end, End::Memory(how) if how.ends_with(" processes")), "{}", finished.end);
    assert!(finished.left_behind > 900, "{}", finished.left_behind);
    assert!(marked(bench.folder.path()).is_empty());
    assert_eq!(*reply(&server.run(bench.request(2, "echo"))), json!({}));
}

#[test]
fn what_cannot_be_started_is_refused() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let refused = |request| match server.run(request).end {
        End::Refused(reason) => reason,
        other => panic!("{other}"),
    };
    let mut request = bench.request(1, "echo");
    request.function = "nowhere:main".to_owned();
    assert!(refused(request).contains("No module named 'nowhere'"));
    assert!(refused(bench.request(2, "missing")).contains("has no attribute 'missing'"));
    let mut request = bench.request(3, "echo");
    request.scratch = "/nowhere".to_owned();
    assert_eq!(refused(request), "scratch folder `/nowhere`: ENOENT: No such file or directory");
}

#[test]
fn a_process_that_the_function_forked_has_no_say() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    for id in 1..=5 {
        assert_eq!(*reply(&server.run(bench.request(id, "forks_and_returns"))), json!("once"));
    }
}

#[test]
fn a_thread_that_goes_on_does_not_hold_the_reply() {
    let bench = Bench::new(MODULE);
    assert_eq!(*reply(&bench.run("returns_with_threads")), json!("done"));
}
