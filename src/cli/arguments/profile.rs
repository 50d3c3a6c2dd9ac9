//! The options of `t2t profile`.
//!
//! It does not know what is recorded.
#![expect(clippy::doc_markdown, reason = "clap prints these comments as help, where backticks are noise")]

use clap::Args;

use crate::cli::complete;

#[derive(Debug, Args)]
pub(crate) struct ProfileArguments {
    /// As in softmax/v2_tiling
    #[arg(value_name = "OP/VARIANT", add = complete::variant())]
    pub(crate) target: String,
    /// The size, as ops.yaml names it (default: the last one that is declared)
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// The dtype (default: the first one that is declared, which a bench times)
    #[arg(long, value_name = "DTYPE")]
    pub(crate) dtype: Option<String>,
    /// Have Nsight Compute count, too: memory traffic, cache hits, tensor cores, what warps wait for. The kernel runs without t2t's walls then
    #[arg(long)]
    pub(crate) counters: bool,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
