//! The forms of `t2t import`.
//!
//! It does not know what a problem is.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ImportForm {
    /// Problems in KernelBench's form: Python files with Model, get_inputs and get_init_inputs
    Kernelbench {
        /// A file, or a folder with many
        #[arg(value_name = "FILE_OR_FOLDER")]
        what: PathBuf,
    },
    /// A definition of FlashInfer-Bench: a JSON file in the form of FlashInfer Trace
    Flashinfer(FlashinferArguments),
}

#[derive(Debug, Args)]
pub(crate) struct FlashinferArguments {
    /// The file of the definition
    #[arg(value_name = "DEFINITION")]
    pub(crate) definition: PathBuf,
    /// A file of workloads, one a line, which give the sizes and the numbers among the inputs
    #[arg(long, value_name = "FILE")]
    pub(crate) workloads: Option<PathBuf>,
    /// The lengths of a var axis at the sizes small, medium and large, as in M=7,64,1024 (default: 5,64,1024); may be given several times
    #[arg(long, value_name = "AXIS=N[,N[,N]]", conflicts_with = "workloads")]
    pub(crate) axis: Vec<String>,
    /// The value of a number among the inputs, as in eps=1e-6; may be given several times
    #[arg(long, value_name = "INPUT=VALUE")]
    pub(crate) scalar: Vec<String>,
}
