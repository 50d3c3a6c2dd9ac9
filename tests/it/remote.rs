//! The remote cache: what one machine left there, another restores; and whatever the server does, the build ends as it would without it.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use t2t_model::digest::Digest;
use t2t_store::store::remote::entry::{Entry, Secret};
use tempfile::TempDir;

use crate::project::{Project, Ran};
use crate::remote_servers::{Files, Real, Reply, Server};

/// What a first build runs.
const EVERYTHING: &str = "gelu:analyze,select,log gelu/v1_baseline:compile,check,bench gelu/v2_tiling:compile,check,bench \
    softmax:analyze,select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench summary";

/// A limit that nothing reaches that works.
const PATIENT: &str = "240s";

/// A limit for servers that never answer.
const SHORT: &str = "300ms";

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

/// What it leaves there of one op.
fn half() -> Files {
    let mut files = filled();
    files.retain(|name, bytes| {
        let key = name.strip_prefix("/ac/").map(|key| key.parse().unwrap());
        key.is_none_or(|key| Entry::decode(key, bytes, None).unwrap().records[0].identity.target.op == "softmax")
    });
    files
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

// Servers that do not do as they should.

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
fn a_server_that_may_not_be_read_costs_a_warning() {
    let server = Server::start(filled(), |_| Reply::Status(403));
    runs_everything_with_a_warning(&server, PATIENT, "cannot be read: it refuses");
}

#[test]
fn a_server_that_ends_its_answers_early_costs_a_warning() {
    let server = Server::start(filled(), |method| if method == "GET" { Reply::Half } else { Reply::Serve });
    // What is missing is asked for again and again, until the time is over.
    runs_everything_with_a_warning(&server, SHORT, "cannot be read");
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

// Who may write, and who is believed.

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

// What is declared, and who overrides it.

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
    ran.exits(0).says("remote cache: redis://127.0.0.1:1").says("does not answer: ").says("refused");
    project.t2t("doctor").exits(0).says("remote cache: none");
}
