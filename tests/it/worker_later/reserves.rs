//! Children that get ready before their request, on a server that has not imported everything.
//!
//! It does not know requests that have none.

use std::fs;

use serde_json::json;
use t2t_protocol::{DEVICE, FromWorker, Request, ToWorker, WarmChild};

use super::{Raw, bench, request, reserve, until};
use crate::worker_setup::{reply, text};

#[test]
fn a_reserve_waits_like_a_request_and_takes_the_one_that_waits_after_it() {
    let bench = bench();
    let reserve = WarmChild { needs: Some("two".to_owned()), ..reserve("device", "get_ready") };
    let asked =
        |id| Request { reserve: Some("device".to_owned()), ..request(&bench, id, "told_when_ready", Some("two")) };
    let run = |id| ToWorker::Run(Box::new(asked(id)));
    let messages = [ToWorker::Prepare(reserve), ToWorker::Rest, run(1), run(2)];
    let mut server = Raw::start(&bench, &["one", "two"], &messages);
    server.hello();
    let (_, ended) = server.ends(2);
    assert_eq!([reply(&ended[0]), reply(&ended[1])], [&json!([["one", "two"]]), &json!([])]);
}

#[test]
fn a_server_tells_of_each_child_that_it_is_ready_or_never_will_be() {
    let bench = bench();
    let mut server = Raw::start(&bench, &[], &[]);
    server.hello();
    for (key, function) in [("a", "get_ready"), ("b", "nothing_of_that_name"), ("a", "get_ready")] {
        server.send(&ToWorker::Prepare(reserve(key, function)));
        assert_eq!(server.next(), FromWorker::Prepared { key: key.to_owned() }, "{function}");
    }
}

#[test]
fn a_child_that_would_disturb_what_is_timed_gets_ready_after_it() {
    let bench = bench();
    let [same, other, go] = ["same", "other", "go"].map(|name| text(&bench.path(name)));
    let saying = |device: &str, ready: &str| {
        let environment = [(DEVICE, device), ("READY", ready)].map(|(name, value)| (name.to_owned(), value.to_owned()));
        ToWorker::Prepare(WarmChild { environment: environment.into(), ..reserve(device, "get_ready_and_say_so") })
    };
    let ToWorker::Prepare(WarmChild { environment, .. }) = saying("0", &same) else { unreachable!() };
    let timed = Request {
        undisturbed: true,
        environment,
        arguments: json!({ "file": go }),
        ..request(&bench, 1, "waits", None)
    };
    let mut server = Raw::start(&bench, &[], &[ToWorker::Run(Box::new(timed))]);
    server.hello();
    assert!(matches!(server.next(), FromWorker::Started { id: 1, .. }));
    until(|| bench.path("scratch/quiet").exists());
    server.send(&saying("0", &same));
    server.send(&saying("1", &other));
    until(|| bench.path("other").exists());
    assert!(!bench.path("same").exists());
    fs::write(&go, "").unwrap();
    until(|| bench.path("same").exists());
}
