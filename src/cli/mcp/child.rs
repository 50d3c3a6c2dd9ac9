//! A run of this program as a child, in a process group of its own: its output while it runs, and its end when the call is cancelled.
//!
//! It does not know what commands do.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use t2t_spec::remote::Mode;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::cli::error::CliError;
use crate::cli::{Common, context};
use crate::session::DeviceChoice;

/// How long a child that is told to end may take, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How many lines of a child's messages are kept, the last ones.
const MESSAGES: usize = 200;

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum Fault {
    /// The client no longer wants it.
    Cancelled,
    /// Why, for the agent.
    Told(String),
}

impl Fault {
    /// Returns a fault with a remedy on its own line.
    pub(super) fn hinted(message: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        Self::Told(format!("error: {}\nhint: {}", message.as_ref(), hint.as_ref()))
    }
}

/// This program, the workspace it works in, and the options that each of its children gets.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    /// The workspace.
    pub(super) root: PathBuf,
    options: Vec<OsString>,
    running: Running,
}

/// How a child ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code; None where a signal ended it.
    pub(super) code: Option<i32>,
    /// The last lines that it wrote to standard error.
    pub(super) said: String,
}

/// What reads a child's standard output, line by line.
pub(super) trait Lines: Send {
    /// Takes a line, with its end.
    fn take(&mut self, line: &[u8]) -> impl Future<Output = ()> + Send;
}

impl Lines for Vec<u8> {
    async fn take(&mut self, line: &[u8]) {
        self.extend_from_slice(line);
    }
}

impl Program {
    /// Returns the program that runs now, in the workspace at `root`, with the options of every command that it was given itself.
    pub(super) fn new(common: &Common, root: PathBuf) -> Result<Self, CliError> {
        let path = env::current_exe().context("cannot tell where t2t lies")?;
        Ok(Self { path, root, options: passed_on(common), running: Running::default() })
    }

    /// Returns the count of children that run.
    pub(super) fn running(&self) -> Running {
        self.running.clone()
    }

    /// Runs a command to its end and returns what it printed. Fails with what it said where its exit code is none of `good`.
    pub(super) async fn print(
        &self,
        command: &[&str],
        names: &[&str],
        good: &[i32],
        cancelled: &CancellationToken,
    ) -> Result<(String, Ended), Fault> {
        let mut printed = Vec::new();
        let ended = self.run(command, names, &mut printed, cancelled).await?;
        if ended.code.is_none_or(|code| !good.contains(&code)) {
            return Err(ended.fault());
        }
        Ok((String::from_utf8_lossy(&printed).into_owned(), ended))
    }

    /// Runs a command, whose positional arguments are `names`, and hands each line of its standard output on.
    pub(super) async fn run(
        &self,
        command: &[&str],
        names: &[&str],
        lines: &mut impl Lines,
        cancelled: &CancellationToken,
    ) -> Result<Ended, Fault> {
        if cancelled.is_cancelled() {
            return Err(Fault::Cancelled);
        }
        let mut started = self.command(command, names);
        let mut child = started.spawn().map_err(|error| Fault::Told(format!("error: cannot start t2t: {error}")))?;
        let _counted = self.running.count();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let mut said = Last::default();
        let reading = async {
            let ((), (), status) = tokio::join!(each(out, lines), each(err, &mut said), child.wait());
            status
        };
        let ended = tokio::select! {
            status = reading => Some(status),
            () = cancelled.cancelled() => None,
        };
        match ended {
            Some(Ok(status)) => Ok(Ended { code: status.code(), said: said.text() }),
            Some(Err(error)) => Err(Fault::Told(format!("error: cannot wait for t2t: {error}"))),
            None => {
                end(&mut child).await;
                Err(Fault::Cancelled)
            }
        }
    }

    fn command(&self, command: &[&str], names: &[&str]) -> Command {
        let mut child = Command::new(&self.path);
        child.args(command).args(&self.options);
        child.arg("--parent").arg(context::process().to_string());
        // What follows is no option, whatever it looks like.
        child.arg("--").args(names);
        child.current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        child.process_group(0).kill_on_drop(true);
        child
    }
}

impl Ended {
    /// Returns why there is no result: what the command said.
    pub(super) fn fault(&self) -> Fault {
        let code = self.code.map_or("a signal ended t2t".to_owned(), |code| format!("t2t ended with exit code {code}"));
        let said = self.said.trim_end();
        Fault::Told(if said.is_empty() { format!("error: {code}") } else { said.to_owned() })
    }
}

/// Returns the options of every command that this process was given, for its children.
fn passed_on(common: &Common) -> Vec<OsString> {
    // A child runs in the workspace; a name without a folder is looked up in `PATH`.
    let path = |path: &Path| if path.components().count() > 1 { context::absolute(path) } else { path.to_owned() };
    let device = match &common.device {
        DeviceChoice::Auto => None,
        DeviceChoice::Cuda => Some("cuda".to_owned()),
        DeviceChoice::CudaNumber(number) => Some(format!("cuda:{number}")),
        DeviceChoice::Cpu => Some("cpu".to_owned()),
    };
    let mode = common.remote_mode.map(|mode| match mode {
        Mode::ReadWrite => "read-write",
        Mode::ReadOnly => "read-only",
        Mode::Off => "off",
    });
    let options: [(&str, Option<OsString>); 6] = [
        ("--python", common.python.as_deref().map(|python| path(python).into())),
        ("--device", device.map(Into::into)),
        ("--as-device", common.as_device.clone().map(Into::into)),
        ("--remote", common.remote.clone().map(Into::into)),
        ("--remote-mode", mode.map(Into::into)),
        ("--sign", common.sign.as_deref().map(|key| context::absolute(key).into())),
    ];
    let given = options.into_iter().filter_map(|(name, value)| Some([name.into(), value?]));
    given.flatten().chain(common.no_remote.then(|| "--no-remote".into())).collect()
}

/// Hands on what comes from a pipe, line by line, until it closes. What cannot be read has ended.
async fn each(pipe: Option<impl AsyncRead + Unpin>, lines: &mut impl Lines) {
    let Some(pipe) = pipe else { return };
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        lines.take(&line).await;
        line.clear();
    }
}

/// Ends a child with its process group: t2t stops what it runs and keeps what is finished, unless it takes too long.
async fn end(child: &mut Child) {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()) else { return };
        // It may have ended meanwhile.
        let _ = killpg(Pid::from_raw(group), signal);
        if timeout(GRACE, child.wait()).await.is_ok() {
            return;
        }
    }
}

/// The last lines of a stream.
#[derive(Debug, Default)]
struct Last(VecDeque<String>);

impl Last {
    fn text(self) -> String {
        self.0.into_iter().collect()
    }
}

impl Lines for Last {
    async fn take(&mut self, line: &[u8]) {
        if self.0.len() == MESSAGES {
            self.0.pop_front();
        }
        self.0.push_back(String::from_utf8_lossy(line).into_owned());
    }
}

/// How many children run.
#[derive(Debug, Clone, Default)]
pub(super) struct Running(Arc<AtomicUsize>);

impl Running {
    fn count(&self) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted(self.clone())
    }

    /// Waits until all children have ended, for as long as `patience`. Those that are left end with this process.
    pub(super) async fn end(&self, patience: Duration) {
        let gone = async {
            while self.0.load(Ordering::SeqCst) > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = timeout(patience, gone).await;
    }
}

/// One child that runs.
struct Counted(Running);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
