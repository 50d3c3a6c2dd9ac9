//! The remote cache: what one machine left there, another restores; and whatever the server does, the build ends as it would without it.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use tempfile::TempDir;

use crate::project::{Project, Ran};
use crate::remote_servers::{Files, Real, Reply, Server};

mod bad_servers;
mod believed;

/// What a first build runs.
const EVERYTHING: &str = "gelu:analyze,select,log gelu/v1_baseline:compile,check,bench gelu/v2_tiling:compile,check,bench \
    softmax:analyze,select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench summary";

/// A limit that nothing reaches that works.
const PATIENT: &str = "240s";

/// A workspace whose logs are too long to lie in an entry.
fn project() -> Project {
    let project = Project::new();
    let template = project.read("assets/log_template.md") + &"A line that says nothing at length.\n".repeat(200);
    project.write("assets/log_template.md", template);
    project
}

fn command(project: &Project, url: &str, limit: &str, arguments: &str) -> Command {
    let mut command = project.command(arguments);
    command.env("T2T_REMOTE", url).env("T2T_REMOTE_TIMEOUT", limit);
    command
}

fn build(project: &Project, url: &str) -> Ran {
    project.run(&mut command(project, url, PATIENT, "build"))
}

/// What a whole build leaves on a server. It is made once.
fn filled() -> Files {
    static FILLED: OnceLock<Files> = OnceLock::new();
    FILLED
        .get_or_init(|| {
            let server = Server::good(Files::new());
            build(&project(), &server.url()).exits(0).runs(EVERYTHING).says("hits 0, misses 19, uploads 19\n");
            server.files()
        })
        .clone()
}

/// A workspace fills the cache, another one in another folder restores everything from it and ends with the same logs.
fn passes_everything_on(set: impl Fn(&mut Command)) {
    let build = |project: &Project| {
        let mut command = project.command("build");
        set(&mut command);
        project.run(&mut command)
    };
    let (first, second) = (project(), project());
    build(&first).exits(0).runs(EVERYTHING).says("uploads 19\n").never_says("warning:");
    let ran = build(&second).exits(0).runs("").says("hits 19, misses 0, uploads 0\n").never_says("warning:");
    assert!(ran.stderr.contains("fresh 0, restored 19, ran 0"), "{}", ran.stderr);
    for log in ["logs/softmax_log.md", "logs/gelu_log.md", "logs/summary.md"] {
        assert_eq!(first.read(log), second.read(log));
    }
    build(&second).exits(0).runs("").never_says("remote ").says("fresh 19");
}

#[test]
fn another_machine_restores_everything_from_a_folder() {
    let folder = TempDir::new().unwrap();
    let url = format!("file://{}/cache", folder.path().display());
    passes_everything_on(|command| _ = command.env("T2T_REMOTE", &url));
}

#[test]
fn another_machine_restores_everything_from_a_webdav_server_that_asks_for_a_password() {
    let folder = TempDir::new().unwrap();
    let server = Real::start(&["webdav", folder.path().to_str().unwrap()]);
    let url = format!("http://127.0.0.1:{}/team/kernels", server.port);
    passes_everything_on(|command| {
        command.env("T2T_REMOTE", &url).env("T2T_REMOTE_USER", "kernels").env("T2T_REMOTE_PASSWORD", "hush");
    });
    assert!(fs::read_dir(folder.path().join("team/kernels/cas")).unwrap().count() >= 2);
}

#[test]
fn another_machine_restores_everything_from_a_bucket() {
    let server = Real::start(&["s3"]);
    let url = format!("s3://kernels/team?endpoint=http://127.0.0.1:{}&region=us-east-1", server.port);
    passes_everything_on(|command| {
        command.env("T2T_REMOTE", &url).env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret");
    });
}

#[test]
fn another_machine_restores_everything_from_redis() {
    let server = Real::start(&["redis"]);
    let url = format!("redis://127.0.0.1:{}/1/kernels", server.port);
    passes_everything_on(|command| _ = command.env("T2T_REMOTE", &url));
}

#[test]
fn another_machine_restores_everything_from_a_server_that_does_not_say_how_long_answers_are() {
    let server = Server::start(Files::new(), |_| Reply::Unmeasured);
    passes_everything_on(|command| _ = command.env("T2T_REMOTE", server.url()));
}

#[test]
fn a_build_that_runs_nothing_asks_nobody() {
    let server = Server::good(filled());
    let project = project();
    build(&project, &server.url()).exits(0).runs("");
    let asked = server.asked().len();
    build(&project, &server.url()).exits(0).runs("").never_says("remote ");
    assert_eq!(server.asked().len(), asked);
}

#[test]
fn results_are_looked_for_at_the_same_time() {
    // The first answers, of two analyses that nothing waits for, wait for each other. One after the other, they would wait for ever.
    let open = Arc::new((Mutex::new(0), Condvar::new()));
    let server = Server::start(filled(), move |_| {
        let (count, changed) = &*open;
        let mut count = count.lock().unwrap();
        *count += 1;
        changed.notify_all();
        let (count, late) = changed.wait_timeout_while(count, Duration::from_secs(200), |count| *count < 2).unwrap();
        drop(count);
        if late.timed_out() { Reply::Status(404) } else { Reply::Serve }
    });
    build(&project(), &server.url()).exits(0).runs("").never_says("warning:");
}

#[test]
fn an_entry_holds_what_is_small_and_names_the_rest() {
    let files = filled();
    let entries = files.keys().filter(|name| name.starts_with("/ac/")).count();
    let blobs: BTreeSet<usize> =
        files.iter().filter(|(name, _)| name.starts_with("/cas/")).map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(entries, 19);
    assert!(!blobs.is_empty() && blobs.iter().all(|length| *length > 4096), "{blobs:?}");
}

#[test]
fn what_is_edited_runs_and_is_left_for_others() {
    let server = Server::good(filled());
    let edited = || {
        let project = project();
        project.edit("kernels/softmax/v2_tiling.py", "input + 1", "input + 2");
        project
    };
    let v2 = "softmax:select,log softmax/v2_tiling:compile,check,bench summary";
    build(&edited(), &server.url()).exits(0).runs(v2).says("hits 13, misses 6, uploads 6\n");
    build(&edited(), &server.url()).exits(0).runs("").says("hits 19, misses 0, uploads 0\n");
}

#[test]
fn a_rejection_is_shared_and_a_missed_deadline_is_not() {
    let server = Server::good(Files::new());
    let rejected = |class: &str| {
        let project = project();
        project.kernel("softmax", "v1_baseline", &format!("REJECT {class}"));
        project
    };
    build(&rejected("mismatch"), &server.url()).exits(1);
    build(&rejected("mismatch"), &server.url()).exits(1).runs("");
    build(&rejected("timeout"), &server.url()).exits(1);
    let again = build(&rejected("timeout"), &server.url()).exits(1);
    assert!(again.actions.contains("softmax/v1_baseline:check"), "{}", again.actions);
    assert!(!again.actions.contains("gelu"), "{}", again.actions);
}

#[test]
fn results_for_other_discovered_files_lie_beside_each_other() {
    let server = Server::good(Files::new());
    let reading = |table: Option<&str>| {
        let project = project();
        project.kernel("softmax", "v1_baseline", "READS data/table.txt");
        if let Some(text) = table {
            project.write("data/table.txt", text);
        }
        project
    };
    let ran = |table| build(&reading(table), &server.url()).exits(0).actions;
    for table in [Some("1"), Some("2"), None] {
        assert!(ran(table).contains("softmax/v1_baseline:"), "{table:?} is new");
    }
    for table in [None, Some("1"), Some("2")] {
        assert_eq!(ran(table), "", "{table:?} is known");
    }
}

#[test]
fn what_is_forced_runs_and_is_left_for_others() {
    let server = Server::good(filled());
    let project = project();
    let ran = project.run(&mut command(&project, &server.url(), PATIENT, "build softmax/v1_baseline:check --force"));
    ran.exits(0).says("uploads 1\n");
}

#[test]
fn required_results_may_come_from_a_remote() {
    let server = Server::good(filled());
    let project = project();
    let ran = project.run(&mut command(&project, &server.url(), PATIENT, "build --require-cached"));
    ran.exits(0).runs("").says("restored 19");
}

#[test]
fn results_of_a_device_that_is_not_here_may_come_from_a_remote_and_stay() {
    let server = Server::good(filled());
    let project = project();
    let gate = "build --require-cached --as-device interpreter";
    project.t2t(gate).exits(1).runs("");
    project.run(&mut command(&project, &server.url(), PATIENT, gate)).exits(0).runs("").says("restored 19");
    project.t2t(gate).exits(0).runs("").says("fresh 19");
}
