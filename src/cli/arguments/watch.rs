//! The options of `t2t watch`.
//!
//! It does not know what a watch does.
#![expect(clippy::doc_markdown, reason = "clap prints these comments as help, where backticks are noise")]

use std::time::Duration;

use clap::Args;

use super::{Targets, jobs, seconds};

#[derive(Debug, Args)]
pub(in crate::cli) struct WatchArguments {
    #[command(flatten)]
    pub(in crate::cli) targets: Targets,
    /// How many actions run at once on the CPU (default: the number of cores that are not reserved for devices)
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    pub(in crate::cli) jobs: Option<usize>,
    /// Look at the files at this interval, for network folders, where the system reports no changes
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    pub(in crate::cli) poll: Option<Duration>,
    /// Have the nodes of a Ray cluster perform what depends on a device: ray://HOST:PORT, or auto; local for this machine (default: $T2T_EXECUTOR, ops.yaml)
    #[arg(long, value_name = "CLUSTER")]
    pub(in crate::cli) on: Option<String>,
    /// With a cluster: have the cores of its nodes analyze, compile and check on the interpreter, too
    #[arg(long)]
    pub(in crate::cli) on_cpus: bool,
}
