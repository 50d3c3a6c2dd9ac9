//! Output is captured whole while it is short, and costs nothing while it is long.

use std::fs;

use serde_json::json;
use t2t_protocol::End;

use crate::worker_setup::{Bench, reply};

const MODULE: &str = r#"
import os, sys

def speaks(arguments):
    print("out", end="")
    print("err", file=sys.stderr)
    os.system("echo from a process")
    return 1

def floods(arguments):
    print("first line")
    line, lines = "x" * 99, 0
    while lines < 1 << 20 or not os.path.exists("enough"):
        for _ in range(1 << 10):
            print(line)
        lines += 1 << 10
    print("last line")
    return lines

def garbage(arguments):
    for _ in range(100):
        os.write(1, os.urandom(1000))
        os.write(2, bytes(range(256)))
    return 1

def breaks_its_streams(arguments):
    sys.stdout.close()
    sys.stderr = None
    return 1

def prints_surrogates(arguments):
    print("\udcff")
    return 1

def quick(arguments):
    return 1
"#;

#[test]
fn both_streams_are_captured_in_full() {
    let finished = Bench::new(MODULE).run("speaks");
    assert_eq!(*reply(&finished), json!(1));
    assert_eq!(finished.stdout.text(), "from a process\nout");
    assert_eq!(finished.stderr.text(), "err\n");
}

#[test]
fn a_hundred_megabytes_keep_their_ends_and_disturb_nobody() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    server.started(bench.request(1, "floods"));
    // The flood does not end before this one has.
    let quick = server.run(bench.request(2, "quick"));
    assert_eq!(quick.id, 2);
    fs::write(bench.path("scratch/enough"), "").unwrap();
    let flood = server.finished();
    let lines = reply(&flood).as_u64().unwrap();
    assert!(lines >= 1 << 20, "{lines}");
    assert_eq!(flood.stdout.total, 100 * lines + 21);
    assert_eq!((flood.stdout.head.len(), flood.stdout.tail.len()), (64 << 10, 64 << 10));
    assert!(flood.stdout.head.starts_with("first line\nxxx") && flood.stdout.tail.ends_with("xxx\nlast line\n"));
}

#[test]
fn a_flood_ends_the_child_only_where_a_limit_is_set() {
    let bench = Bench::new(MODULE);
    let mut request = bench.request(1, "floods");
    request.limits.output_bytes = Some(1 << 20);
    assert_eq!(bench.start().run(request).end, End::OutputLimit);
}

#[test]
fn garbage_and_broken_streams_do_not_touch_the_reply() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let finished = server.run(bench.request(1, "garbage"));
    assert_eq!(*reply(&finished), json!(1));
    assert_eq!((finished.stdout.total, finished.stderr.total), (100_000, 25_600));
    assert_eq!(*reply(&server.run(bench.request(2, "breaks_its_streams"))), json!(1));
    assert_eq!(server.run(bench.request(3, "prints_surrogates")).stdout.text(), "\\udcff\n");
}
