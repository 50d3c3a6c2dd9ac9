//! The Python environment of the tests: the repository's `.venv` with the worker of this source, made once a run.
//!
//! Where it cannot be made the tests fail with the command to run: nothing is skipped. `T2T_TEST_PYTHON` names another interpreter, for
//! machines that cannot install.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::statvfs::{FsFlags, statvfs};
use tempfile::TempDir;

/// A folder in memory, on Linux.
const MEMORY: &str = "/dev/shm";

/// The room in bytes that it must have.
const ROOM: u64 = 4 << 30;

/// Makes a folder that is gone when it is dropped.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(temporary()).unwrap()
}

/// Returns where temporary folders are made: in memory if there is room and programs may run there, unless `TMPDIR` says where. Tests make and remove many small files, and
/// ext4, where it looks for a free inode, passes over each one that was freed in the last minutes.
pub fn temporary() -> PathBuf {
    let fits = || {
        statvfs(MEMORY).is_ok_and(|found| {
            let room = found.blocks_available().saturating_mul(found.fragment_size());
            room >= ROOM && !found.flags().contains(FsFlags::ST_NOEXEC)
        })
    };
    if env::var_os("TMPDIR").is_none() && fits() { PathBuf::from(MEMORY) } else { env::temp_dir() }
}

/// The repository, or what a machine that only runs carried tests names with `T2T_ROOT`.
pub fn root() -> PathBuf {
    env::var_os("T2T_ROOT").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Fails, with what helps, where other users cannot enter the repository's folder, as one below root's home: tests that run as root start programs of it as another user.
#[track_caller]
pub fn expect_open_to_others() {
    let root = root().canonicalize().unwrap();
    let is_closed = |folder: &&Path| fs::metadata(folder).unwrap().mode() & 0o001 == 0;
    if let Some(closed) = root.ancestors().find(is_closed) {
        panic!(
            "other users cannot enter {}, and this test runs as one of them: run `chmod o+x` on it, or clone elsewhere",
            closed.display()
        );
    }
}

/// The t2t binary under test; `T2T_BIN` names a carried one.
pub fn binary() -> PathBuf {
    env::var_os("T2T_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_t2t")), PathBuf::from)
}

/// The interpreter that has torch, triton, pytest and `t2t_worker`.
pub fn python() -> PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| env::var_os("T2T_TEST_PYTHON").map_or_else(made, PathBuf::from)).clone()
}

/// The folder in which all tests keep bytecode: what one compiled, the next finds.
pub fn bytecode() -> PathBuf {
    root().join("target/bytecode")
}

/// Brings `.venv` up to date with `uv sync --group dev`, one process at a time.
fn made() -> PathBuf {
    let root = root();
    let folder = root.join("target");
    fs::create_dir_all(&folder).expect("the build folder can be made");
    let lock = File::create(folder.join("environment.lock")).expect("the build folder is writable");
    lock.lock().expect("the lock can be waited for");
    let synced = sync(&root).output();
    let advice = "run `uv sync --group dev` in the repository (`pip install uv` installs uv)";
    let output = synced.unwrap_or_else(|error| panic!("cannot start `uv`: {error}\n{advice}"));
    assert!(output.status.success(), "{}\n{advice}", String::from_utf8_lossy(&output.stderr));
    root.join(".venv/bin/python")
}

/// The environment without t2t itself, whose binary cargo has built already. Cargo's own variables must not reach the inner build.
fn sync(root: &Path) -> Command {
    let mut command = Command::new("uv");
    command.args(["sync", "--inexact", "--no-install-project", "--group", "dev"]).current_dir(root);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy().into_owned();
        let of_cargo = text.starts_with("CARGO") && text != "CARGO_HOME";
        let of_rustc = ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"].contains(&text.as_str());
        if of_cargo || of_rustc || text == "VIRTUAL_ENV" {
            command.env_remove(&name);
        }
    }
    command.env("CARGO_TARGET_DIR", root.join("target/worker"));
    command
}
