//! Looking: the page is made anew where files of the workspace or results in the store have changed, and who builds is told.
//!
//! What is stale is decided as `t2t status` does. It does not know who is shown the page.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use t2t_host::interrupt::Interrupt;
use t2t_host::toolchain::Toolchain;
use t2t_store::fs;
use t2t_store::store::at_work;
use tokio::sync::watch::Sender;

use super::shown::Shown;
use crate::cli::arguments::ReportArguments;
use crate::cli::error::CliError;
use crate::cli::report::made;
use crate::cli::{Common, context};
use crate::session::{Options, Session};

/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How many times as long as a page took to make nothing is made after it: a build has most of the machine.
const REST: u32 = 3;

/// What looks at a workspace.
pub(super) struct Looker<'a> {
    common: &'a Common,
    arguments: &'a ReportArguments,
    root: &'a Path,
    interrupt: &'a Interrupt,
    changes: Receiver<()>,
    cache: PathBuf,
    /// The journal as it was when the last page was begun.
    journal: Option<fs::Stat>,
    toolchain: Option<Arc<Toolchain>>,
}

impl<'a> Looker<'a> {
    /// Returns what looks at the workspace at `root`, told of its files by `changes`, and its first page, as `arguments` say.
    pub(super) fn begin(
        common: &'a Common,
        arguments: &'a ReportArguments,
        root: &'a Path,
        interrupt: &'a Interrupt,
        changes: Receiver<()>,
    ) -> Result<(Self, Shown), CliError> {
        let cache = root.join("cache");
        let journal = journal(&cache);
        let session = context::open(common, context::as_built(common)?, interrupt)?;
        context::warn_of_unknown_versions(common, &session)?;
        let file = made::made(&session, arguments)?.text;
        let first = Shown::of(&file, at_work::now(&cache));
        let toolchain = session.toolchain.clone();
        Ok((Self { common, arguments, root, interrupt, changes, cache, journal, toolchain }, first))
    }

    /// Shows what changes by `sender`, until the user leaves or nobody is shown anything any more.
    pub(super) fn run(mut self, sender: &Sender<Shown>) {
        let (mut is_due, mut rests_until) = (false, Instant::now());
        while !self.interrupt.is_set() && !sender.is_closed() {
            match self.changes.recv_timeout(LOOK) {
                Ok(()) => is_due = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
            let at_work = at_work::now(&self.cache);
            sender.send_if_modified(|shown| {
                let is_other = shown.at_work != at_work;
                shown.at_work = at_work;
                is_other
            });
            let journal = journal(&self.cache);
            if is_due || journal != self.journal {
                is_due = true;
                if Instant::now() >= rests_until {
                    let begun = Instant::now();
                    (is_due, self.journal) = (false, journal);
                    self.renew(sender);
                    rests_until = Instant::now() + begun.elapsed() * REST;
                }
            }
        }
    }

    /// Makes the page anew.
    fn renew(&mut self, sender: &Sender<Shown>) {
        let made = self.page();
        sender.send_if_modified(|shown| {
            let next = match made {
                Ok(file) => Shown::of(&file, shown.at_work.clone()),
                Err(error) => Shown { trouble: Some(error.text()), ..shown.clone() },
            };
            let is_other = *shown != next;
            *shown = next;
            is_other
        });
    }

    fn page(&mut self) -> Result<String, CliError> {
        let probing = context::as_built(self.common)?;
        let options = Options { toolchain: self.toolchain.take(), ..context::options(self.common, self.root, probing) };
        let session = Session::open(self.root, &options, self.interrupt)?;
        self.toolchain.clone_from(&session.toolchain);
        Ok(made::made(&session, self.arguments)?.text)
    }
}

fn journal(cache: &Path) -> Option<fs::Stat> {
    fs::stat(&cache.join("journal"))
}
