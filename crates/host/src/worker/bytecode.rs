//! The process that compiles what an interpreter has installed without bytecode, beside the servers that import it (`t2t_harness.server.bytecode`).
//!
//! It does not know what is compiled, nor where to. It may be ended at any time: the next build continues.

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use t2t_protocol::BYTECODE;

use super::WorkerConfig;
use super::process::variables;

/// What the interpreter runs; its arguments are the folder of the harness and the number of this process, which may be gone when it first looks.
const FILL: &str = "import sys; sys.path.insert(0, sys.argv[1]); from t2t_harness.server import bytecode; bytecode.fill(int(sys.argv[2]))";

/// How long the process may take to end those that it has started.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// The process, while it runs. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Bytecode(Mutex<Option<Child>>);

impl Bytecode {
    /// Starts compiling what the interpreter of `config` lacks, if the configuration names a folder for it. If the process cannot be started, nothing is
    /// compiled.
    #[must_use]
    pub(crate) fn begin(config: &WorkerConfig) -> Self {
        let harness = config.harness.as_ref().filter(|_| config.environment.contains_key(BYTECODE));
        let child = harness.and_then(|harness| {
            Command::new(&config.python)
                .args(["-c", FILL])
                .arg(harness)
                .arg(std::process::id().to_string())
                .env_clear()
                .envs(variables(&config.environment))
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()
        });
        Self(Mutex::new(child))
    }

    /// Ends the process, if it still runs: nothing is compiled beside what is measured.
    pub(crate) fn stop(&self) {
        let Some(mut child) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // It is not reaped yet, so the number is still its own.
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).ok();
        let deadline = Instant::now() + PATIENCE;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        child.kill().ok();
        child.wait().ok();
    }
}

impl Drop for Bytecode {
    fn drop(&mut self) {
        self.stop();
    }
}
