//! The options of `t2t report`.
//!
//! It does not know what the page shows.

use std::path::PathBuf;

use clap::Args;

use crate::cli::complete;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The ops that it shows (default: all)
    #[arg(add = complete::op())]
    pub(crate) ops: Vec<String>,
    /// The file to write (default: logs/report.html in the workspace)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write no file: serve the page to browsers of this machine, and renew it while builds work, until Ctrl-C
    #[cfg(feature = "serve")]
    #[arg(long, conflicts_with = "out")]
    pub(crate) serve: bool,
    /// The port of 127.0.0.1 that it is served at (default: a free one)
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "N", requires = "serve")]
    pub(crate) port: Option<u16>,
    /// Open the served page in the browser
    #[cfg(feature = "serve")]
    #[arg(long, requires = "serve")]
    pub(crate) open: bool,
    /// How many earlier revisions of each op it shows (default: 8; of more than 25 ops fewer)
    #[arg(long, value_name = "N")]
    pub(crate) history: Option<usize>,
    /// A file of t2t build --trace, whose timeline it shows
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// A file of t2t bench --sweep, OP.json, or a folder of them; may be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) sweep: Vec<PathBuf>,
}

impl ReportArguments {
    /// Returns how many revisions are asked for. A served page has none by itself: to read them takes longer than all else, at each change.
    pub(crate) fn revisions(&self) -> Option<usize> {
        #[cfg(feature = "serve")]
        if self.serve {
            return Some(self.history.unwrap_or(0));
        }
        self.history
    }
}
