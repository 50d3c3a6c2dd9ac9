//! The servers of a session, and what they were started for: a later session has them as long as it would start the same.
//!
//! It does not know what runs on them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use t2t_host::device::Device;
use t2t_host::interrupt::Interrupt;
use t2t_host::pool::Pool;
use t2t_host::toolchain::Toolchain;
use t2t_model::action::Phase;
use t2t_model::digest::Digest;

use super::{NoSession, Options, Session};

/// What a session leaves to a later one.
#[derive(Debug)]
pub(crate) struct KeptServers {
    pub(crate) pool: Arc<Pool>,
    toolchain: Option<Arc<Toolchain>>,
    harness: BTreeMap<Phase, Digest>,
    devices: Vec<Device>,
}

impl KeptServers {
    /// Returns those of `session`.
    pub(crate) fn of(session: &Session) -> Self {
        Self {
            pool: Arc::clone(&session.pool),
            toolchain: session.toolchain.clone(),
            harness: session.inventory.harness.clone(),
            devices: session.devices.clone(),
        }
    }

    /// Returns a session of the workspace `root` as it is now: with the servers of `kept`, if they are still the right ones, else with others.
    pub(crate) fn open(
        kept: Option<&Self>,
        root: &Path,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Session, NoSession> {
        let open = |pool| {
            let toolchain = kept.and_then(|kept| kept.toolchain.clone());
            Session::open(root, &Options { pool, toolchain, ..options.clone() }, interrupt)
        };
        let mut session = open(kept.map(|kept| Arc::clone(&kept.pool)))?;
        if kept.is_some_and(|kept| Arc::ptr_eq(&kept.pool, &session.pool) && !kept.is_of(&session)) {
            session = open(None)?;
        }
        session.pool.begin_build();
        Ok(session)
    }

    /// Returns whether a session would start the same servers.
    fn is_of(&self, session: &Session) -> bool {
        self.toolchain == session.toolchain
            && self.harness == session.inventory.harness
            && self.devices == session.devices
    }
}
