//! What does not become a worker says why, in words that help, and never hangs.

use std::{
    fs,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;
use t2t_host::worker::{ClientError, Worker, WorkerConfig, WorkerError, connect};
use t2t_protocol::{ClientHello, End, ServerKind, UnfitReason};

use crate::project::program;
use crate::worker_setup::{Bench, SOON, Server, python, reply, text};

const MODULE: &str = "
def quick(arguments):
    return 1
";

fn start(config: &WorkerConfig) -> Result<Worker, WorkerError> {
    Worker::start(config, |_| {})
}

/// Returns the message and the hint, as a person sees them.
fn message(config: &WorkerConfig) -> (String, Option<&'static str>) {
    let error = start(config).unwrap_err();
    (error.to_string(), error.hint())
}

/// An interpreter that sees no installed module.
fn bare_python(bench: &Bench) -> PathBuf {
    let script = bench.path("python");
    program(&script, &format!("#!/bin/sh\nexec '{}' -S \"$@\"\n", python().display()));
    script
}

/// A configuration whose `t2t_worker` is this text.
fn with_module(bench: &Bench, text: &str) -> WorkerConfig {
    let folder = bench.path("module");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("t2t_worker.py"), text).unwrap();
    WorkerConfig { python: bare_python(bench), module: Some(folder), ..bench.config() }
}

#[test]
fn a_server_leaves_no_bytecode_beside_the_harness() {
    let bench = Bench::new(MODULE);
    start(&bench.config()).unwrap();
    let left: Vec<_> = fs::read_dir(bench.path("harness")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["work.py"]);
}

#[test]
fn the_hello_says_what_there_is_and_what_is_missing() {
    let bench = Bench::new(MODULE);
    let mut config = bench.config();
    config.kind = ServerKind::Interpreter;
    let preload = ["work", "nowhere", "json.decoder", "os:listdir", "os:nothing"];
    config.preload = preload.map(str::to_owned).to_vec();
    let worker = start(&config).unwrap();
    let hello = worker.hello();
    assert_eq!((hello.kind, hello.worker.as_str()), (ServerKind::Interpreter, "0.1.0"));
    assert!(hello.python.starts_with("3."));
    let missing: Vec<&str> = hello.missing.iter().map(|missing| missing.reason.as_str()).collect();
    let reasons =
        ["ModuleNotFoundError: No module named 'nowhere'", "AttributeError: module 'os' has no attribute 'nothing'"];
    assert_eq!(missing, reasons);
    assert!(hello.packages.contains_key("json") && !hello.packages.contains_key("work"));
    assert_eq!(hello.path[0], text(&bench.path("harness")));
}

#[test]
fn where_kernels_run_on_a_device_triton_reads_its_files_before_the_hello_and_one_that_cannot_counts_as_missing() {
    for (kind, told, missing, times) in [
        (ServerKind::Device, "''", &[][..], "read"),
        (ServerKind::Device, "1 / 0", &["ZeroDivisionError: division by zero"], "read"),
        (ServerKind::Interpreter, "''", &[], ""),
        (ServerKind::Compiled, "''", &[], ""),
    ] {
        let bench = Bench::new(MODULE);
        let folder = bench.path("harness/triton/runtime");
        fs::create_dir_all(&folder).unwrap();
        fs::write(bench.path("harness/triton/__init__.py"), "").unwrap();
        fs::write(folder.join("__init__.py"), "").unwrap();
        let read = bench.path("read");
        fs::write(&read, "").unwrap();
        let text = format!("def triton_key():\n    open({:?}, 'a').write('read')\n    return {told}\n", text(&read));
        fs::write(folder.join("cache.py"), text).unwrap();
        let mut config = WorkerConfig { kind, ..bench.config() };
        config.preload.insert(0, "triton".to_owned());
        let worker = start(&config).unwrap();
        let reasons: Vec<&str> = worker.hello().missing.iter().map(|missing| missing.reason.as_str()).collect();
        assert_eq!((reasons.as_slice(), fs::read_to_string(&read).unwrap().as_str()), (missing, times));
    }
}

#[test]
fn a_python_that_does_not_exist_is_named() {
    let config = WorkerConfig::new("/nowhere/python", ServerKind::Compiled);
    let (message, hint) = message(&config);
    assert_eq!(message, "cannot start `/nowhere/python`: No such file or directory (os error 2)");
    assert_eq!(hint, Some("name another interpreter with `--python` or `$T2T_PYTHON`"));
}

#[test]
fn a_python_without_the_module_is_told_from_a_broken_one() {
    let bench = Bench::new(MODULE);
    let python = bare_python(&bench);
    let config = WorkerConfig { python: python.clone(), ..bench.config() };
    let (message, hint) = message(&config);
    let expected = format!("`{}` cannot serve: No module named 't2t_worker'\n    exit status: 1", python.display());
    assert_eq!(message, expected);
    assert!(hint.unwrap().starts_with("run `uv sync`"));
}

#[test]
fn the_module_works_copied_alone() {
    let bench = Bench::new(MODULE);
    // The wheel is a package around the module itself.
    let place = "import sys, t2t_worker as m; print(sys.modules.get('t2t_worker.t2t_worker', m).__file__)";
    let found = Command::new(python()).args(["-c", place]).output().unwrap();
    let file = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let folder = bench.path("module");
    fs::create_dir(&folder).unwrap();
    fs::copy(file, folder.join("t2t_worker.abi3.so")).unwrap();
    let mut config = WorkerConfig { python: bare_python(&bench), ..bench.config() };
    config.module = Some(folder.clone());
    let server = Server::start(&config);
    assert!(!server.worker.hello().path.contains(&text(&folder)));
    assert_eq!(*reply(&server.run(bench.request(1, "quick"))), json!(1));
    config.module = None;
    config.environment.insert("PYTHONPATH".to_owned(), text(&folder));
    assert_eq!(*reply(&Server::start(&config).run(bench.request(1, "quick"))), json!(1));
}

#[test]
fn a_worker_of_another_version_is_refused_by_t2t() {
    let bench = Bench::new(MODULE);
    let config = with_module(
        &bench,
        r#"
import json, os, struct
def serve():
    body = json.dumps({"hello": {"version": 99, "novelty": True}}).encode()
    os.write(0, struct.pack(">I", len(body)) + body)
"#,
    );
    let (message, hint) = message(&config);
    assert!(message.contains("speaks version 99 of the worker protocol, this t2t 10"), "{message}");
    assert_eq!(hint, Some("t2t and `t2t_worker` come from different builds; run `uv sync`"));
}

#[test]
fn a_t2t_of_another_version_is_refused_by_the_worker() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut server = Command::new(python())
        .args(["-c", "import t2t_worker; t2t_worker.serve()"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let hello = ClientHello {
        version: 99,
        kind: ServerKind::Compiled,
        harness: None,
        preload: Vec::new(),
        later: Vec::new(),
        asked: Vec::new(),
        fork_after: None,
    };
    let error = connect(ours, &hello, SOON).unwrap_err();
    let ClientError::Unfit(unfit) = error else { panic!("{error}") };
    assert_eq!(unfit.kind, UnfitReason::Version);
    assert_eq!(unfit.reason, "t2t speaks version 99 of the worker protocol, this module 10");
    assert_eq!(server.wait().unwrap().code(), Some(1));
}

#[test]
fn a_server_that_is_silent_is_given_up() {
    let bench = Bench::new(MODULE);
    let said = bench.path("said");
    let module = format!(
        "import time\nprint('thinking', flush=True)\nopen('{}', 'w').close()\ntime.sleep(1000)",
        said.display()
    );
    let mut config = with_module(&bench, &module);
    config.patience = Duration::from_millis(500);
    let (mut told, _) = message(&config);
    // What it said is quoted. A slow machine may not have come to that yet.
    while !said.exists() {
        config.patience *= 2;
        assert!(config.patience < 2 * SOON, "{told}");
        (told, _) = message(&config);
    }
    let expected =
        format!("was not ready within {} s\n    signal: 9 (SIGKILL)\n    thinking", config.patience.as_secs_f64());
    assert!(told.ends_with(&expected), "{told}");
}

#[test]
fn a_server_that_dies_is_quoted() {
    let bench = Bench::new(MODULE);
    let config = with_module(&bench, "import os, sys\nprint('libcuda is odd', file=sys.stderr)\nos.abort()");
    let (message, _) = message(&config);
    assert!(message.contains("it ended before it was ready\n    signal: 6 (SIGABRT)"), "{message}");
    assert!(message.ends_with("\n    libcuda is odd"), "{message}");
}

#[test]
fn a_module_that_raises_is_quoted() {
    let bench = Bench::new(MODULE);
    let (message, _) = message(&with_module(&bench, "raise RuntimeError('no')"));
    assert!(message.ends_with("RuntimeError: no"), "{message}");
}

#[test]
fn a_server_with_a_second_thread_refuses_to_fork() {
    let bench = Bench::new("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()");
    match bench.run("quick").end {
        End::Refused(reason) => {
            assert_eq!(reason, "the server has 2 threads, and only one of them would live in the child");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_server_forks_once_its_second_thread_has_ended() {
    let bench = Bench::new(&format!(
        "{MODULE}\nimport threading, time\nthreading.Thread(target=time.sleep, args=(0.2,)).start()"
    ));
    assert!(matches!(bench.run("quick").end, End::Reply(_)));
}

#[test]
fn the_module_path_holds_what_was_named_and_not_the_working_directory() {
    let bench = Bench::new(MODULE);
    let mut config = bench.config();
    config.environment.insert("PYTHONPATH".to_owned(), ":relative:".to_owned());
    let server = Server::start(&config);
    let path = &server.worker.hello().path;
    let here = std::env::current_dir().unwrap();
    assert!(path.contains(&text(&here.join("relative"))), "{path:?}");
    assert!(!path.contains(&text(&here)) && !path.contains(&"/".to_owned()), "{path:?}");
}
