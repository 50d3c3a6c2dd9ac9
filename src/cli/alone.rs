//! A child's work outside of a build: it is told what a build tells, and works under the lock of its device.
//!
//! It does not know what the child does.

use std::env;
use std::path::Path;

use anyhow::Context;
use t2t_host::cores::Shares;
use t2t_host::device::{self, DeviceLock, Holder};
use t2t_host::interrupt::Interrupt;
use t2t_host::pool::Pool;
use t2t_report::figures;
use t2t_store::fs;

use super::error::CliError;
use super::{context, streams};
use crate::engine::job::Job;
use crate::engine::perform::Performed;
use crate::engine::request::Requests;
use crate::session::Session;

/// The artifact of a compile that holds its kernels.
pub(super) const ARCHIVE: &str = "triton.tar.gz";

/// What has a child do its work.
pub(super) type Performs = fn(&Job, &Pool) -> Performed;

/// Returns what writes the requests of a session, of one child at a time.
pub(super) fn requests<'a>(session: &'a Session, shares: &'a Shares) -> Requests<'a> {
    Requests {
        spec: &session.spec,
        inventory: &session.inventory,
        root: &session.root,
        catalogue: &session.catalogue,
        readable: session.readable(),
        shares,
        jobs: 1,
        salt: "",
    }
}

/// Performs the job under the lock of its device, where it has one. Whoever waits for the device is told `what` it is, and of which workspace. Fails where the user leaves while it waits.
pub(super) fn performed(
    job: &Job,
    pool: &Pool,
    (what, workspace): (&str, &Path),
    interrupt: &Interrupt,
    perform: Performs,
) -> Result<Performed, CliError> {
    locked(job, (what, workspace), interrupt, || perform(job, pool))
}

/// Does the `work` of a job under the lock of its device, where it has one, and returns what it returns. Whoever waits for the device is told `what` it is, and of which workspace. Fails where the user leaves while it waits.
pub(super) fn locked<T>(
    job: &Job,
    (what, workspace): (&str, &Path),
    interrupt: &Interrupt,
    work: impl FnOnce() -> T,
) -> Result<T, CliError> {
    let Some(uuid) = &job.device else { return Ok(work()) };
    let locks = device::lock_folder(env::var("T2T_LOCK_DIR").ok().as_deref());
    let who = || Holder {
        pid: context::process(),
        target: what.to_owned(),
        workspace: workspace.to_string_lossy().into_owned(),
        since: figures::moment(fs::now()),
    };
    let waiting = |holder: &str| streams::say(&format!("waiting: device {uuid}, held by {holder}"));
    match DeviceLock::take(&locks, uuid, who, waiting, || interrupt.is_set()).context("cannot lock the device")? {
        Some(_held) => Ok(work()),
        None => Err(CliError::Interrupted),
    }
}
