//! `t2t doctor`: what this machine has, and what it lacks.

use std::env;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use t2t_host::device;
use t2t_host::interrupt::Interrupt;
use t2t_host::toolchain::Toolchain;
use t2t_protocol::{Landlock, ServerKind};
use t2t_store::fs;

use super::error::CliError;
use super::{Common, ReportFormat, context, remote, streams};
use crate::session::{Probing, Session};

/// Something that this machine has, or lacks: its name, and what is to be said of it. A `hint` is about what comes before it.
#[derive(Debug, Serialize)]
struct Finding {
    name: String,
    value: String,
}

impl Finding {
    fn new(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into() }
    }

    fn line(&self) -> String {
        format!("{}: {}\n", self.name, self.value)
    }

    fn hint(value: impl Into<String>) -> Self {
        Self::new("hint", value)
    }
}

/// Runs the command.
pub(crate) fn doctor(common: &Common, format: ReportFormat) -> Result<u8, CliError> {
    let findings = findings(common)?;
    streams::print(&match format {
        ReportFormat::Text => findings.iter().map(Finding::line).collect::<String>(),
        ReportFormat::Json => {
            serde_json::to_string_pretty(&findings).context("the findings cannot be written as JSON")? + "\n"
        }
    });
    Ok(0)
}

/// The ops.yaml that stands for one where there is no workspace: nothing of it is built.
const ANY: &str = "version: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}, variants: [v1]}\n";

/// Returns what there is and what is lacking, in the order in which it is said.
fn findings(common: &Common) -> Result<Vec<Finding>, CliError> {
    let mut found = Vec::new();
    let here = env::current_dir().context("cannot tell the current folder")?;
    let workspace = context::workspace().ok();
    let mut empty = None;
    if workspace.is_none() {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        fs::write(&folder.path().join("ops.yaml"), ANY.as_bytes()).context("cannot write to a temporary folder")?;
        empty = Some(folder);
        found.push(Finding::new("workspace", format!("none: no ops.yaml in `{}` or above it", here.display())));
        found.push(Finding::hint("`t2t init` makes one here"));
    }
    let place = workspace.unwrap_or(here);
    let root = empty.as_ref().map_or_else(|| place.clone(), |folder| folder.path().to_owned());
    if let Some(python) = context::python(common, place.clone()) {
        found.push(Finding::new("python", format!("{} ({})", python.path.display(), python.found)));
    }
    let opened = |probing: Probing| {
        Session::open(&root, &context::options(common, &place, probing), &Interrupt::default()).map_err(CliError::from)
    };
    let session = match opened(Probing::Allowed) {
        Ok(session) => {
            found.extend(of_interpreter(&session));
            session
        }
        // What is lacking is an answer, too.
        Err(CliError::Use { message, hint } | CliError::Machine { message, hint }) => {
            found.push(Finding::new("missing", message.lines().next().unwrap_or_default()));
            found.extend(hint.map(Finding::hint));
            opened(Probing::Never)?
        }
        Err(error) => return Err(error),
    };
    found.extend(of_devices());
    found.push(Finding::new(
        "bytecode of packages installed without it",
        context::bytecode().map_or("not kept".to_owned(), |folder| folder.display().to_string()),
    ));
    found.push(Finding::new("remote cache", remote::described(common, &session.spec)?));
    Ok(found)
}

/// Returns what is in the interpreter of a session, and what holds kernel code in there.
fn of_interpreter(session: &Session) -> Vec<Finding> {
    let versions = session.toolchain.iter().flat_map(|toolchain| &toolchain.versions);
    let versions = versions.filter(|(name, _)| *name != "nvcc").map(|(name, version)| Finding::new(name, version));
    let mut found: Vec<Finding> = versions.collect();
    found.extend(nvcc(session.toolchain.as_deref()));
    match session.pool.hello(ServerKind::Compiled) {
        Ok(hello) => {
            found.push(Finding::new("worker", &hello.worker));
            found.extend(sandbox(hello.landlock, hello.namespaces));
            let missing = hello.missing.iter();
            found.extend(
                missing.map(|missing| Finding::new("missing", format!("{} ({})", missing.module, missing.reason))),
            );
        }
        Err(error) => found.push(Finding::new("worker", error.to_string())),
    }
    found
}

/// Returns the CUDA devices, and where t2t locks them.
fn of_devices() -> Vec<Finding> {
    let driver = env::var_os("T2T_DRIVER").map(PathBuf::from);
    let devices = device::devices(env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(), driver.as_deref());
    let told = devices.iter().map(|device| {
        let value = format!("{}, {}, driver {}", device.name, device.uuid, device.driver);
        Finding::new(&format!("cuda:{}", device.number), value)
    });
    let mut found: Vec<Finding> = told.collect();
    if devices.is_empty() {
        found.push(Finding::new("cuda", "no device; kernels run in Triton's interpreter"));
    }
    let locks = device::lock_folder(env::var("T2T_LOCK_DIR").ok().as_deref());
    found.push(Finding::new("device locks", locks.display().to_string()));
    found
}

/// Returns which nvcc compiles variants in CUDA C++, and what to do where there is none, or one of another CUDA than torch's.
fn nvcc(toolchain: Option<&Toolchain>) -> Vec<Finding> {
    let Some(toolchain) = toolchain else { return Vec::new() };
    let version = |name: &str| toolchain.versions.get(name);
    let (Some(nvcc), Some(own)) = (&toolchain.nvcc, version("nvcc")) else {
        return vec![
            Finding::new("nvcc", "none; variants in CUDA C++ are not compiled"),
            Finding::hint("`uv sync --extra cuda` installs it, or set CUDA_HOME"),
        ];
    };
    let mut found = vec![Finding::new("nvcc", format!("{} ({own})", nvcc.display()))];
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if let Some(cuda) = version("cuda").filter(|cuda| major(cuda) != major(own)) {
        found.push(Finding::hint(format!(
            "torch is built for CUDA {cuda}: a driver that is old enough for it may not load what this nvcc compiles"
        )));
    }
    found
}

/// Returns what holds kernel code in on this machine. Landlock's ABI 4 brought TCP, 6 signals and abstract sockets. A child that cannot put up the rest of the walls is not started.
fn sandbox(landlock: Landlock, has_namespaces: bool) -> Vec<Finding> {
    let files = match landlock.0 {
        0 => "no Landlock",
        1..=3 => "files",
        4..=5 => "files, TCP",
        _ => "files, TCP, signals, abstract sockets",
    };
    let namespaces = if has_namespaces { "namespaces (users, mounts, System V objects)" } else { "no namespaces" };
    let mut found = vec![
        Finding::new(
            "sandbox",
            format!(
                "{landlock} ({files}), seccomp (sockets, io_uring, other processes, mounts, leases, watches), no capabilities, {namespaces}"
            ),
        ),
        Finding::new("sandbox on a device", "/dev/nvidia*, names of threads, Unix sockets and watches beside that"),
    ];
    if landlock == Landlock(0) {
        found.push(Finding::hint("this kernel has no Landlock: kernel code can read what you can, and write it where there are no namespaces"));
    } else if landlock.0 < 6 {
        found.push(Finding::hint("this kernel's Landlock knows no signals: kernel code can end what is yours"));
    }
    if !has_namespaces {
        found.push(Finding::hint(
            "this kernel, or a container, gives its children no namespaces: kernel code can change modes and times of your files",
        ));
    }
    found
}
