//! `t2t doctor`: what this machine has, and what it lacks.

use std::env;
use std::path::PathBuf;

use t2t_host::device;
use t2t_host::interrupt::Interrupt;
use t2t_host::toolchain::Toolchain;
use t2t_protocol::{Landlock, ServerKind};

use super::error::CliError;
use super::{Common, context, remote, streams};
use crate::session::Probing;

/// Runs the command.
pub(crate) fn doctor(common: &Common) -> Result<u8, CliError> {
    let session = context::open(common, Probing::Allowed, &Interrupt::default())?;
    let mut lines = Vec::new();
    if let Some(python) = context::python(common, session.root.clone()) {
        lines.push(format!("python: {} ({})", python.path.display(), python.found));
    }
    let versions = session.toolchain.iter().flat_map(|toolchain| &toolchain.versions);
    for (name, version) in versions.filter(|(name, _)| *name != "nvcc") {
        lines.push(format!("{name}: {version}"));
    }
    lines.extend(nvcc(session.toolchain.as_deref()));
    match session.pool.hello(ServerKind::Compiled) {
        Ok(hello) => {
            lines.push(format!("worker: {}", hello.worker));
            lines.extend(sandbox(hello.landlock, hello.namespaces));
            lines.extend(
                hello.missing.iter().map(|missing| format!("missing: {} ({})", missing.module, missing.reason)),
            );
        }
        Err(error) => lines.push(format!("worker: {error}")),
    }
    let driver = env::var_os("T2T_DRIVER").map(PathBuf::from);
    let devices = device::devices(env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(), driver.as_deref());
    lines.extend(
        devices.iter().map(|device| {
            format!("cuda:{}: {}, {}, driver {}", device.number, device.name, device.uuid, device.driver)
        }),
    );
    if devices.is_empty() {
        lines.push("cuda: no device; kernels run in Triton's interpreter".to_owned());
    }
    let locks = device::lock_folder(env::var("T2T_LOCK_DIR").ok().as_deref());
    lines.push(format!("device locks: {}", locks.display()));
    lines.push(match context::bytecode() {
        Some(folder) => format!("bytecode of packages installed without: {}", folder.display()),
        None => "bytecode of packages installed without it: not kept".to_owned(),
    });
    lines.extend(remote::described(common, &session.spec)?);
    streams::print(&(lines.join("\n") + "\n"));
    Ok(0)
}

/// Returns which nvcc compiles variants in CUDA C++, and what to do where there is none, or one of another CUDA than torch's.
fn nvcc(toolchain: Option<&Toolchain>) -> Vec<String> {
    let Some(toolchain) = toolchain else { return Vec::new() };
    let version = |name: &str| toolchain.versions.get(name);
    let (Some(nvcc), Some(own)) = (&toolchain.nvcc, version("nvcc")) else {
        let lack = "nvcc: none; variants in CUDA C++ are not compiled";
        return vec![lack.to_owned(), "hint: `uv sync --extra cuda` installs it, or set CUDA_HOME".to_owned()];
    };
    let mut lines = vec![format!("nvcc: {} ({own})", nvcc.display())];
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if let Some(cuda) = version("cuda").filter(|cuda| major(cuda) != major(own)) {
        lines.push(format!(
            "hint: torch is built for CUDA {cuda}: a driver that is old enough for it may not load what this nvcc compiles"
        ));
    }
    lines
}

/// Returns what holds kernel code in on this machine. Landlock's ABI 4 brought TCP, 6 signals and abstract sockets. A child that cannot put up the rest of the walls is not started.
fn sandbox(landlock: Landlock, has_namespaces: bool) -> Vec<String> {
    let files = match landlock.0 {
        0 => "no Landlock",
        1..=3 => "files",
        4..=5 => "files, TCP",
        _ => "files, TCP, signals, abstract sockets",
    };
    let namespaces = if has_namespaces { "namespaces (users, mounts, System V objects)" } else { "no namespaces" };
    let mut lines = vec![
        format!(
            "sandbox: {landlock} ({files}), seccomp (sockets, io_uring, other processes, mounts, leases, watches), no capabilities, {namespaces}"
        ),
        "sandbox on a device: /dev/nvidia*, names of threads, Unix sockets and watches beside that".to_owned(),
    ];
    if landlock == Landlock(0) {
        lines.push("hint: this kernel has no Landlock: kernel code can read what you can, and write it where there are no namespaces".to_owned());
    } else if landlock.0 < 6 {
        lines.push("hint: this kernel's Landlock knows no signals: kernel code can end what is yours".to_owned());
    }
    if !has_namespaces {
        lines.push(
            "hint: this kernel, or a container, gives its children no namespaces: kernel code can change modes and times of your files".to_owned(),
        );
    }
    lines
}
