//! Children that get ready on a device: how many at once, whom they would disturb, how they are dismissed.
//!
//! It does not know devices but by the name in the environment.

use std::fs;

use serde_json::json;
use t2t_protocol::{DEVICE, Request, WarmChild};

use super::{AT_ONCE, bench, is_ready, on_device, ready, request, reserve, until};
use crate::worker::worker_leftovers::runs;
use crate::worker_setup::reply;

#[test]
fn what_was_to_get_ready_for_a_device_that_is_dismissed_does_not() {
    let bench = bench();
    let server = bench.start();
    for _ in 0..=AT_ONCE {
        server.worker.prepare(on_device(reserve(&bench, "begins_and_waits"))).unwrap();
    }
    let first = ready(&bench, AT_ONCE);
    server.worker.dismiss("GPU-1").unwrap();
    for pid in first {
        until(|| runs(pid));
    }
    let other = WarmChild { key: "other".to_owned(), ..on_device(reserve(&bench, "start")) };
    server.worker.prepare(other).unwrap();
    ready(&bench, AT_ONCE + 1);
    assert!(!is_ready(&server, bench.request(1, "says")));
    assert_eq!(ready(&bench, AT_ONCE + 1).len(), AT_ONCE + 1, "the last of them never began");
}

#[test]
fn what_measures_is_told_once_no_child_gets_ready_and_how_many_others_have_the_device() {
    let bench = bench();
    let server = bench.start();
    let one = |function, device| {
        let reserve = reserve(&bench, function);
        server.worker.prepare(if device { on_device(reserve) } else { reserve }).unwrap();
    };
    one("start", true);
    one("start", true);
    one("start", false);
    ready(&bench, 3);
    one("ready_when_told", true);
    let asks = |id, undisturbed| Request {
        undisturbed,
        arguments: json!({"quiet": bench.path("scratch/quiet"), "go": bench.path("notes/go")}),
        sandbox: None,
        environment: [(DEVICE.to_owned(), "GPU-1".to_owned())].into(),
        ..bench.request(id, "is_quiet")
    };
    server.worker.submit(asks(1, true)).unwrap();
    // That this one ends says that the other was heard before.
    assert_eq!(reply(&server.run(bench.request(2, "says")))["ready"], json!(false));
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!bench.path("scratch/quiet").exists());
    fs::write(bench.path("notes/go"), "").unwrap();
    let finished = server.finished();
    assert_eq!((finished.id, &reply(&finished)["quiet"]), (1, &json!(["3", true])));
}

#[test]
fn few_children_start_a_device_at_once_and_the_next_begins_when_one_is_ready() {
    let bench = bench();
    let server = bench.start();
    for _ in 0..9 {
        server.worker.prepare(on_device(reserve(&bench, "begins_and_waits"))).unwrap();
    }
    server.worker.prepare(WarmChild { key: "none".to_owned(), ..reserve(&bench, "start") }).unwrap();
    let mut other = reserve(&bench, "start");
    other.environment.insert(DEVICE.to_owned(), "GPU-2".to_owned());
    server.worker.prepare(WarmChild { key: "other".to_owned(), ..other }).unwrap();
    ready(&bench, AT_ONCE + 2);
    // More would have begun by the end of a request that came after them.
    assert!(!is_ready(&server, bench.request(1, "says")));
    assert_eq!(ready(&bench, AT_ONCE + 2).len(), AT_ONCE + 2, "and those that start another device or none");
    fs::write(bench.path("go"), "").unwrap();
    assert_eq!(ready(&bench, 9 + 2).len(), 9 + 2);
}

#[test]
fn children_that_are_dismissed_end_with_all_that_they_hold_of_their_device_and_others_stay() {
    let bench = bench();
    let server = bench.start();
    server.worker.prepare(on_device(reserve(&bench, "start"))).unwrap();
    let dismissed = ready(&bench, 1);
    server.worker.prepare(reserve(&bench, "start")).unwrap();
    let both = ready(&bench, 2);
    server.worker.dismiss("GPU-1").unwrap();
    until(|| runs(dismissed[0]));
    assert!(both.iter().all(|pid| dismissed.contains(pid) || runs(*pid)));
    let finished = server.run(request(&bench, 1));
    assert_eq!(reply(&finished)["ready"], json!(true), "the other one served it");
}

#[test]
fn what_is_asked_for_right_after_a_dismissal_has_a_child_of_its_own_once_the_dismissed_are_gone() {
    let bench = bench();
    let server = bench.start();
    for _ in 0..2 {
        server.worker.prepare(on_device(reserve(&bench, "start"))).unwrap();
    }
    let dismissed = ready(&bench, 2);
    server.worker.dismiss("GPU-1").unwrap();
    let environment = on_device(reserve(&bench, "start")).environment;
    let finished = server.run(Request { environment, ..request(&bench, 1) });
    assert_eq!(reply(&finished)["ready"], json!(false));
    assert!(dismissed.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap()));
}

/// A child with a folder of its own is forked while something is measured, and may use the device while something at ease has it.
#[test]
fn a_child_with_a_folder_may_use_the_device_while_what_has_it_measures_nothing() {
    let bench = bench();
    let server = bench.start();
    let folder = bench.path("own");
    fs::create_dir(&folder).unwrap();
    let reserve = WarmChild {
        arguments: json!({"word": "hello"}),
        scratch: Some(folder.display().to_string()),
        ..on_device(reserve(&bench, "told_in_its_folder"))
    };
    let asks = |id, undisturbed| Request {
        undisturbed,
        reserve: None,
        arguments: json!({"path": bench.path(&format!("notes/end{id}"))}),
        environment: [(DEVICE.to_owned(), "GPU-1".to_owned())].into(),
        sandbox: None,
        ..bench.request(id, "waits_for")
    };
    server.worker.submit(asks(1, true)).unwrap();
    until(|| !bench.path("scratch/quiet").exists());
    server.worker.prepare(reserve).unwrap();
    until(|| !folder.join("begun").exists());
    assert_eq!(fs::read_to_string(folder.join("begun")).unwrap(), format!("hello {}", folder.display()));
    fs::write(bench.path("notes/end1"), "").unwrap();
    assert_eq!(server.finished().id, 1);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!folder.join("go").exists(), "nothing has the device");
    server.worker.submit(asks(2, false)).unwrap();
    until(|| !folder.join("went").exists());
    fs::write(bench.path("notes/end2"), "").unwrap();
    assert_eq!(server.finished().id, 2);
}
