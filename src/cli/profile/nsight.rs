//! The calls of a profile once more, under Nsight Compute, which reads the device's counters.
//!
//! `ncu` has to reach into the process that it watches, so that process is none of the worker's: it has no walls, as that of `t2t repro` has none. It does not know what the
//! counters mean.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::json;
use t2t_host::interrupt::Interrupt;
use t2t_model::foreign;
use t2t_report::render::counters::{self, KernelCounters};
use t2t_store::{fs, secrets};

use crate::cli::error::CliError;
use crate::engine::job::Job;
use crate::engine::perform;

/// The module of the harness that makes the calls, and how many it makes.
pub(super) const MODULE: &str = "counters";
const CALLS: u32 = 3;

/// The profiler.
const NCU: &str = "ncu";

/// What the log says where the driver keeps its counters from the user.
const REFUSED: &str = "ERR_NVGPUCTRPERM";

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What was counted, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Counted {
    /// The version of Nsight Compute.
    pub(super) version: String,
    /// The kernels of a call, longest first.
    pub(super) kernels: Vec<KernelCounters>,
}

/// The processes that a count takes: their interpreter, the folder of the harness, and the variables that they do not get.
pub(super) struct Program<'a> {
    pub(super) python: &'a Path,
    pub(super) harness: &'a Path,
    pub(super) withheld: &'a [String],
}

/// Returns the version of Nsight Compute. Fails where it is not there.
pub(super) fn version() -> Result<String, CliError> {
    let missing = || {
        CliError::misuse(
            "`ncu` was not found, or does not start",
            "it is Nsight Compute, which comes with CUDA's toolkit: put its folder on `PATH`, or leave out `--counters`",
        )
    };
    let told = Command::new(NCU).arg("--version").stdin(Stdio::null()).output().map_err(|_| missing())?;
    let text = String::from_utf8_lossy(&told.stdout);
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Version ")?.split(' ').next());
    version.map(str::to_owned).ok_or_else(missing)
}

/// Has the calls of a job's request counted, in the job's folder, and returns what was counted. Fails where that could not be done, or the kernel raised.
pub(super) fn counted(
    job: &Job,
    program: &Program<'_>,
    version: String,
    metrics: &[&str],
    interrupt: &Interrupt,
) -> Result<Counted, CliError> {
    let folder = &job.scratch;
    fs::make_folder(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    let (request, log, printed) = (folder.join("request.json"), folder.join("ncu.csv"), folder.join("stderr"));
    let mut arguments = job.arguments.clone();
    arguments.common.scratch = folder.to_string_lossy().into_owned();
    fs::write(&request, json!(arguments).to_string().as_bytes()).context("cannot write the request")?;
    let errors = fs::open_to_write(&printed).with_context(|| format!("cannot write `{}`", printed.display()))?;
    let mut command = command(job, program, metrics, (&request, &log));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    let ended = awaited(&mut command, job.deadline, interrupt)?;
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let told = read(&log);
    if told.contains(REFUSED) {
        return Err(CliError::Machine {
            message: "the driver keeps the device's counters from this user (ERR_NVGPUCTRPERM)".to_owned(),
            hint: Some(
                "its administrator can open them: the module option `NVreg_RestrictProfilingToAdminUsers=0`".to_owned(),
            ),
        });
    }
    match ended {
        Some(status) if status.success() => {}
        Some(status) => {
            let errors = read(&printed);
            let last = errors.lines().chain(told.lines()).rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            return Err(CliError::machine(format!("`ncu` ended with {status}: {}", foreign::printable(last))));
        }
        None => {
            let seconds = job.deadline.as_secs();
            return Err(CliError::machine(format!("`ncu` took longer than the {seconds} s that the bench has")));
        }
    }
    let kernels = counters::counted(&told, CALLS).map_err(CliError::machine)?;
    if kernels.is_empty() {
        return Err(CliError::machine("`ncu` saw no kernel"));
    }
    Ok(Counted { version, kernels })
}

/// Returns the profiler's command line: it calls what a request says, and writes a log.
fn command(job: &Job, program: &Program<'_>, metrics: &[&str], (request, log): (&Path, &Path)) -> Command {
    let mut command = Command::new(NCU);
    command.args(["--csv", "--page", "raw", "--print-units", "base", "--log-file"]).arg(log);
    // The device keeps its own clock, as in a bench; its caches are empty before each launch.
    command.args(["--clock-control", "none", "--cache-control", "all", "--profile-from-start", "off"]);
    for section in counters::SECTIONS {
        command.args(["--section", section]);
    }
    command.args(["--metrics", &metrics.join(",")]);
    command.arg(program.python).args(["-B", "-m", &format!("t2t_harness.phases.{MODULE}")]).arg(request);
    command.envs(perform::environment(job, &job.scratch));
    command.env("PYTHONPATH", program.harness).current_dir(&job.scratch).process_group(0);
    secrets::withhold(&mut command);
    for name in program.withheld {
        command.env_remove(OsStr::new(name));
    }
    command
}

/// Runs a command in its process group until it ends, and returns how; None where it took too long. Nothing of it is left running.
fn awaited(command: &mut Command, most: Duration, interrupt: &Interrupt) -> Result<Option<ExitStatus>, CliError> {
    let mut child = command.spawn().context("cannot start `ncu`")?;
    let group = Pid::from_raw(i32::try_from(child.id()).expect("a process id is a pid_t"));
    let began = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(Some(status)),
            Err(error) => break Err(error),
            Ok(None) if interrupt.is_set() => break Err(io::ErrorKind::Interrupted.into()),
            Ok(None) if began.elapsed() > most => break Ok(None),
            Ok(None) => thread::sleep(LOOK),
        }
    };
    // What it started may outlive it.
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
    match ended {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(CliError::Interrupted),
        other => Ok(other.context("cannot wait for `ncu`")?),
    }
}
