//! Signed results in the remote cache.
//!
//! It does not know how servers are asked.

use t2t_model::digest::Digest;
use t2t_store::store::remote::entry::Entry;

use super::{build, missing, trusting};
use crate::project::Project;
use crate::remote_servers::{Files, Server};

const REMOTE_GATE: &str = "build --require-cached --require-signed";

/// A workspace with an empty store that trusts Ada.
fn fresh() -> Project {
    let project = Project::new();
    trusting(&project);
    project
}

#[test]
fn results_that_were_signed_are_taken_from_the_remote_cache_and_others_are_not() {
    let server = Server::good(Files::new());
    build(&fresh(), &server, "build").exits(0).says("uploads 19\n");
    let ran = build(&fresh(), &server, REMOTE_GATE).exits(1).runs("");
    let ran = ran.says("is not signed; it counts as missing\n");
    assert_eq!(missing(&ran), 14);
    build(&fresh(), &server, "build --require-cached").exits(0).runs("");
    let server = Server::good(Files::new());
    build(&fresh(), &server, "build --sign ../ada").exits(0).says("uploads 19\n");
    let ran = build(&fresh(), &server, REMOTE_GATE).exits(0).runs("").never_says("warning:");
    ran.says("measured elsewhere: 14 results signed by ada@example.org (SHA256:");
    let server = Server::good(Files::new());
    build(&fresh(), &server, "build --sign ../bob").exits(0);
    let ran = build(&fresh(), &server, REMOTE_GATE).exits(1).runs("");
    let ran = ran.says("has a signature that is by the key SHA256:").says("which `trust` in ops.yaml does not name");
    assert_eq!(missing(&ran), 14);
}

#[test]
fn an_entry_that_is_forged_under_a_signature_is_not_taken() {
    let server = Server::good(Files::new());
    build(&fresh(), &server, "build --sign ../ada").exits(0);
    let honest = server.files();
    let mut forged = honest.clone();
    for (name, bytes) in forged.iter_mut().filter(|(name, _)| name.starts_with("/ac/")) {
        let key: Digest = name["/ac/".len()..].parse().unwrap();
        let mut entry = Entry::decode(key, bytes, None).unwrap();
        let signature = entry.signatures.values().next().unwrap().clone();
        entry.records[0].wall_ms += 1;
        entry.signatures = [(entry.records[0].digest(), signature)].into();
        *bytes = entry.encode(key, None);
    }
    let forged = Server::good(forged);
    build(&fresh(), &forged, "build --require-cached").exits(0).runs("");
    let ran = build(&fresh(), &forged, REMOTE_GATE).exits(1).runs("");
    let ran = ran.says("has a signature that does not fit: ada@example.org (SHA256:");
    assert_eq!(missing(&ran), 14);
    build(&fresh(), &Server::good(honest), REMOTE_GATE).exits(0);
}

#[test]
fn doctor_says_with_which_key_results_are_signed() {
    let server = Server::good(Files::new());
    let project = fresh();
    build(&project, &server, "doctor --sign ../ada").exits(0).says("results are signed by ada@example.org (SHA256:");
    build(&project, &server, "doctor --sign ../bob").exits(0).says(", which `trust` does not name): answers in");
    build(&project, &server, "doctor").exits(0).says("results are not signed");
}
