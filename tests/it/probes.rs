//! What kernel code can reach of t2t, of the other processes of its user, and of the user's files, in a real build: nothing. The same for root and for an ordinary user.
//!
//! `tests/soak.sh` runs these, and the other tests of the walls, once as root and once as an ordinary user. What a single child may is in `worker_walls` and
//! `worker_calls`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::cli::damage::is_root;
use crate::lite;
use crate::project::Project;
use crate::soak::Count;
use crate::worker_setup::Bench;

/// What nobody may see.
const SECRET: &str = "planted-secret";

/// A harness whose kernel tries what it can, and raises what came of it.
const PROBES: &str = r#"
import ctypes, errno, fcntl, os, resource, signal, socket

REFUSED = {errno.EPERM, errno.EACCES, errno.EROFS}
MOVED = {errno.EXDEV}
library = ctypes.CDLL(None, use_errno=True)


def above(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(") ")[2].split()[1])


def called(name, *arguments):
    if getattr(library, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def opened(path, flags):
    os.close(os.open(path, flags))


def told(path):
    with open(path, "rb") as file:
        file.read(1)


def leased(path, kind):
    with open(path) as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, kind)


def watched(path):
    called("inotify_add_watch", library.inotify_init(), path.encode(), 2)


def of_process(pid):
    """What one process may do to another of its user."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    yield "signal", lambda: os.kill(pid, 0)
    yield "let go on", lambda: os.kill(pid, signal.SIGCONT)
    yield "signal a thread", lambda: called("tgkill", pid, pid, 0)
    yield "signal a group", lambda: os.killpg(os.getpgid(pid), 0)
    yield "look up limits", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE)
    yield "set limits", lambda: resource.prlimit(pid, resource.RLIMIT_CORE, unlimited)
    yield "priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)
    yield "cores", lambda: os.sched_setaffinity(pid, {0})
    yield "scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
    yield "trace", lambda: called("ptrace", 0x4206, pid, 0, 0)
    yield "descriptor", lambda: os.pidfd_open(pid)
    for file in ("mem", "environ", "maps", "smaps", "auxv", "io", "stack", "syscall", "pagemap", "personality"):
        yield f"read {file}", lambda file=file: told(f"/proc/{pid}/{file}")
    for file in ("mem", "comm", "oom_score_adj", "clear_refs", "coredump_filter", "autogroup", "timerslack_ns"):
        yield f"write {file}", lambda file=file: opened(f"/proc/{pid}/{file}", os.O_WRONLY)
    yield "read a descriptor", lambda: told(f"/proc/{pid}/fd/0")
    yield "read about a descriptor", lambda: told(f"/proc/{pid}/fdinfo/0")
    yield "list map_files", lambda: os.listdir(f"/proc/{pid}/map_files")
    for link in ("cwd", "root", "exe", "fd/0", "ns/user"):
        yield f"follow {link}", lambda link=link: os.readlink(f"/proc/{pid}/{link}")


def of_file(path):
    """What its owner may do to a file that the child may not open."""
    yield "read", lambda: told(path)


def of_name(path):
    """What its owner may do to a file that the child may read, and to its name."""
    yield "write", lambda: opened(path, os.O_WRONLY)
    yield "append", lambda: opened(path, os.O_WRONLY | os.O_APPEND)
    yield "empty", lambda: opened(path, os.O_WRONLY | os.O_TRUNC)
    yield "cut", lambda: os.truncate(path, 0)
    yield "mode", lambda: os.chmod(path, 0o644)
    yield "times", lambda: os.utime(path, (1, 1))
    yield "owner", lambda: os.chown(path, os.getuid(), os.getgid())
    yield "attribute", lambda: os.setxattr(path, "user.wall", b"")
    yield "rename", lambda: os.rename(path, path + ".gone")
    yield "link beside it", lambda: os.link(path, path + ".second")
    yield "link here", lambda: os.link(path, "stolen")
    yield "move here", lambda: os.rename(path, "moved")
    yield "remove", lambda: os.unlink(path)
    yield "put there", lambda: os.rename("own", path)
    yield "hold up who writes", lambda: leased(path, fcntl.F_RDLCK)
    yield "watch", lambda: watched(path)


def of_folder(path):
    """What its owner may do to a folder."""
    yield "new file", lambda: opened(f"{path}/t2t-wall-{os.getpid()}", os.O_CREAT | os.O_WRONLY)
    yield "unnamed file", lambda: opened(path, os.O_TMPFILE | os.O_WRONLY)
    yield "new folder", lambda: os.mkdir(f"{path}/t2t-wall-{os.getpid()}-folder")
    yield "mode", lambda: os.chmod(path, 0o755)
    yield "times", lambda: os.utime(path, (1, 1))
    yield "watch", lambda: watched(path)


def secrets():
    """The places of the secret that this process can find."""
    if any("SECRET" in value for value in os.environ.values()):
        yield "own environment"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if b"SECRET" in file.read():
                    yield f"environment of {pid}"
        except OSError:
            pass


def tried(probe):
    try:
        probe()
        return "done"
    except OSError as error:
        return "refused" if error.errno in REFUSED | MOVED else errno.errorcode[error.errno]


def probed():
    open("own", "w").close()
    server = os.getppid()
    found = {}
    for who, pid in {"server": server, "t2t": above(server), "bystander": BYSTANDER}.items():
        found |= {f"{what} of {who}": tried(probe) for what, probe in of_process(pid)}
    for path in CLOSED:
        found |= {f"{what} {path}": tried(probe) for what, probe in of_file(path)}
    for path in CLOSED + READ:
        found |= {f"{what} {path}": tried(probe) for what, probe in of_name(path)}
    for path in FOLDERS:
        found |= {f"{what} {path}": tried(probe) for what, probe in of_folder(path)}
    found["list home"] = tried(lambda: os.listdir(HOME))
    found["another user"] = "refused" if tried(lambda: os.setuid(OTHER)) in ("refused", "EINVAL") else "done"
    found["socket of the user"] = tried(lambda: socket.socket(socket.AF_UNIX).connect(SOCKET))
    found["secrets"] = ", ".join(secrets()) or "refused"
    return found


def run(arguments):
    found = probed()
    wrong = "; ".join(f"{what}: {end}" for what, end in found.items() if end != "refused")
    raise RuntimeError(f"{len(found)} probes, let through: [{wrong}].")
"#;

/// A process of the same user that has nothing to do with t2t.
struct Bystander(Child);

impl Bystander {
    fn start() -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("1000").env("OTHER_TOKEN", SECRET).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Begins to count probes that are refused, by who makes them.
pub fn refusals() -> Count {
    let kind = match (has_namespaces(), is_root()) {
        (false, _) => "probes without namespaces",
        (true, true) => "probes as root",
        (true, false) => "probes as an ordinary user",
    };
    Count::of(kind, "refused")
}

/// Says whether this kernel gives children namespaces of their own.
fn has_namespaces() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| Bench::new("").start().worker.hello().namespaces)
}

/// Returns the words of a harness that tries everything on this project and this process.
fn harness(project: &Project, bystander: &Bystander) -> String {
    let place = |path: &str| project.path(path).to_str().unwrap().to_owned();
    let closed = ["../home/secret", "../home/open", "cache/journal", "ops.yaml", "logs/softmax_log.md"].map(place);
    let read = ["kernels/softmax/v2_tiling.py"].map(place);
    let folders = ["../home", ".", "kernels", "kernels/softmax", "cache", "logs"].map(place);
    let folders = [&folders[..], &["/tmp".to_owned(), "/dev/shm".to_owned()]].concat();
    let words = [
        ("BYSTANDER", bystander.0.id().to_string()),
        ("CLOSED", format!("{closed:?}")),
        ("READ", format!("{read:?}")),
        ("FOLDERS", format!("{folders:?}")),
        ("HOME", format!("{:?}", place("../home"))),
        ("SOCKET", format!("{:?}", place("../home/socket"))),
        // A user that it is not: root for an ordinary one.
        ("OTHER", if is_root() { "65534" } else { "0" }.to_owned()),
    ];
    let values = words.map(|(name, value)| format!("{name} = {value}")).join("\n");
    format!("{values}\n{}", PROBES.replace("SECRET", SECRET))
}

#[test]
fn a_kernel_reaches_nothing_of_t2t_nor_of_its_user() {
    let count = refusals();
    let project = Project::new();
    lite::prepare(&project);
    let run = |arguments: &str| {
        let mut command = lite::command(&project, arguments);
        command.env("HOME", project.path("../home")).env("T2T_REMOTE_TOKEN", SECRET);
        project.run(&mut command)
    };
    run("build").exits(0);
    project.write("../home/secret", "text");
    project.write("../home/open", "text");
    fs::set_permissions(project.path("../home/secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let before = facts(&project.path("../home/secret"));
    let _listens = std::os::unix::net::UnixListener::bind(project.path("../home/socket")).unwrap();
    let bystander = Bystander::start();
    project.write("../harness/t2t_harness/phases/candidate.py", harness(&project, &bystander));
    let told = run("build --force softmax/v2_tiling:check").exits(3).stderr;
    let (number, rest) = told.split_once(" probes, let through: [").unwrap_or_else(|| panic!("{told}"));
    let let_through = rest.split_once("].").unwrap_or_else(|| panic!("{told}")).0;
    let number: usize = number.rsplit(' ').next().unwrap().parse().unwrap();
    if has_namespaces() {
        assert_eq!(let_through, "", "{told}");
        assert_eq!(facts(&project.path("../home/secret")), before);
        count.add(number);
    } else {
        // What Landlock has no right for, and a filter cannot tell by the file.
        let ends: Vec<&str> = let_through.split("; ").collect();
        let is_known = |end: &&str| end.starts_with("mode ") || end.starts_with("times ");
        let others: Vec<&&str> = ends.iter().filter(|end| !is_known(end)).collect();
        assert!(others.is_empty(), "{others:?}");
        count.add(number - ends.len());
    }
}

/// Returns what `stat` tells of a file that its owner can change.
fn facts(path: &Path) -> (u32, i64, u64) {
    let facts = fs::metadata(path).unwrap();
    (facts.mode(), facts.mtime(), facts.nlink())
}
