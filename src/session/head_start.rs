//! A head start: the interpreter is started as soon as a file was seen to be edited, while it is still to be found out what of it is stale.
//!
//! It does not know what was edited. Where nothing turns out to be stale, the server is killed as the command ends.

use std::path::Path;
use std::sync::Arc;

use t2t_host::interrupt::Interrupt;
use t2t_host::pool::Pool;
use t2t_host::toolchain::Toolchain;
use t2t_protocol::ServerKind;
use t2t_store::harness::Harness;

use super::interpreter::{Asked, asked, start_beside};
use super::{Options, Probing, devices};

/// The servers of the sessions that follow, the first of which is being started.
#[derive(Debug)]
pub(crate) struct HeadStart {
    /// The servers.
    pub(crate) pool: Arc<Pool>,
    toolchain: Arc<Toolchain>,
}

impl HeadStart {
    /// Starts the server that compiles, of the workspace at `root`. None where versions are not known, or anything else is in the way: then sessions do without, and say why.
    pub(crate) fn begin(root: &Path, options: &Options, interrupt: &Interrupt) -> Option<Self> {
        let options = Options { probing: Probing::Known, ..options.clone() };
        let cache = options.cache.clone().unwrap_or_else(|| root.join("cache"));
        let harness = Harness::open(options.harness.as_deref()).ok()?;
        let devices = devices(&options).ok()?;
        let Asked { pool, toolchain } =
            asked(&options, &harness, [&cache, root], interrupt, !devices.is_empty()).ok()?;
        start_beside(&pool, ServerKind::Compiled);
        Some(Self { pool, toolchain: toolchain? })
    }

    /// Returns `options` with the servers of a head start, where there was one.
    pub(crate) fn taken(begun: Option<&Self>, options: Options) -> Options {
        let Some(Self { pool, toolchain }) = begun else { return options };
        Options { pool: Some(Arc::clone(pool)), toolchain: Some(Arc::clone(toolchain)), ..options }
    }
}
