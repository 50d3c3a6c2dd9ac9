//! The options of the commands, and how their values are read.
//!
//! It does not know what the commands do.
#![expect(clippy::doc_markdown, reason = "clap prints these comments as help, where backticks are noise")]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use t2t_model::action::Phase;
use t2t_plan::graph::pick::phase_hint;

use super::complete;

mod bench;
mod import;
mod profile;
mod report;
mod watch;

pub(super) use self::bench::BenchArguments;
pub(super) use self::import::{FlashinferArguments, ImportForm};
pub(super) use self::profile::ProfileArguments;
pub(super) use self::report::ReportArguments;
pub(super) use self::watch::WatchArguments;

/// Which targets.
#[derive(Debug, Args, Clone, Default)]
#[expect(clippy::struct_field_names, reason = "the positional argument is named as the help shows it")]
pub(super) struct Targets {
    /// Ops, targets, patterns or files: softmax, softmax/v2_tiling, softmax:check, "*/v1_*:bench", kernels/softmax/*.py (default: everything)
    #[arg(add = complete::target())]
    pub(super) targets: Vec<String>,
    /// An op; may be given several times
    #[arg(long, value_name = "OP", add = complete::op())]
    pub(super) op: Vec<String>,
    /// Only these variants
    #[arg(long, value_name = "VARIANT", add = complete::variant_alone())]
    pub(super) variant: Vec<String>,
    /// Only this phase; may be given several times, or as a list: check,bench
    #[arg(long, value_name = "PHASE", value_parser = phase, value_delimiter = ',')]
    pub(super) phase: Vec<Phase>,
}

#[derive(Debug, Args)]
pub(super) struct AddArguments {
    /// Torch operations, also as a list: softmax, F.gelu, "layernorm, torch.nn.functional.rms_norm"
    #[arg(required_unless_present = "list", value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Only these variants, as a list: v1_baseline,v4_optimized (default: all four)
    #[arg(long, value_name = "VARIANT", value_delimiter = ',')]
    pub(super) variants: Vec<String>,
    /// Write the kernel files now, as yours: builds then neither make nor change them
    #[arg(long)]
    pub(super) write: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print the operations that are known, by family; of one FAMILY with torch's names
    #[arg(long, value_name = "FAMILY", num_args = 0..=1, default_missing_value = "all", conflicts_with_all = ["names", "variants", "write", "dry_run"])]
    pub(super) list: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct GenerateArguments {
    /// As in softmax, softmax/v1_baseline
    #[arg(required = true, value_name = "OP[/VARIANT]", add = complete::variant())]
    pub(super) targets: Vec<String>,
    /// Which one to ask, in the place of the one in ops.yaml: template, or a name of `generators`
    #[arg(long, value_name = "NAME")]
    pub(super) generator: Option<String>,
    /// Replace kernel files that persons wrote; what is replaced is kept in cache/replaced
    #[arg(long)]
    pub(super) overwrite: bool,
}

impl GenerateArguments {
    /// Returns the build that asks the generator again.
    pub(super) fn build(self) -> BuildArguments {
        let targets = Targets { targets: self.targets, ..Targets::default() };
        let Self { generator, overwrite, .. } = self;
        BuildArguments { targets, overwrite, generator, regenerate: true, ..BuildArguments::default() }
    }
}

#[derive(Debug, Args)]
pub(super) struct NewArguments {
    /// As in softmax/v5_mine
    #[arg(value_name = "OP/VARIANT", add = complete::variant())]
    pub(super) target: String,
    /// The variant to copy (default: the first one)
    #[arg(long, value_name = "VARIANT", add = complete::variant_alone())]
    pub(super) from: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Ops, also as a list: softmax, mha
    #[arg(required = true, value_name = "OP", add = complete::op())]
    pub(super) ops: Vec<String>,
    /// What is made of them
    #[arg(long = "as", value_enum, value_name = "FORM")]
    pub(super) form: ExportForm,
    /// The folder to write; one that export did not write is left alone (default: export/FORM in the workspace)
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// The name by which Python imports it
    #[arg(long, value_name = "NAME", default_value = "t2t_kernels")]
    pub(super) name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportForm {
    /// A Python package that pip installs, with functions of torch's signatures
    Package,
    /// Such a package whose functions are operators of torch, for torch.compile
    TorchLibrary,
    /// A project for Hugging Face's kernel-builder, with the functions
    HfKernel,
}

impl ExportForm {
    /// Returns the form as it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::TorchLibrary => "torch-library",
            Self::HfKernel => "hf-kernel",
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct AttemptsArguments {
    /// As in softmax, softmax/v1_baseline, softmax/v1_baseline#2
    #[arg(value_name = "OP[/VARIANT[#N]]", add = complete::variant())]
    pub(super) target: String,
    /// Print the kernel of the attempt: of the one that stands, where no number is given
    #[arg(long)]
    pub(super) show: bool,
    /// Print how the attempt's kernel differs from the one before
    #[arg(long, conflicts_with = "show")]
    pub(super) diff: bool,
    /// How the list is written
    #[arg(long, value_enum, default_value = "text", conflicts_with_all = ["show", "diff"])]
    pub(super) format: ReportFormat,
}

#[derive(Debug, Args)]
pub(super) struct ImproveArguments {
    /// As in softmax/v2_tiling; of softmax alone the variant that is selected
    #[arg(value_name = "OP[/VARIANT]", add = complete::variant())]
    pub(super) target: String,
    /// How often the author is asked at most
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: u32,
    /// Which author to ask: a name of `generators` (default: the one of the variant)
    #[arg(long, value_name = "NAME")]
    pub(super) generator: Option<String>,
    /// How many minutes the rounds may take: none begins afterwards, and no author is waited for longer
    #[arg(long, value_name = "M", value_parser = minutes)]
    pub(super) minutes: Option<Duration>,
    /// Replace a kernel file that a person wrote; what is replaced is kept in cache/replaced
    #[arg(long)]
    pub(super) overwrite: bool,
}

#[derive(Debug, Args)]
pub(super) struct AdoptArguments {
    /// The kernel's wrapper: FILE.py or an installed module, with ::NAME where there are several
    #[arg(value_name = "FILE_OR_MODULE[::NAME]")]
    pub(super) what: String,
    /// What the op is to be called
    #[arg(long = "as", value_name = "OP")]
    pub(super) name: String,
    /// The torch function that it replaces (default: the one that is called as the op)
    #[arg(long, value_name = "NAME", conflicts_with = "reference")]
    pub(super) torch: Option<String>,
    /// The function or class in Python that it replaces
    #[arg(long, value_name = "FILE.py::NAME")]
    pub(super) reference: Option<String>,
}

#[derive(Debug, Args, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct BuildArguments {
    #[command(flatten)]
    pub(super) targets: Targets,
    /// How many actions run at once on the CPU (default: the number of cores that are not reserved for devices)
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    pub(super) jobs: Option<usize>,
    /// Run the named actions even if their results stand
    #[arg(long)]
    pub(super) force: bool,
    /// Let a generator replace kernel files that persons wrote; what is replaced is kept in cache/replaced
    #[arg(long, conflicts_with_all = ["dry_run", "require_cached"])]
    pub(super) overwrite: bool,
    /// Ask the generator again, whatever is known of its kernels: `t2t generate`.
    #[arg(skip)]
    pub(super) regenerate: bool,
    /// The generator that is asked in the place of the declared one: `t2t generate --generator`.
    #[arg(skip)]
    pub(super) generator: Option<String>,
    /// Say what would run and why, and with --on also on which nodes, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// After a rejection go on with all that does not depend on it (the default)
    #[arg(long, conflicts_with = "fail_fast")]
    pub(super) keep_going: bool,
    /// Start nothing new after a rejection
    #[arg(long)]
    pub(super) fail_fast: bool,
    /// Run no child: list actions without a result that stands, with the reasons, and exit with 1 if there are any
    #[arg(long, conflicts_with_all = ["force", "dry_run"])]
    pub(super) require_cached: bool,
    /// Accept only results, published or in the remote cache, that a key of `trust` in ops.yaml signed; nothing of cache/ counts
    #[arg(long, requires = "require_cached")]
    pub(super) require_signed: bool,
    /// Exit with 1 if a check judged too little to pass; otherwise that is neither a pass nor a rejection
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) require_judged: bool,
    /// With several devices, measure the variants of one op on any free device
    #[arg(long)]
    pub(super) any_device: bool,
    /// Have the nodes of a Ray cluster perform what depends on a device: ray://HOST:PORT, or auto; local for this machine (default: $T2T_EXECUTOR, ops.yaml)
    #[arg(long, value_name = "CLUSTER", conflicts_with = "require_cached")]
    pub(super) on: Option<String>,
    /// With a cluster: have the cores of its nodes analyze, compile and check on the interpreter, too
    #[arg(long)]
    pub(super) on_cpus: bool,
    /// Write a timeline of the build to FILE, for Perfetto and chrome://tracing
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(super) trace: Option<PathBuf>,
    /// Write events to FILE as they happen, a line of JSON each
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(super) events: Option<PathBuf>,
    /// Write the state of each check and bench to FILE, as JUnit XML
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(super) junit: Option<PathBuf>,
    /// Print the figures of the benches at the end: `t2t bench`.
    #[arg(skip)]
    pub(super) figures: bool,
    /// Print each rejection in the words of a CI service (auto: github where $GITHUB_ACTIONS is true)
    #[arg(long, value_enum, default_value = "auto", value_name = "SERVICE")]
    pub(super) annotations: Service,
}

/// Whose words annotations have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Service {
    #[default]
    Auto,
    Github,
    None,
}

#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// A commit, a record's key or the start of one, published results (a folder or a file), or . for the workspace as it is
    pub(super) a: String,
    /// The other side, as A
    pub(super) b: String,
    /// Only these ops, or patterns of ops
    pub(super) ops: Vec<String>,
    /// Also what did not change
    #[arg(long)]
    pub(super) all: bool,
    /// By how many percent of A's time B may take longer
    #[arg(long, value_name = "PERCENT", default_value_t = t2t_report::compare::THRESHOLD, value_parser = percent)]
    pub(super) threshold: f64,
    /// How it is written
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ReportFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ReportFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct ReproArguments {
    /// The variant, as in softmax/v2_tiling
    #[arg(add = complete::variant())]
    pub(super) target: String,
    /// The case, as in small/float32/0 or edge/strided/float32 (default: the one that was rejected, else the first)
    pub(super) case: Option<String>,
    /// The same, as an option
    #[arg(long = "case", value_name = "NAME", conflicts_with = "case")]
    pub(super) named: Option<String>,
    /// Run it under Python's debugger, which stops where it raises
    #[arg(long)]
    pub(super) pdb: bool,
    /// Run it on the device under compute-sanitizer, with this tool
    #[arg(long, value_name = "TOOL", value_enum, num_args = 0..=1, default_missing_value = "memcheck", conflicts_with = "pdb")]
    pub(super) sanitizer: Option<Sanitizer>,
    /// Write the files, and run nothing
    #[arg(long, conflicts_with_all = ["pdb", "sanitizer"])]
    pub(super) no_run: bool,
    /// Where they are written (default: a folder of its own in logs/repro)
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

/// A tool of compute-sanitizer.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Sanitizer {
    /// Loads and stores outside of what is allocated
    Memcheck,
    /// Programs that race for shared memory
    Racecheck,
    /// Loads of memory that nothing wrote
    Initcheck,
    /// Barriers that not all threads reach
    Synccheck,
}

#[derive(Debug, Args)]
pub(super) struct AffectedArguments {
    /// The commit: a branch, a tag, HEAD~1, a hash
    #[arg(long, value_name = "REV")]
    pub(super) since: String,
    /// Print the actions instead of the ops
    #[arg(long)]
    pub(super) targets: bool,
    /// How it is written; json has the ops, the actions and why they are affected
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ReportFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum GraphFormat {
    Dot,
    Mermaid,
    Json,
    /// The ops as the harness gets them, for scripts: declaration, variants, protocol, baselines
    Ops,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Stage {
    Ttir,
    Ttgir,
    Llir,
    Ptx,
    Cubin,
    /// Machine code as text, of CUDA C++
    Sass,
}

impl Stage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ttir => "ttir",
            Self::Ttgir => "ttgir",
            Self::Llir => "llir",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::Sass => "sass",
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| format!("`{text}` is not a number"))?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err("it is zero or more".to_owned()) }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    let is_right = number.is_finite() && (0.01..=3600.0).contains(&number);
    if is_right { Ok(Duration::from_secs_f64(number)) } else { Err("it is 0.01 to 3600".to_owned()) }
}

fn minutes(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    let is_right = number.is_finite() && (0.01..=100_000.0).contains(&number);
    if is_right { Ok(Duration::from_secs_f64(number * 60.0)) } else { Err("it is 0.01 to 100000".to_owned()) }
}

fn phase(text: &str) -> Result<Phase, String> {
    text.parse().map_err(|()| phase_hint(text))
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it is 1 or more".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("`{text}` is not a number")),
    }
}
