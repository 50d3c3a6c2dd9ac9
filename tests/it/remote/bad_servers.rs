//! Servers that do not do as they should.
//!
//! It does not know servers that do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{EVERYTHING, PATIENT, build, command, filled, project};
use crate::remote_servers::{Files, Reply, Server};

/// A limit for servers that never answer.
const SHORT: &str = "300ms";

/// Builds where the server holds everything but fails so: everything runs, with a warning, and the result is what it is without.
fn runs_everything_with_a_warning(server: &Server, limit: &str, warning: &str) {
    let project = project();
    let ran = project.run(&mut command(&project, &server.url(), limit, "build"));
    ran.exits(0).runs(EVERYTHING).says("warning: remote cache http://127.0.0.1:").says(warning);
    project.build().exits(0).runs("").says("fresh 19");
    project.t2t("cache verify").exits(0);
}

#[test]
fn a_port_that_refuses_costs_a_warning() {
    for url in ["http://127.0.0.1:1", "redis://127.0.0.1:1"] {
        let project = project();
        let ran = build(&project, url).exits(0).runs(EVERYTHING);
        ran.says("refused").says("is left alone for a while").says("hits 0, misses 19, uploads 0, not uploaded 19");
    }
}

#[test]
fn a_server_that_never_answers_costs_a_warning() {
    let server = Server::start(filled(), |_| Reply::Silence);
    runs_everything_with_a_warning(&server, SHORT, "cannot be read");
}

#[test]
fn a_redis_server_that_never_answers_costs_a_warning() {
    let server = Server::start(Files::new(), |_| Reply::Silence);
    let url = format!("redis://127.0.0.1:{}", server.port);
    let project = project();
    project.run(&mut command(&project, &url, SHORT, "build")).exits(0).runs(EVERYTHING).says("warning: remote cache");
}

#[test]
fn a_server_that_fails_costs_a_warning() {
    let server = Server::start(filled(), |_| Reply::Status(500));
    runs_everything_with_a_warning(&server, PATIENT, "cannot be read");
}

#[test]
fn a_server_that_refuses_costs_a_warning_that_says_what_to_set() {
    for (status, name) in [(401, "401 Unauthorized"), (403, "403 Forbidden")] {
        let server = Server::start(filled(), move |_| Reply::Status(status));
        let refused = format!("it refuses: {name} (set $T2T_REMOTE_TOKEN, or $T2T_REMOTE_USER and");
        runs_everything_with_a_warning(&server, PATIENT, &format!("cannot be read: {refused}"));
        let asked: BTreeSet<String> = server.asked().into_iter().filter(|asked| asked.starts_with("GET ")).collect();
        assert_eq!(asked.len(), 19, "it is a miss, and no reason to leave the server alone");
    }
}

#[test]
fn a_server_that_takes_nothing_is_only_read() {
    for status in [403, 404, 405, 501] {
        let rule = move |method: &str| if method == "GET" { Reply::Serve } else { Reply::Status(status) };
        let server = Server::start(filled(), rule);
        let project = project();
        project.edit("kernels/softmax/v2_tiling.py", "input + 1", "input + 2");
        let ran = build(&project, &server.url()).exits(0).says("hits 13, misses 6, uploads 0, not uploaded 6");
        ran.says("takes nothing from here: it ").says(&format!("{status} ")).says("; it is only read");
    }
}

#[test]
fn a_server_that_ends_its_answers_early_costs_a_warning() {
    let server = Server::start(filled(), |method| if method == "GET" { Reply::Half } else { Reply::Serve });
    runs_everything_with_a_warning(&server, PATIENT, "its answer ends early");
    let mut tries = BTreeMap::<_, usize>::new();
    for request in server.asked().into_iter().filter(|request| request.starts_with("GET ")) {
        *tries.entry(request).or_default() += 1;
    }
    assert!(tries.values().all(|count| *count <= 3), "{tries:?}");
}

#[test]
fn a_server_that_sends_other_bytes_is_not_believed() {
    let flipped = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        bytes
    };
    let server = Server::start(filled(), move |_| Reply::Changed(flipped));
    runs_everything_with_a_warning(&server, PATIENT, "it counts as missing");
}

#[test]
fn a_server_that_sends_what_is_no_entry_is_not_believed() {
    let server = Server::start(filled(), |_| Reply::Changed(|_| b"<html>Welcome!</html>".to_vec()));
    runs_everything_with_a_warning(&server, PATIENT, "is not an entry of this version of t2t");
}

#[test]
fn an_entry_under_the_key_of_another_is_not_believed() {
    let files = filled();
    let (names, mut entries): (Vec<_>, Vec<_>) = files.into_iter().filter(|(name, _)| name.starts_with("/ac/")).unzip();
    entries.rotate_left(1);
    let server = Server::good(names.into_iter().zip(entries).collect());
    runs_everything_with_a_warning(&server, PATIENT, "its bytes do not match its digest");
}

#[test]
fn a_blob_that_is_gone_or_another_makes_the_action_run() {
    let logs = "gelu:log softmax:log";
    let mut gone = filled();
    gone.retain(|name, _| name.starts_with("/ac/"));
    let ran = build(&project(), &Server::good(gone).url()).exits(0).runs_beside_the_summary(logs);
    ran.says("which an entry names, is not there; it counts as missing");
    let mut other = filled();
    let blobs = other.iter_mut().filter(|(name, _)| name.starts_with("/cas/"));
    blobs.for_each(|(_, bytes)| bytes[0] ^= 1);
    let server = Server::good(other);
    let ran = build(&project(), &server.url()).exits(0).runs_beside_the_summary(logs);
    ran.says("match its digest; it counts as missing");
    // Those who ran left whole ones.
    build(&project(), &server.url()).exits(0).runs("").never_says("warning:");
}

#[test]
fn a_server_that_sends_without_end_is_cut_off() {
    let server = Server::start(filled(), |_| Reply::Changed(|_| vec![b'x'; 5 << 20]));
    runs_everything_with_a_warning(&server, PATIENT, "it sends more than");
}

#[test]
fn a_server_that_vanishes_in_the_middle_costs_a_warning() {
    let seen = AtomicUsize::new(0);
    let server =
        Server::start(
            filled(),
            move |_| {
                if seen.fetch_add(1, Ordering::SeqCst) < 5 { Reply::Serve } else { Reply::Close }
            },
        );
    let project = project();
    let ran = build(&project, &server.url()).exits(0).says("warning: remote cache").says("hits 5");
    assert_ne!(ran.actions, "");
    project.build().exits(0).runs("").says("fresh 19");
}

#[test]
fn a_slow_server_is_waited_for() {
    let server = Server::start(filled(), |_| {
        std::thread::sleep(Duration::from_millis(30));
        Reply::Serve
    });
    build(&project(), &server.url()).exits(0).runs("").never_says("warning:");
}
