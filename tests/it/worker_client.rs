//! The client over a pair of sockets, without a process.

use std::{
    collections::BTreeMap,
    io::Write,
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::json;
use t2t_host::worker::{Client, ClientError, WorkerEvent, connect};
use t2t_protocol::{
    ClientHello, End, Finished, FromWorker, Landlock, Limits, Request, ServerHello, ServerKind, VERSION, encode,
};

use crate::project::SOON;

fn client_hello() -> ClientHello {
    ClientHello {
        version: VERSION,
        kind: ServerKind::Compiled,
        harness: None,
        preload: Vec::new(),
        later: Vec::new(),
        asked: Vec::new(),
        fork_after: None,
    }
}

fn server_hello() -> FromWorker {
    FromWorker::Hello(Box::new(ServerHello {
        version: VERSION,
        kind: ServerKind::Compiled,
        worker: "0".to_owned(),
        pid: 1,
        python: "3.11.0".to_owned(),
        executable: "python".to_owned(),
        path: Vec::new(),
        packages: BTreeMap::new(),
        missing: Vec::new(),
        landlock: Landlock(0),
        namespaces: false,
    }))
}

fn request(id: u64) -> Request {
    Request {
        id,
        function: "work:main".to_owned(),
        arguments: json!(null),
        scratch: "/".to_owned(),
        environment: BTreeMap::new(),
        limits: Limits::wall(1),
        sandbox: None,
        watch_under: None,
        reserve: None,
        stays: false,
        undisturbed: false,
        needs: None,
    }
}

fn finished(id: u64) -> FromWorker {
    FromWorker::Finished(Box::new(Finished::bare(id, End::NoReply)))
}

/// A client, its events, and the server's end of the socket.
fn connected() -> (Client, Receiver<WorkerEvent>, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&encode(&server_hello()).unwrap()).unwrap();
    let (client, listener) = connect(ours, &client_hello(), SOON).unwrap();
    let (sender, events) = channel();
    thread::spawn(move || listener.listen(move |event| drop(sender.send(event)), || "autopsy".to_owned()));
    (client, events, theirs)
}

fn next(events: &Receiver<WorkerEvent>) -> WorkerEvent {
    events.recv_timeout(SOON).unwrap()
}

fn died(events: &Receiver<WorkerEvent>) -> (String, Vec<u64>) {
    match next(events) {
        WorkerEvent::Died { reason, outstanding } => (reason, outstanding),
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_arrive_in_order_however_the_bytes_are_cut() {
    let (client, events, mut theirs) = connected();
    client.submit(request(1)).unwrap();
    let stream = [encode(&FromWorker::Started { id: 1, pid: 5 }).unwrap(), encode(&finished(1)).unwrap()].concat();
    for byte in stream {
        theirs.write_all(&[byte]).unwrap();
    }
    assert!(matches!(next(&events), WorkerEvent::Started { id: 1, pid: 5 }));
    assert!(matches!(next(&events), WorkerEvent::Finished(finished) if finished.id == 1));
    drop(theirs);
    assert_eq!(died(&events), ("autopsy".to_owned(), Vec::new()));
}

#[test]
fn a_server_that_dies_leaves_the_unanswered_in_order() {
    let (client, events, mut theirs) = connected();
    for id in [3, 1, 2] {
        client.submit(request(id)).unwrap();
    }
    theirs.write_all(&encode(&finished(1)).unwrap()).unwrap();
    assert!(matches!(next(&events), WorkerEvent::Finished(_)));
    drop(theirs);
    assert_eq!(died(&events), ("autopsy".to_owned(), vec![2, 3]));
    assert!(matches!(client.submit(request(4)), Err(ClientError::Gone)));
}

#[test]
fn damaged_bytes_end_the_connection_with_a_reason() {
    let (client, events, mut theirs) = connected();
    client.submit(request(1)).unwrap();
    theirs.write_all(b"\0\0\0\x02{]").unwrap();
    let (reason, outstanding) = died(&events);
    assert!(reason.starts_with("a frame does not parse: ") && reason.ends_with("; autopsy"), "{reason}");
    assert_eq!(outstanding, [1]);
}

#[test]
fn half_a_hello_is_waited_for_until_the_time_is_over() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&encode(&server_hello()).unwrap()[..10]).unwrap();
    let error = connect(ours, &client_hello(), Duration::from_millis(100)).unwrap_err();
    assert!(matches!(error, ClientError::Late(_)), "{error}");
}

#[test]
fn a_server_that_leaves_before_its_hello_has_ended() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.shutdown(Shutdown::Both).unwrap();
    let error = connect(ours, &client_hello(), SOON).unwrap_err();
    assert!(matches!(error, ClientError::Ended), "{error}");
}
