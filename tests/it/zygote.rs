//! An interpreter for tests whose fork servers are forked from processes that have imported torch and Triton: most of what a small build takes are those imports.
//!
//! For tests of what comes of kernels. How a server starts, what it is started with and what is left of it is tested with the interpreter itself.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use t2t_protocol::SHARED;

use crate::environment;
use crate::project::program;

/// What servers for compiled kernels import beside [`SHARED`], and what takes long of what they import later.
const OF_COMPILED: [&str; 3] = ["triton", "triton.experimental.gluon", "torch._dynamo"];

/// The processes, and the program that stands for their interpreter.
struct Zygotes {
    /// They end, and remove their folder, with this process: their standard input is closed then.
    _processes: [Child; 2],
    python: PathBuf,
}

/// Returns a program that is used as the tests' interpreter is.
pub fn python() -> PathBuf {
    static ZYGOTES: OnceLock<Zygotes> = OnceLock::new();
    ZYGOTES.get_or_init(|| start(&environment::python())).python.clone()
}

fn start(python: &Path) -> Zygotes {
    let folder = environment::folder().keep();
    let sockets = ["plain", "compiled"].map(|name| folder.join(name));
    let mut processes = [zygote(python, &sockets[0], &[]), zygote(python, &sockets[1], &OF_COMPILED)];
    for process in &mut processes {
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n", "torch and Triton cannot be imported");
    }
    let base = Command::new(python).args(["-c", "import sys; print(sys._base_executable)"]).output().unwrap();
    let base = String::from_utf8(base.stdout).unwrap();
    let mut text = std::fs::read_to_string(source("launcher.py")).unwrap();
    for (name, path) in [("{real}", python), ("{plain}", &sockets[0]), ("{compiled}", &sockets[1])] {
        text = text.replace(name, path.to_str().unwrap());
    }
    let launcher = folder.join("bin/python");
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    program(&launcher, &format!("#!{} -IS\n{text}", base.trim()));
    Zygotes { _processes: processes, python: launcher }
}

/// Starts a process that imports these modules beside [`SHARED`], with the variables that a server for compiled kernels has.
fn zygote(python: &Path, socket: &Path, modules: &[&str]) -> Child {
    let mut command = Command::new(python);
    command.arg(source("zygote.py")).arg(socket).args(SHARED).args(modules).current_dir("/");
    command.env_clear().env("PATH", "/usr/bin:/bin").env("PYTHONHASHSEED", "0").env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("OPENBLAS_NUM_THREADS", "1").env("TRITON_INTERPRET", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn source(name: &str) -> PathBuf {
    environment::root().join("tests/it/zygote").join(name)
}
