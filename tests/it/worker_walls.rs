//! What a child can reach: its scratch, what was granted, and nothing of the server.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use t2t_protocol::{BYTECODE, End, Sandbox};

use crate::environment;
use crate::worker::probes::refusals;
use crate::worker_setup::{Bench, Server, reply, text};

const MODULE: &str = r#"
import errno, os, socket, subprocess, sys, tempfile

def attempt(action):
    try:
        action()
        return "done"
    except OSError as error:
        # Which of the walls is met first is not told.
        return "refused" if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else type(error).__name__

def comes_and_goes(path):
    open(path, "w").close()
    os.unlink(path)

def reach(arguments):
    root = arguments["root"]
    def connect():
        socket.create_connection(("127.0.0.1", 9), timeout=1)
    return {
        "read granted": attempt(lambda: open(root + "/kernels/k.py").read()),
        "write granted": attempt(lambda: open(root + "/kernels/k.py", "w")),
        "read root": attempt(lambda: open(root + "/ops.yaml").read()),
        "list root": attempt(lambda: os.listdir(root)),
        "read cache": attempt(lambda: open(root + "/cache/blob").read()),
        "read another scratch": attempt(lambda: open(root + "/other/secret").read()),
        "write outside": attempt(lambda: open(root + "/new", "w")),
        "rename outside": attempt(lambda: os.rename(root + "/ops.yaml", root + "/gone")),
        "remove outside": attempt(lambda: os.unlink(root + "/ops.yaml")),
        "write temporary": attempt(lambda: comes_and_goes(f"/tmp/t2t-wall-{os.getpid()}")),
        "read home": attempt(lambda: os.listdir(os.path.expanduser("~root"))),
        "write scratch": attempt(lambda: open("here", "w").write("x")),
        "make folder": attempt(lambda: os.makedirs("deep/er")),
        "temporary file": attempt(lambda: tempfile.NamedTemporaryFile().write(b"x")),
        "inet socket": attempt(connect),
        "inet6 socket": attempt(lambda: socket.socket(socket.AF_INET6)),
        "socket pair": attempt(lambda: socket.socketpair()),
        "null": attempt(lambda: open("/dev/null", "w").write("x")),
        "start a program": attempt(lambda: subprocess.run(["ls", "/usr"], check=True, capture_output=True)),
        "signal the server": attempt(lambda: os.kill(os.getppid(), 0)),
        "memory of the server": attempt(lambda: open(f"/proc/{os.getppid()}/mem", "rb").read(1)),
    }

def surroundings(arguments):
    return {
        "environ": dict(os.environ),
        "c environ": subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines(),
        "cwd": os.getcwd(),
        "tempdir": tempfile.gettempdir(),
        "descriptors": [int(name) for name in os.listdir("/proc/self/fd")][:-1],
        "group": os.getpgid(0) == os.getpid() == os.getsid(0),
        "path": sys.path,
    }

def fork_that_signals(arguments):
    import signal, t2t_worker
    parent = os.getpid()
    process = os.fork()
    if process == 0:
        t2t_worker.keep_signals_in()
        refused = attempt(lambda: os.kill(parent, signal.SIGKILL))
        os._exit({"refused": 3}.get(refused, 4))
    own = os.fork()
    if own == 0:
        signal.pause()
    os.kill(own, signal.SIGKILL)
    os.waitpid(own, 0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

def cores(arguments):
    return {"cores": sorted(os.sched_getaffinity(0)), "nice": os.nice(0)}

def names_its_thread(arguments):
    return attempt(lambda: open("/proc/self/task/" + str(os.getpid()) + "/comm", "w").write("kernel"))

def unix_socket(arguments):
    return attempt(lambda: socket.socket(socket.AF_UNIX))

def limits(arguments):
    import resource
    return {name: resource.getrlimit(getattr(resource, name))[0] for name in ("RLIMIT_CORE", "RLIMIT_NOFILE")}

def cpu_limits(arguments):
    import resource
    return list(resource.getrlimit(resource.RLIMIT_CPU))

def imports(arguments):
    import kernels.one
    try:
        open(arguments["root"] + "/absent.json")
    except OSError:
        pass
    import t2t_worker
    t2t_worker.note_probe(arguments["root"] + "/kernels/probed/__init__.py")
    os.chdir(arguments["root"])
    open("kernels/../data.bin", "rb").close()
    open("/etc/passwd").close()
    return 1

def overhears(arguments):
    import stat
    kept = []
    pipes = []
    for descriptor in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                pipes.append(descriptor)
        except OSError:
            pass
    for descriptor in pipes:
        real = os.dup(descriptor)
        ours, theirs = os.pipe2(os.O_NONBLOCK)
        os.dup2(theirs, descriptor)
        kept.append((ours, real))
    # Whoever watches what is opened tells the server of it.
    open(os.path.join(arguments["root"], "data.bin")).close()
    for ours, real in kept:
        try:
            frame = os.read(ours, 65536)
        except OSError:
            continue
        forged = frame[4:20] + b"\x03" + b'{"Reply": "forged"}'
        os.write(real, len(forged).to_bytes(4, "big") + forged)
        os._exit(0)
    return 1

def crashes_after_opening(arguments):
    open(arguments["root"] + "/data.bin").close()
    os.abort()
"#;

fn workspace(bench: &Bench) {
    for folder in ["kernels", "cache", "other"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    for file in ["kernels/k.py", "ops.yaml", "cache/blob", "other/secret"] {
        fs::write(bench.path(file), "text").unwrap();
    }
}

#[test]
fn the_sandbox_is_an_allow_list() {
    let count = refusals();
    let bench = Bench::new(MODULE);
    workspace(&bench);
    let mut request = bench.request(1, "reach");
    request.arguments = json!({"root": text(bench.folder.path())});
    request.sandbox = Some(Sandbox { read: vec![text(&bench.path("kernels"))], ..Sandbox::default() });
    let server = bench.start();
    assert!(server.worker.hello().landlock.0 >= 6, "these expectations need a kernel with Landlock 6 or newer");
    let finished = server.run(request);
    let refused = "refused";
    let expected = json!({
        "read granted": "done",
        "write granted": refused,
        "read root": refused,
        "list root": refused,
        "read cache": refused,
        "read another scratch": refused,
        "write outside": refused,
        "rename outside": refused,
        "remove outside": refused,
        "write temporary": refused,
        "read home": refused,
        "write scratch": "done",
        "make folder": "done",
        "temporary file": "done",
        "inet socket": refused,
        "inet6 socket": refused,
        "socket pair": "done",
        "null": "done",
        "start a program": "done",
        "signal the server": refused,
        "memory of the server": refused,
    });
    assert_eq!(*reply(&finished), expected);
    count.add(expected.as_object().unwrap().values().filter(|end| **end == refused).count());
}

#[test]
fn bytecode_that_is_kept_can_be_read_and_not_written() {
    let bench = Bench::new(MODULE);
    workspace(&bench);
    let mut config = bench.config();
    config.environment.insert(BYTECODE.to_owned(), text(&bench.path("kernels")));
    let mut request = bench.request(1, "reach");
    request.arguments = json!({"root": text(bench.folder.path())});
    let finished = Server::start(&config).run(request);
    let found = ["read granted", "write granted", "read cache"].map(|attempt| &reply(&finished)[attempt]);
    assert_eq!(found, ["done", "refused", "refused"]);
}

#[test]
fn a_device_opens_what_its_driver_needs() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    for (id, function) in [(1, "names_its_thread"), (3, "unix_socket")] {
        assert_eq!(*reply(&server.run(bench.request(id, function))), json!("refused"));
        let mut request = bench.request(id + 1, function);
        request.sandbox = Some(Sandbox { device: true, ..Sandbox::default() });
        assert_eq!(*reply(&server.run(request)), json!("done"));
    }
}

#[test]
fn without_a_sandbox_files_are_as_open_as_to_anyone() {
    let bench = Bench::new(MODULE);
    workspace(&bench);
    let mut request = bench.request(1, "reach");
    request.arguments = json!({"root": text(bench.folder.path())});
    request.sandbox = None;
    assert_eq!(reply(&bench.start().run(request))["read cache"], "done");
}

#[test]
fn a_workspace_on_the_module_path_is_not_granted_by_that() {
    let bench = Bench::new(MODULE);
    workspace(&bench);
    let mut config = bench.config();
    config.environment.insert("PYTHONPATH".to_owned(), text(bench.folder.path()));
    let mut request = bench.request(1, "reach");
    request.arguments = json!({"root": text(bench.folder.path())});
    let finished = Server::start(&config).run(request);
    assert_eq!(reply(&finished)["read cache"], "refused");
}

#[test]
fn the_surroundings_are_what_the_request_says_and_a_closed_list() {
    let bench = Bench::new(MODULE);
    let mut config = bench.config();
    config.environment.insert("TOKEN".to_owned(), "secret".to_owned());
    let mut request = bench.request(1, "surroundings");
    request.environment.insert("OMP_NUM_THREADS".to_owned(), "1".to_owned());
    let finished = Server::start(&config).run(request);
    let found = reply(&finished);
    let scratch = Value::from(text(&bench.path("scratch")));
    assert_eq!((&found["cwd"], &found["tempdir"]), (&scratch, &scratch));
    let environ = &found["environ"];
    assert_eq!((&environ["HOME"], &environ["TMPDIR"]), (&scratch, &scratch));
    assert_eq!((&environ["OMP_NUM_THREADS"], &environ["TRITON_INTERPRET"]), (&json!("1"), &json!("0")));
    assert_eq!(environ.get("TOKEN"), None);
    let inherited = found["c environ"].as_array().unwrap();
    assert!(inherited.contains(&json!("OMP_NUM_THREADS=1")) && !inherited.contains(&json!("TOKEN=secret")));
    assert_eq!(found["descriptors"], json!([0, 1, 2, 3]));
    assert_eq!(found["group"], json!(true));
    let path: Vec<&str> = found["path"].as_array().unwrap().iter().map(|entry| entry.as_str().unwrap()).collect();
    assert!(path.iter().all(|entry| entry.starts_with('/')), "{path:?}");
    assert_eq!(path[0], text(&bench.path("harness")));
}

#[test]
fn a_child_leaves_no_core_and_opens_a_bounded_number_of_files() {
    let finished = Bench::new(MODULE).run("limits");
    assert_eq!(*reply(&finished), json!({"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 4096}));
}

#[test]
fn what_the_system_counts_of_cpu_time_ends_a_child_long_after_the_server_would_and_with_the_reason() {
    let bench = Bench::new(MODULE);
    let mut request = bench.request(1, "cpu_limits");
    request.limits.cpu_ms = Some(11_500);
    assert_eq!(*reply(&bench.start().run(request)), json!([25, 27]));
}

#[test]
fn opened_and_probed_files_are_reported_relative_to_the_root() {
    let bench = Bench::new(MODULE);
    fs::create_dir(bench.path("kernels")).unwrap();
    fs::write(bench.path("kernels/__init__.py"), "").unwrap();
    fs::write(bench.path("kernels/one.py"), "from kernels import two").unwrap();
    fs::write(bench.path("kernels/two.py"), "").unwrap();
    fs::write(bench.path("data.bin"), "").unwrap();
    let mut config = bench.config();
    config.environment.insert("PYTHONPATH".to_owned(), text(bench.folder.path()));
    let server = Server::start(&config);
    // The second child finds compiled files, which somebody else wrote: the sources count all the same.
    for id in [1, 2] {
        if id == 2 {
            let mut compile = Command::new(environment::python());
            compile.args(["-m", "compileall", "-q"]).arg(bench.path("kernels"));
            assert!(compile.status().unwrap().success());
        }
        let mut request = bench.request(id, "imports");
        request.arguments = json!({"root": text(bench.folder.path())});
        request.watch_under = Some(text(bench.folder.path()));
        request.sandbox = None;
        let finished = server.run(request);
        reply(&finished);
        let expected = [
            "absent.json",
            "data.bin",
            "kernels/__init__.py",
            "kernels/one.py",
            "kernels/probed/__init__.py",
            "kernels/two.py",
        ];
        assert_eq!(finished.opened, expected);
        assert_eq!(bench.path("kernels/__pycache__").exists(), id == 2, "children write none");
    }
}

#[test]
fn a_fork_that_keeps_its_signals_in_cannot_end_the_child_that_forked_it() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    // Signals are scoped from the sixth version of Landlock on.
    if server.worker.hello().landlock.0 >= 6 {
        assert_eq!(*reply(&server.run(bench.request(1, "fork_that_signals"))), json!(3));
    }
}

#[test]
fn a_child_runs_on_its_cores_and_gives_way_and_the_next_has_all_again() {
    let bench = Bench::new(MODULE);
    let server = bench.start();
    let free = reply(&server.run(bench.request(1, "cores"))).clone();
    let all: Vec<usize> = serde_json::from_value(free["cores"].clone()).unwrap();
    let mut request = bench.request(2, "cores");
    // A core that is none does not count.
    (request.limits.cores, request.limits.nice) = (Some(vec![all[0], 100_000]), Some(10));
    assert_eq!(*reply(&server.run(request)), json!({"cores": [all[0]], "nice": 10}));
    let mut request = bench.request(3, "cores");
    request.limits.cores = Some(vec![100_000]);
    assert_eq!(*reply(&server.run(request)), free);
}

#[test]
fn what_is_put_over_the_pipe_to_the_server_hears_no_secret() {
    let bench = Bench::new(MODULE);
    fs::write(bench.path("data.bin"), "").unwrap();
    let mut request = bench.request(1, "overhears");
    request.arguments = json!({"root": text(bench.folder.path())});
    request.watch_under = Some(text(bench.folder.path()));
    request.sandbox = None;
    assert_eq!(bench.start().run(request).end, End::NoReply);
}

#[test]
fn opened_files_are_known_of_a_child_that_crashed() {
    let bench = Bench::new(MODULE);
    fs::write(bench.path("data.bin"), "").unwrap();
    let mut request = bench.request(1, "crashes_after_opening");
    request.arguments = json!({"root": text(bench.folder.path())});
    request.watch_under = Some(text(bench.folder.path()));
    request.sandbox = None;
    assert_eq!(bench.start().run(request).opened, ["data.bin"]);
}
