//! The process that compiles what an interpreter has installed without bytecode, beside the servers that import it (`t2t_harness.server.bytecode`).
//!
//! It does not know what is compiled, nor where to. It may be ended at any time: the next build continues.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use t2t_protocol::BYTECODE;

use super::WorkerConfig;
use super::process::variables;

/// What the interpreter runs; its arguments are the folder of the harness and the number of this process, which may be gone when it first looks.
const FILL: &str = "import sys; sys.path.insert(0, sys.argv[1]); from t2t_harness.server import bytecode; bytecode.fill(int(sys.argv[2]))";

/// How long after the first server's start it starts where cores are few: a build that is over by then, such as that of an edit, needs them itself.
const LATER: Duration = Duration::from_millis(250);

/// From how many cores on nobody is disturbed.
const MANY: usize = 5;

/// How long the process may take to end those that it has started.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// The process, once it runs and while it does. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Bytecode(Arc<Mutex<State>>);

#[derive(Debug)]
enum State {
    /// It is not started yet.
    Awaited,
    Runs(Child),
    /// It was ended, or never could be started.
    Over,
}

impl Bytecode {
    /// Starts compiling what the interpreter of `config` lacks, soon, if the configuration names a folder for it. If the process cannot be started, nothing is
    /// compiled.
    #[must_use]
    pub(crate) fn begin(config: &WorkerConfig) -> Self {
        let harness = config.harness.as_ref().filter(|_| config.environment.contains_key(BYTECODE));
        let command = harness.map(|harness| {
            let mut command = Command::new(&config.python);
            command
                .args(["-c", FILL])
                .arg(harness)
                .arg(std::process::id().to_string())
                .env_clear()
                .envs(variables(&config.environment))
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        });
        let state = Arc::new(Mutex::new(if command.is_some() { State::Awaited } else { State::Over }));
        if let Some(mut command) = command {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                if thread::available_parallelism().is_ok_and(|cores| cores.get() < MANY) {
                    thread::sleep(LATER);
                }
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*state, State::Awaited) {
                    *state = command.spawn().map_or(State::Over, State::Runs);
                }
            });
        }
        Self(state)
    }

    /// Ends the process, if it still runs or is to: nothing is compiled beside what is measured.
    pub(crate) fn stop(&self) {
        let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Over);
        let State::Runs(mut child) = state else { return };
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
