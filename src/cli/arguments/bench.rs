//! The options of `t2t bench`.
//!
//! It does not know what is measured.
#![expect(clippy::doc_markdown, reason = "clap prints these comments as help, where backticks are noise")]

use std::path::PathBuf;

use clap::Args;
use t2t_model::action::Phase;

use super::{BuildArguments, Targets};
use crate::cli::complete;

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// The op; with --against a variant, as in softmax/v2_tiling
    #[arg(value_name = "OP", add = complete::variant())]
    pub(crate) op: String,
    /// Only these variants
    #[arg(long, value_name = "VARIANT", add = complete::variant_alone())]
    pub(crate) variant: Vec<String>,
    /// Time all variants, torch and torch.compile at sizes in powers of two, and write CSV, JSON and a picture
    #[arg(long)]
    pub(crate) sweep: bool,
    /// Where a sweep is written (default: logs/sweep in the workspace)
    #[arg(long, value_name = "DIR", requires = "sweep")]
    pub(crate) out: Option<PathBuf>,
    /// Time the variant's kernel against another version of it, in turns in one process: that of a commit, or a file
    #[arg(long, value_name = "REV|FILE", conflicts_with = "sweep")]
    pub(crate) against: Option<String>,
    /// Print what --against measured as JSON
    #[arg(long, requires = "against")]
    pub(crate) json: bool,
}

impl BenchArguments {
    /// Returns the build that measures what is named.
    pub(crate) fn build(self) -> BuildArguments {
        let phase = vec![Phase::Bench];
        let targets = Targets { op: vec![self.op], variant: self.variant, phase, ..Targets::default() };
        BuildArguments { targets, figures: true, ..BuildArguments::default() }
    }
}
