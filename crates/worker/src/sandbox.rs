//! The walls around a child: Landlock for files, TCP, signals and abstract sockets; seccomp for what Landlock does not see
//! (`calls.rs`).
//!
//! It does not know which files an action needs. It is an allow-list: what is not granted is refused. Both layers are
//! inherited by whatever the child starts, ptxas and the C compiler among them. Known gaps: names and times of files
//! can be seen and changed by their owner (`stat`, `chmod`, `utime`), and with a device, Unix sockets that have a path
//! can be connected to; and Landlock holds in the thread that calls it and those it starts, not in those that a device's
//! driver started while a child got ready (seccomp holds in all).

use std::{
    env,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, make_bitflags, path_beneath_rules,
};
use nix::{
    errno::Errno,
    unistd::{AccessFlags, access, geteuid},
};
use pyo3::prelude::*;
use t2t_protocol::{BYTECODE, Landlock, Sandbox};

use crate::{
    apart,
    calls::{self, Sockets},
};

/// The newest ABI that this was tried on. Older kernels enforce what they know.
const KNOWN: ABI = ABI::V7;

/// Read and executed: libraries, compilers and their data. Of /etc only what loaders, locales and `getpwuid` read.
const SYSTEM: [&str; 19] = [
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/opt",
    "/nix/store",
    "/proc",
    "/sys",
    "/etc/alternatives",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
];
/// Read and written, as every program expects.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The folder below which CUDA names its threads; refused, every CUDA call fails with error 304.
const TASKS: &str = "/proc/self/task";

/// Asks the kernel for its Landlock ABI.
pub(crate) fn landlock() -> Landlock {
    const VERSION: libc::c_ulong = 1;
    let (no_attribute, no_size): (*const libc::c_void, libc::size_t) = (std::ptr::null(), 0);
    // SAFETY: with this flag the call takes no attribute and only returns a number.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, no_attribute, no_size, VERSION) };
    Landlock(u32::try_from(abi).unwrap_or(0))
}

/// The folders that any child needs to run Python at all. Known to the server before it forks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interpreter {
    /// The installation, and the virtual environment over it.
    pub prefixes: Vec<PathBuf>,
    /// The rest of `sys.path`, the folders of `LD_LIBRARY_PATH`, CUDA's toolkit, and the folder of kept bytecode.
    pub paths: Vec<PathBuf>,
    /// The folder of the harness package; it is on `sys.path`.
    pub harness: Option<PathBuf>,
}

impl Interpreter {
    /// Asks this process's own.
    pub(crate) fn of(py: Python<'_>, harness: Option<PathBuf>) -> PyResult<Self> {
        let sys = py.import("sys")?;
        let prefix = |name| sys.getattr(name)?.extract::<PathBuf>();
        let prefixes = vec![prefix("prefix")?, prefix("base_prefix")?, prefix("exec_prefix")?];
        let mut paths: Vec<PathBuf> = sys.getattr("path")?.extract()?;
        paths.extend(env::split_paths(&env::var_os("LD_LIBRARY_PATH").unwrap_or_default()));
        // nvcc and its headers, where they are not in the environment.
        paths.extend(["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from));
        paths.extend(env::var_os(BYTECODE).map(PathBuf::from));
        paths.retain(|path| path.is_absolute());
        Ok(Self { prefixes, paths, harness })
    }

    /// Lists what may be read. A folder on `sys.path` that holds the scratch folder also holds the workspace. It is left out, since granting it would expose
    /// the cache.
    fn readable<'a>(&'a self, scratch: &'a Path) -> impl Iterator<Item = &'a Path> {
        let paths = self.paths.iter().filter(move |path| !scratch.starts_with(path));
        self.prefixes.iter().chain(paths).map(PathBuf::as_path)
    }
}

/// Makes all files read-only but those that may be written, where the child has namespaces of its own.
pub(crate) fn keep_writing_in(sandbox: &Sandbox, scratch: &Path, other: Option<&Path>) -> Result<(), String> {
    let mut folders: Vec<&Path> = sandbox.write.iter().map(Path::new).filter(|path| path.exists()).collect();
    for folder in [Some(scratch), other].into_iter().flatten() {
        // A folder inside another writable one gets no mount of its own: files could not be renamed from one to the other.
        if !folders.iter().any(|above| folder.starts_with(above)) {
            folders.push(folder);
        }
    }
    apart::keep_writing_in(&folders, sandbox.device).map(drop)
}

/// Puts up the walls, for good.
pub(crate) fn enter(sandbox: &Sandbox, interpreter: &Interpreter, scratch: &Path) -> Result<(), String> {
    expect_readable(sandbox)?;
    restrict_files(sandbox, interpreter, scratch).map_err(|error| format!("landlock: {error}"))?;
    calls::refuse(if sandbox.device { Sockets::Unix } else { Sockets::None })
}

/// Takes from this process, and from its future children, the power to signal any other: a process forked inside the walls shares them with its parent. Nothing
/// happens if the kernel has no such wall.
pub(crate) fn keep_signals_in() {
    let scoped = Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::Signal);
    scoped.and_then(Ruleset::create).and_then(RulesetCreated::restrict_self).ok();
}

/// Root without its capabilities may lack rights that the kernels' owner has. A file that it cannot read says nothing about the kernels, so that is the
/// machine's fault.
fn expect_readable(sandbox: &Sandbox) -> Result<(), String> {
    let refused = |path: &&String| access(path.as_str(), AccessFlags::R_OK) == Err(Errno::EACCES);
    match sandbox.read.iter().find(refused).filter(|_| geteuid().is_root()) {
        Some(path) => Err(format!(
            "`{path}` is not root's, and children of root have no power over others' files: let others read it"
        )),
        None => Ok(()),
    }
}

fn restrict_files(sandbox: &Sandbox, interpreter: &Interpreter, scratch: &Path) -> Result<(), RulesetError> {
    let all = AccessFs::from_all(KNOWN);
    let run = AccessFs::from_read(KNOWN);
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let device: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev});
    // The driver opens these names with `O_TRUNC`.
    let task = read | AccessFs::WriteFile | AccessFs::Truncate;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, run))?
        .add_rules(path_beneath_rules(interpreter.readable(scratch), run))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(&sandbox.read, read))?
        .add_rules(path_beneath_rules(&sandbox.write, all))?
        .add_rules(path_beneath_rules([scratch], all))?;
    let ruleset = if sandbox.device {
        ruleset.add_rules(path_beneath_rules(cuda_devices(), device))?.add_rules(path_beneath_rules([TASKS], task))?
    } else {
        ruleset
    };
    ruleset.restrict_self().map(drop)
}

fn cuda_devices() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("nvidia"));
    names.map(|entry| entry.path()).collect()
}
