//! The command line: commands and their options.
//!
//! It and the reporter are the only places that print. Results go to standard output, everything else to standard error.
#![expect(clippy::doc_markdown, reason = "clap prints these comments as help, where backticks are noise")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use t2t_model::action::Phase;
use t2t_plan::graph::pick::phase_hint;
use t2t_spec::remote::Mode;
use t2t_store::secrets;

use crate::session::DeviceChoice;

mod adopt;
mod affected;
mod answer;
mod build;
mod cache;
mod compare;
mod context;
mod declared;
mod doctor;
mod edit;
mod edits;
mod error;
mod explain;
mod init;
mod inspect;
mod limit_hint;
mod limits;
mod measured;
mod outputs;
mod plan;
mod publish;
mod remote;
mod repro;
mod revision;
mod running;
mod setup;
mod signing;
mod status;
mod streams;
mod sweep;
mod tidy;
mod totals;
mod unchanged;
mod watch;

use self::error::CliError;

/// What `t2t --version` says: the version, and how the binary was built.
const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("T2T_PROFILE"), ")");

/// The heading in a command's help for options of all commands.
const EVERYWHERE: &str = "Options of every command";

/// A declarative build system for repositories of Torch-to-Triton kernels
#[derive(Debug, Parser)]
#[command(name = "t2t", bin_name = "t2t", version = LONG_VERSION, max_term_width = 100, infer_subcommands = false)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
struct Common {
    /// The Python that has torch and triton (default: $T2T_PYTHON, $VIRTUAL_ENV, the workspace's .venv, t2t's own folder)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Where kernels are checked and measured: auto, cuda, cuda:N, cpu (Triton's interpreter)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    device: DeviceChoice,
    /// Ask for the results of a device that this machine lacks, as in nvidia-h200: those in cache/ and in assets/results/MODEL
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "MODEL", conflicts_with = "device")]
    as_device: Option<String>,
    /// The cache that is shared with other machines, as in https://HOST/FOLDER, or off (default: $T2T_REMOTE, ops.yaml)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "URL")]
    remote: Option<String>,
    /// What may be done with it: read-write, read-only, off (default: $T2T_REMOTE_MODE, ops.yaml)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "MODE", value_parser = remote::mode)]
    remote_mode: Option<Mode>,
    /// Neither ask the remote cache nor leave anything there
    #[arg(long, global = true, help_heading = EVERYWHERE, conflicts_with_all = ["remote", "remote_mode"])]
    no_remote: bool,
    /// Sign what is published, or left in the remote cache, with this ssh key (default: $T2T_SIGN_KEY)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    /// Say only what failed, and the result
    #[arg(long, short, global = true, help_heading = EVERYWHERE)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring everything, or the named targets, up to date
    Build(BuildArguments),
    /// After each change of a file, build what became stale
    Watch(WatchArguments),
    /// Measure an op's variants; with --sweep at sizes in powers of two, which no build keeps
    Bench(BenchArguments),
    /// Declare an op for an existing kernel, check it, and report the result
    Adopt(AdoptArguments),
    /// Say what is up to date and what is not
    Status(Targets),
    /// Say why an action is stale, or how it ended and what its result depends on; or what a class of rejections means
    Explain {
        /// As in softmax/v2_tiling:check, softmax:log, softmax; mismatch
        #[arg(required = true)]
        targets: Vec<String>,
    },
    /// Write a case of a check as a Python file that runs without t2t, and run it
    Repro(ReproArguments),
    /// Print the graph of actions
    Graph {
        #[command(flatten)]
        targets: Targets,
        /// How it is written
        #[arg(long, value_enum, default_value = "dot")]
        format: GraphFormat,
    },
    /// Print an op's log
    Log {
        /// The op
        op: String,
    },
    /// Print the compiler's output for a variant's kernels
    Ir {
        /// As in softmax/v4_optimized
        target: String,
        /// Which stage
        #[arg(long, value_enum, default_value = "ptx")]
        stage: Stage,
        /// Only kernels with this name
        #[arg(long)]
        kernel: Option<String>,
        /// All compilations of a kernel, not only the first
        #[arg(long)]
        all: bool,
    },
    /// Write the results of this device to assets/results/DEVICE, for machines that lack it
    Publish,
    /// Compare the figures of two sides; the exit code is 1 if B is slower beyond the threshold
    Compare(CompareArguments),
    /// Print the ops that the changes since a commit can affect: committed, uncommitted and untracked ones
    Affected(AffectedArguments),
    /// Maintain cache/: verify, stats, gc, export, import
    Cache {
        #[command(subcommand)]
        command: cache::CacheCommand,
    },
    /// Make this folder a workspace: write .gitignore and, if there is none, an ops.yaml with a first op
    Init,
    /// Print the JSON Schema of ops.yaml
    Schema,
    /// Say what this machine has and what it lacks
    Doctor,
    /// Remove logs/ and, with --cache, cache/
    Clean {
        /// The store too: every result is lost
        #[arg(long)]
        cache: bool,
        /// Do not ask
        #[arg(long, short, requires = "cache")]
        yes: bool,
    },
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Which targets.
#[derive(Debug, Args, Clone, Default)]
#[expect(clippy::struct_field_names, reason = "the positional argument is named as the help shows it")]
struct Targets {
    /// Ops, targets, patterns or files: softmax, softmax/v2_tiling, softmax:check, "*/v1_*:bench", kernels/softmax/*.py (default: everything)
    targets: Vec<String>,
    /// An op; may be given several times
    #[arg(long, value_name = "OP")]
    op: Vec<String>,
    /// Only these variants
    #[arg(long, value_name = "VARIANT")]
    variant: Vec<String>,
    /// Only this phase; may be given several times, or as a list: check,bench
    #[arg(long, value_name = "PHASE", value_parser = phase, value_delimiter = ',')]
    phase: Vec<Phase>,
}

#[derive(Debug, Args)]
struct BenchArguments {
    /// The op
    op: String,
    /// Only these variants
    #[arg(long, value_name = "VARIANT")]
    variant: Vec<String>,
    /// Time all variants, torch and torch.compile at sizes in powers of two, and write CSV, JSON and a picture
    #[arg(long)]
    sweep: bool,
    /// Where a sweep is written (default: logs/sweep in the workspace)
    #[arg(long, value_name = "DIR", requires = "sweep")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct AdoptArguments {
    /// The kernel's wrapper: FILE.py or an installed module, with ::NAME where there are several
    #[arg(value_name = "FILE_OR_MODULE[::NAME]")]
    what: String,
    /// What the op is to be called
    #[arg(long = "as", value_name = "OP")]
    name: String,
    /// The torch function that it replaces (default: the one that is called as the op)
    #[arg(long, value_name = "NAME", conflicts_with = "reference")]
    torch: Option<String>,
    /// The function or class in Python that it replaces
    #[arg(long, value_name = "FILE.py::NAME")]
    reference: Option<String>,
}

#[derive(Debug, Args)]
struct WatchArguments {
    #[command(flatten)]
    targets: Targets,
    /// How many actions run at once on the CPU (default: the number of cores that are not reserved for devices)
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    jobs: Option<usize>,
    /// Look at the files at this interval, for network folders, where the system reports no changes
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    poll: Option<Duration>,
}

#[derive(Debug, Args, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct BuildArguments {
    #[command(flatten)]
    targets: Targets,
    /// How many actions run at once on the CPU (default: the number of cores that are not reserved for devices)
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    jobs: Option<usize>,
    /// Run the named actions even if their results stand
    #[arg(long)]
    force: bool,
    /// Say what would run and why, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// After a rejection go on with all that does not depend on it (the default)
    #[arg(long, conflicts_with = "fail_fast")]
    keep_going: bool,
    /// Start nothing new after a rejection
    #[arg(long)]
    fail_fast: bool,
    /// Run no child: list actions without a result that stands, with the reasons, and exit with 1 if there are any
    #[arg(long, conflicts_with_all = ["force", "dry_run"])]
    require_cached: bool,
    /// Accept only results, published or in the remote cache, that a key of `trust` in ops.yaml signed; nothing of cache/ counts
    #[arg(long, requires = "require_cached")]
    require_signed: bool,
    /// Exit with 1 if a check judged too little to pass; otherwise that is neither a pass nor a rejection
    #[arg(long, conflicts_with = "dry_run")]
    require_judged: bool,
    /// With several devices, measure the variants of one op on any free device
    #[arg(long)]
    any_device: bool,
    /// Write a timeline of the build to FILE, for Perfetto and chrome://tracing
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write events to FILE as they happen, a line of JSON each
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write the state of each check and bench to FILE, as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print the figures of the benches at the end: `t2t bench`.
    #[arg(skip)]
    figures: bool,
    /// Print each rejection in the words of a CI service (auto: github where $GITHUB_ACTIONS is true)
    #[arg(long, value_enum, default_value = "auto", value_name = "SERVICE")]
    annotations: Service,
}

/// Whose words annotations have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Service {
    #[default]
    Auto,
    Github,
    None,
}

#[derive(Debug, Args)]
struct CompareArguments {
    /// A commit, a record's key or the start of one, published results (a folder or a file), or . for the workspace as it is
    a: String,
    /// The other side, as A
    b: String,
    /// Only these ops, or patterns of ops
    ops: Vec<String>,
    /// Also what did not change
    #[arg(long)]
    all: bool,
    /// By how many percent of A's time B may take longer
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    threshold: f64,
    /// How it is written
    #[arg(long, value_enum, default_value = "text")]
    format: ReportFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReportFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
struct ReproArguments {
    /// The variant, as in softmax/v2_tiling
    target: String,
    /// The case, as in small/float32/0 or edge/strided/float32 (default: the one that was rejected, else the first)
    case: Option<String>,
    /// Run it under Python's debugger, which stops where it raises
    #[arg(long)]
    pdb: bool,
    /// Write the files, and run nothing
    #[arg(long, conflicts_with = "pdb")]
    no_run: bool,
    /// Where they are written (default: a folder of its own in logs/repro)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct AffectedArguments {
    /// The commit: a branch, a tag, HEAD~1, a hash
    #[arg(long, value_name = "REV")]
    since: String,
    /// Print the actions instead of the ops
    #[arg(long)]
    targets: bool,
    /// How it is written; json has the ops, the actions and why they are affected
    #[arg(long, value_enum, default_value = "text")]
    format: ReportFormat,
}

impl BenchArguments {
    /// Returns the build that measures what is named.
    fn build(self) -> BuildArguments {
        let phase = vec![Phase::Bench];
        let targets = Targets { op: vec![self.op], variant: self.variant, phase, ..Targets::default() };
        BuildArguments { targets, figures: true, ..BuildArguments::default() }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GraphFormat {
    Dot,
    Mermaid,
    Json,
    /// The ops as the harness gets them, for scripts: declaration, variants, protocol, baselines
    Ops,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Stage {
    Ttir,
    Ttgir,
    Llir,
    Ptx,
    Cubin,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Ttir => "ttir",
            Self::Ttgir => "ttgir",
            Self::Llir => "llir",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
        }
    }
}

/// Runs the command line of this process and returns its exit code: 0 done, 1 a kernel was rejected, a required result is missing or a comparison found a regression, 2 bad use or bad ops.yaml, 3 the
/// machine failed, 130 interrupted.
#[must_use]
pub fn main() -> ExitCode {
    secrets::close_this_process();
    let code = limits::prepare().and_then(|()| run(Cli::parse())).unwrap_or_else(|error| {
        error.print();
        error.code()
    });
    // Output that was not written counts as a failure, whatever the command's own result.
    ExitCode::from(streams::lost().map_or(code, |why| {
        let error = CliError::machine(format!("cannot write to standard output: {why}"));
        error.print();
        error.code()
    }))
}

fn run(cli: Cli) -> Result<u8, CliError> {
    let common = &cli.common;
    match cli.command {
        Command::Build(arguments) if arguments.dry_run => inspect::dry_run(common, &arguments),
        Command::Build(arguments) => build::build(common, &arguments),
        Command::Watch(arguments) => watch::watch(common, arguments),
        Command::Bench(arguments) if arguments.sweep => sweep::sweep(common, &arguments),
        Command::Bench(arguments) => build::build(common, &arguments.build()),
        Command::Adopt(arguments) => adopt::adopt(common, &arguments),
        Command::Status(targets) => status::status(common, &targets),
        Command::Explain { targets } => explain::explain(common, &targets),
        Command::Repro(arguments) => repro::repro(common, &arguments),
        Command::Graph { targets, format } => inspect::graph(common, &targets, format),
        Command::Log { op } => inspect::log(common, &op),
        Command::Ir { target, stage, kernel, all } => {
            let wanted = if all { inspect::Kernels::All } else { inspect::Kernels::First };
            inspect::ir(common, &target, stage.name(), kernel.as_deref(), wanted)
        }
        Command::Publish => publish::publish(common),
        Command::Compare(arguments) => compare::run(common, &arguments),
        Command::Affected(arguments) => affected::run(common, &arguments),
        Command::Cache { command } => cache::cache(common, &command),
        Command::Schema => {
            streams::print(&format!("{:#}\n", t2t_spec::schema::schema()));
            Ok(0)
        }
        Command::Doctor => doctor::doctor(common),
        Command::Init => init::init(),
        Command::Clean { cache, yes } => {
            let what = if cache { tidy::What::LogsAndStore } else { tidy::What::Logs };
            tidy::clean(what, if yes { tidy::Ask::Never } else { tidy::Ask::OnATerminal })
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "t2t", &mut script);
            streams::print(&String::from_utf8_lossy(&script));
            Ok(0)
        }
    }
}

fn device(text: &str) -> Result<DeviceChoice, String> {
    match text.split_once(':') {
        None if text == "auto" => Ok(DeviceChoice::Auto),
        None if text == "cuda" => Ok(DeviceChoice::Cuda),
        None if text == "cpu" => Ok(DeviceChoice::Cpu),
        Some(("cuda", number)) => {
            number.parse().map(DeviceChoice::CudaNumber).map_err(|_| format!("`{number}` is not a number"))
        }
        _ => Err("it is one of auto, cuda, cuda:N, cpu".to_owned()),
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
