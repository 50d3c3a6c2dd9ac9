//! Which system calls a child is refused, and which it must have: no power over other processes, none that outlives it, none that only root has.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt};

use serde_json::{Value, json};
use t2t_protocol::{Sandbox, WarmChild};

use crate::worker::probes::refusals;
use crate::worker_setup::{Bench, reply, text};

const MODULE: &str = r#"
import ctypes, errno, fcntl, mmap, os, platform, queue, resource, shutil, signal, stat, subprocess, sys, tempfile, threading

# Names that the C library has no function for, by machine.
NUMBERS = {
    "x86_64": {"add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251, "perf_event_open": 298, "pivot_root": 155,
               "kcmp": 312, "userfaultfd": 323, "bpf": 321, "sched_setattr": 314, "migrate_pages": 256, "move_pages": 279, "clone": 56},
    "aarch64": {"add_key": 217, "request_key": 218, "keyctl": 219, "ioprio_set": 30, "perf_event_open": 241, "pivot_root": 41,
                "kcmp": 272, "userfaultfd": 282, "bpf": 280, "sched_setattr": 274, "migrate_pages": 238, "move_pages": 239, "clone": 220},
}[platform.machine()] | {
    "pidfd_send_signal": 424, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "fspick": 433, "pidfd_open": 434,
    "clone3": 435, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "fchmodat2": 452, "setxattrat": 463,
}
NAMESPACES = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000,
              "network": 0x40000000}

library = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    ctypes.set_errno(0)
    found = library.syscall(NUMBERS[name], *arguments) if name in NUMBERS else getattr(library, name)(*arguments)
    return "done" if found >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")

def attempt(action):
    try:
        action()
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]

def born(flags):
    ctypes.set_errno(0)
    process = library.syscall(NUMBERS["clone"], flags | signal.SIGCHLD, 0, 0, 0, 0)
    if process == 0:
        os._exit(0)
    if process > 0:
        os.waitpid(process, 0)
    return "done" if process > 0 else errno.errorcode[ctypes.get_errno()]

def refused(arguments):
    server, fd = os.getppid(), os.open("file", os.O_CREAT | os.O_RDWR)
    buffer = ctypes.create_string_buffer(256)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    found = {
        "prlimit of the server": attempt(lambda: resource.prlimit(server, resource.RLIMIT_CORE, unlimited)),
        "limits of the server": attempt(lambda: resource.prlimit(server, resource.RLIMIT_CORE)),
        "priority of the server": attempt(lambda: os.setpriority(os.PRIO_PROCESS, server, os.getpriority(os.PRIO_PROCESS, server))),
        "priority of a group": attempt(lambda: os.setpriority(os.PRIO_PGRP, 0, 0)),
        "priority of the user": attempt(lambda: os.setpriority(os.PRIO_USER, 0, 0)),
        "scheduler": attempt(lambda: os.sched_setscheduler(server, os.SCHED_OTHER, os.sched_param(0))),
        "own scheduler": attempt(lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))),
        "scheduling parameter": attempt(lambda: os.sched_setparam(server, os.sched_param(0))),
        "scheduling attributes": call("sched_setattr", server, buffer, 0),
        "cores of the server": attempt(lambda: os.sched_setaffinity(server, os.sched_getaffinity(server))),
        "input and output priority": call("ioprio_set", 1, server, 0),
        "read memory": call("process_vm_readv", server, buffer, 0, buffer, 0, 0),
        "write memory": call("process_vm_writev", server, buffer, 0, buffer, 0, 0),
        "trace": call("ptrace", 16, server, 0, 0),
        "compare": call("kcmp", os.getpid(), os.getpid(), 0, 0, 0),
        "move pages": call("migrate_pages", server, 64, buffer, buffer),
        "find pages": call("move_pages", server, 0, None, None, None, 0),
        "advise": call("process_madvise", -1, None, 0, 0, 0),
        "unshare": call("unshare", 0),
        "enter": call("setns", fd, 0),
        "mount": call("mount", b"none", b".", b"tmpfs", 0, None),
        "unmount": call("umount2", b".", 0),
        "pivot": call("pivot_root", b".", b"."),
        "root": attempt(lambda: os.chroot(".")),
        "node": attempt(lambda: os.mknod("node", stat.S_IFREG | 0o600)),
        "pipe with a name": attempt(lambda: os.mkfifo("pipe")),
        "link": attempt(lambda: os.symlink("file", "link")),
        "shared memory": call("shmget", 0, 4096, 0o1600),
        "shared memory of others": call("shmctl", -1, 2, buffer),
        "attach": "done" if library.shmat(-1, None, 0) != -1 else errno.errorcode[ctypes.get_errno()],
        "message queue": call("msgget", 0, 0o1600),
        "semaphores": call("semget", 0, 1, 0o1600),
        "posix queue": call("mq_open", b"/t2t-wall", os.O_CREAT | os.O_RDWR, 0o600, None),
        "owner": attempt(lambda: os.chown("file", os.getuid(), os.getgid())),
        "owner of a descriptor": attempt(lambda: os.fchown(fd, os.getuid(), os.getgid())),
        "owner of a link": attempt(lambda: os.lchown("file", os.getuid(), os.getgid())),
        "attribute": attempt(lambda: os.setxattr("file", "user.wall", b"")),
        "attribute of a descriptor": attempt(lambda: os.setxattr(fd, "user.wall", b"")),
        "attribute gone": attempt(lambda: os.removexattr("file", "user.wall")),
        "set-user-ID": attempt(lambda: os.chmod("file", 0o4755)),
        "set-user-ID of a descriptor": attempt(lambda: os.fchmod(fd, 0o4755)),
        "performance": call("perf_event_open", buffer, 0, -1, -1, 0),
        "handle": call("open_by_handle_at", -1, buffer, 0),
        "lease": attempt(lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)),
        "notes of a folder": attempt(lambda: fcntl.fcntl(os.open(".", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE)),
        "notes of a file system": call("fanotify_init", 0, 0),
    }
    for name in ("pidfd_open", "pidfd_getfd", "pidfd_send_signal", "keyctl", "add_key", "request_key", "bpf", "userfaultfd", "open_tree",
                 "move_mount", "fsopen", "fsmount", "fspick", "mount_setattr", "setxattrat"):
        found[name] = call(name, -1, None, 0, 0, 0)
    for name, flag in NAMESPACES.items():
        found["clone into another " + name] = born(flag)
    return found

def outside(arguments):
    """What its owner may do to a file anywhere, whatever Landlock says."""
    path = arguments["path"]
    return {
        "mode": attempt(lambda: os.chmod(path, 0o600)),
        "times": attempt(lambda: os.utime(path, (1, 1))),
        "mode of a folder": attempt(lambda: os.chmod(os.path.dirname(path), 0o700)),
        "attribute": attempt(lambda: os.setxattr(path, "user.wall", b"")),
        "own mode": attempt(lambda: os.chmod(".", 0o700)),
        "own file": attempt(lambda: open("written", "w").close()),
    }

def in_a_thread(arguments):
    """What a thread may do that was there before the walls."""
    orders.put(arguments)
    return found.get(timeout=60)

orders, found = queue.SimpleQueue(), queue.SimpleQueue()

def threaded():
    threading.Thread(target=lambda: found.put(outside(orders.get())), daemon=True).start()

def without_clone3(arguments):
    return call("clone3", None, 0)

def had(arguments):
    """What honest code does."""
    def threads():
        started = [threading.Thread(target=os.getpid) for _ in range(4)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    def forks():
        process = os.fork()
        if process == 0:
            # Its own number is none that the walls know; 0 is.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os._exit(0)
        assert os.waitpid(process, 0)[1] == 0
    def in_memory():
        os.close(os.memfd_create("wall"))
        mmap.mmap(-1, 4096).close()
    def copies():
        with open("one", "w") as file:
            file.write("x")
        shutil.copy2("one", "two")
        os.chmod("two", 0o755)
        os.utime("two", (1, 1))
    def limits():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        assert resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE) == (64, 64)
    return {
        "cores": attempt(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
        "own cores": attempt(lambda: os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))),
        "nice": attempt(lambda: os.nice(1)),
        "threads": attempt(threads),
        "forks": attempt(forks),
        "a program": attempt(lambda: subprocess.run(["true"], check=True)),
        "memory": attempt(in_memory),
        "copies": attempt(copies),
        "temporary folder": attempt(lambda: tempfile.TemporaryDirectory().cleanup()),
        "limits": attempt(limits),
    }

def powers(arguments):
    def of(path):
        with open(path) as file:
            fields = dict(line.rstrip("\n").split(":\t") for line in file if line.startswith(("Cap", "NoNewPrivs", "Seccomp:")))
        return {name: int(value, 16) for name, value in fields.items()}
    program = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True)
    with open("status", "w") as file:
        file.write(program.stdout)
    return {"own": of("/proc/self/status"), "program": of("status"), "is_root": os.getuid() == 0}
"#;

fn asked(function: &str, device: bool) -> Value {
    let bench = Bench::new(MODULE);
    let mut request = bench.request(1, function);
    request.sandbox = Some(Sandbox { device, ..Sandbox::default() });
    reply(&bench.start().run(request)).clone()
}

#[test]
fn a_child_has_no_power_over_other_processes_and_makes_nothing_that_outlives_it() {
    let count = refusals();
    for device in [false, true] {
        let found = asked("refused", device);
        let found = found.as_object().unwrap();
        let let_through: Vec<_> = found.iter().filter(|(_, end)| **end != "EPERM").collect();
        assert!(let_through.is_empty(), "on a device: {device}; {let_through:?}");
        assert!(found.len() > 60, "{}", found.len());
        count.add(found.len());
    }
}

#[test]
fn a_child_can_do_what_honest_code_does() {
    for device in [false, true] {
        let found = asked("had", device);
        assert!(found.as_object().unwrap().values().all(|end| end == "done"), "{found:#}");
    }
}

/// The C library starts threads by the older call then, whose flags the walls can read.
#[test]
fn what_hides_its_flags_from_the_walls_is_no_call() {
    assert_eq!(asked("without_clone3", false), json!("ENOSYS"));
}

#[test]
fn a_child_has_no_capabilities_and_what_it_starts_gets_none() {
    let found = asked("powers", false);
    for process in ["own", "program"] {
        let found = &found[process];
        assert_eq!((&found["NoNewPrivs"], &found["Seccomp"]), (&json!(1), &json!(2)), "{found}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(found[set], json!(0), "{process} {set}");
        }
    }
    // Who has no capability may not take one from those that programs could get; they get none all the same.
    if found["is_root"] == true {
        assert_eq!((&found["own"]["CapBnd"], &found["program"]["CapBnd"]), (&json!(0), &json!(0)));
    }
}

/// Landlock knows no right for modes and times: where the kernel gives no namespaces they are their owner's to change.
#[test]
fn what_is_outside_of_a_childs_folders_keeps_its_mode_and_times_by_namespaces() {
    let bench = Bench::new(MODULE);
    fs::write(bench.path("harness/file"), "text").unwrap();
    let before = fs::metadata(bench.path("harness/file")).unwrap();
    let server = bench.start();
    let is_apart = server.worker.hello().namespaces;
    let ready = WarmChild {
        key: "threaded".to_owned(),
        function: "work:threaded".to_owned(),
        arguments: Value::Null,
        scratch: None,
        environment: BTreeMap::new(),
        cores: None,
        needs: None,
    };
    server.worker.prepare(ready).unwrap();
    for (id, function, device) in [(1, "outside", false), (2, "outside", true), (3, "in_a_thread", true)] {
        let mut request = bench.request(id, function);
        request.arguments = json!({"path": text(&bench.path("harness/file"))});
        request.sandbox = Some(Sandbox { device, ..Sandbox::default() });
        request.reserve = (function == "in_a_thread").then(|| "threaded".to_owned());
        let of_owner = if is_apart { "EROFS" } else { "done" };
        let expected = json!({
            "mode": of_owner,
            "times": of_owner,
            "mode of a folder": of_owner,
            "attribute": "EPERM",
            "own mode": "done",
            "own file": "done",
        });
        assert_eq!(*reply(&server.run(request)), expected, "{function} on a device: {device}");
    }
    let after = fs::metadata(bench.path("harness/file")).unwrap();
    assert_eq!((before.mode(), before.mtime()) == (after.mode(), after.mtime()), is_apart);
}
