//! Who may write, who is believed, and who says so.
//!
//! It does not know servers that fail.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use t2t_model::digest::Digest;
use t2t_store::store::remote::entry::{Entry, Secret};
use tempfile::TempDir;

use super::{EVERYTHING, PATIENT, build, command, filled, project};
use crate::project::Project;
use crate::remote_servers::{Files, Reply, Server};

/// What a build leaves on a server, of one op alone.
fn half() -> Files {
    let mut files = filled();
    files.retain(|name, bytes| {
        let key = name.strip_prefix("/ac/").map(|key| key.parse().unwrap());
        key.is_none_or(|key| Entry::decode(key, bytes, None).unwrap().records[0].identity.target.op == "softmax")
    });
    files
}

#[test]
fn a_read_only_remote_is_not_written_to() {
    let some = half();
    let server = Server::good(some.clone());
    let project = project();
    let ran = project.run(command(&project, &server.url(), PATIENT, "build").env("T2T_REMOTE_MODE", "read-only"));
    ran.exits(0).says("uploads 0\n").never_says("warning:");
    assert_eq!(server.files(), some);
    assert!(server.asked().iter().all(|asked| asked.starts_with("GET ")), "{:?}", server.asked());
}

#[test]
fn a_folder_that_is_only_read_is_not_made() {
    let folder = TempDir::new().unwrap();
    let url = format!("file://{}/cache", folder.path().display());
    let project = project();
    let arguments = format!("build --remote {url} --remote-mode read-only");
    project.t2t(&arguments).exits(0).runs(EVERYTHING).says("no such folder");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_server_that_refuses_writes_is_still_read() {
    for status in [401, 403] {
        let puts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&puts);
        let server = Server::start(half(), move |method| {
            if method != "PUT" {
                return Reply::Serve;
            }
            counted.fetch_add(1, Ordering::SeqCst);
            Reply::Status(status)
        });
        let ran = build(&project(), &server.url()).exits(0).says("takes nothing from here").says("it is only read");
        ran.never_says("hits 0,");
        assert!(puts.load(Ordering::SeqCst) > 0);
    }
}

#[test]
fn tagged_entries_are_taken_by_those_who_have_the_secret_and_those_who_have_none() {
    let server = Server::good(Files::new());
    let with = |secret: &str| {
        let project = project();
        let ran = project.run(command(&project, &server.url(), PATIENT, "build").env("T2T_REMOTE_SECRET", secret));
        ran.exits(0)
    };
    with("ours").runs(EVERYTHING);
    with("ours").runs("").never_says("warning:");
    with("").runs("").never_says("warning:");
    with("theirs").runs(EVERYTHING).says("has no tag, or one of another secret");
}

#[test]
fn with_a_secret_what_was_not_tagged_is_not_taken() {
    let project = project();
    let server = Server::good(filled());
    let ran = project.run(command(&project, &server.url(), PATIENT, "build").env("T2T_REMOTE_SECRET", "ours"));
    ran.exits(0).runs(EVERYTHING).says("has no tag, or one of another secret");
}

#[test]
fn a_forged_entry_is_not_taken_where_there_is_a_secret() {
    let server = Server::good(Files::new());
    let build = |project: &Project| {
        project.run(command(project, &server.url(), PATIENT, "build").env("T2T_REMOTE_SECRET", "ours"))
    };
    build(&project()).exits(0);
    // Whoever can write to the server, and not tag, says that every kernel is wrong.
    let mut forged = server.files();
    for (name, bytes) in forged.iter_mut().filter(|(name, _)| name.starts_with("/ac/")) {
        let key: Digest = name["/ac/".len()..].parse().unwrap();
        let mut entry = Entry::decode(key, bytes, Some(&Secret::of(b"ours"))).unwrap();
        let rejected = t2t_model::record::Outcome::Rejected { class: "mismatch".to_owned() };
        entry.records.iter_mut().for_each(|record| record.outcome = rejected.clone());
        *bytes = entry.encode(key, Some(&Secret::of(b"guessed")));
    }
    let server = Server::good(forged);
    let project = project();
    let ran = project.run(command(&project, &server.url(), PATIENT, "build").env("T2T_REMOTE_SECRET", "ours"));
    ran.exits(0).runs(EVERYTHING).says("has no tag, or one of another secret");
}

#[test]
fn a_flag_counts_before_the_environment_and_that_before_ops_yaml() {
    let (declared, named, flagged) = (Server::good(filled()), Server::good(filled()), Server::good(filled()));
    let fresh = || {
        let project = project();
        project.edit("ops.yaml", "version: 1\n", &format!("version: 1\ncache: {{remote: \"{}\"}}\n", declared.url()));
        project
    };
    let asked = || [&declared, &named, &flagged].map(|server| usize::from(!server.asked().is_empty()));
    let project = fresh();
    project.t2t("build").exits(0).runs("");
    assert_eq!(asked(), [1, 0, 0]);
    let project = fresh();
    build(&project, &named.url()).exits(0).runs("");
    assert_eq!(asked(), [1, 1, 0]);
    let project = fresh();
    let arguments = format!("build --remote {}", flagged.url());
    project.run(&mut command(&project, &named.url(), PATIENT, &arguments)).exits(0).runs("");
    assert_eq!(asked(), [1, 1, 1]);
    let before = declared.asked().len() + named.asked().len() + flagged.asked().len();
    fresh().t2t("build --no-remote").exits(0).runs(EVERYTHING).never_says("remote ");
    build(&fresh(), "off").exits(0).runs(EVERYTHING).never_says("remote ");
    fresh().t2t("doctor --remote-mode off").exits(0).says("remote cache: none");
    assert_eq!(declared.asked().len() + named.asked().len() + flagged.asked().len(), before);
}

#[test]
fn a_url_with_a_password_is_refused_and_not_shown() {
    let project = Project::new();
    let ran =
        build(&project, "https://user:hush@host/cache").exits(2).says("$T2T_REMOTE is not the URL of a remote cache");
    ran.never_says("hush");
    project.edit("ops.yaml", "version: 1\n", "version: 1\ncache: {remote: \"http//host\"}\n");
    project.build().exits(2).says("ops.yaml:2:").says("write `s3://BUCKET/FOLDER`");
}

#[test]
fn doctor_says_whether_the_remote_answers() {
    let project = Project::new();
    let server = Server::good(Files::new());
    let ran = project.run(command(&project, &server.url(), PATIENT, "doctor").env("T2T_REMOTE_SECRET", "hush"));
    ran.exits(0).says("(read-write; entries are tagged; results are not signed): answers in").never_says("hush");
    let ran = project.run(&mut command(&project, "redis://127.0.0.1:1", PATIENT, "doctor"));
    ran.exits(0).says("remote cache: redis://127.0.0.1:1").says("cannot be read: ").says("refused");
    project.t2t("doctor").exits(0).says("remote cache: none");
}

#[test]
fn doctor_tries_whether_the_remote_takes_results_and_leaves_one_entry_at_most() {
    let project = Project::new();
    let doctor = |server: &Server, mode: &str| {
        let arguments = format!("doctor --remote-mode {mode}");
        project.run(&mut command(&project, &server.url(), PATIENT, &arguments)).exits(0)
    };
    let server = Server::good(Files::new());
    doctor(&server, "read-only").says("answers in").never_says("takes");
    assert!(server.files().is_empty());
    for _ in 0..2 {
        doctor(&server, "read-write").says("answers in").says("takes results");
        assert_eq!(server.files().into_keys().collect::<Vec<_>>(), [format!("/ac/{}", "0".repeat(64))]);
    }
    let server = Server::start(Files::new(), |method| if method == "GET" { Reply::Serve } else { Reply::Status(405) });
    let ran = doctor(&server, "read-write").says("answers in").says("takes no results: it accepts no PUT there (405");
    ran.says("use `--remote-mode read-only`, or another server");
    let server = Server::start(Files::new(), |_| Reply::Status(401));
    let ran = doctor(&server, "read-write").says("cannot be read: it refuses: 401 Unauthorized (set $T2T_REMOTE_TOKEN");
    ran.says("; takes no results: it refuses: 401 Unauthorized");
}
