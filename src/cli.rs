//! The command line: commands and their options.
//!
//! It and the reporter are the only places that print. Results go to standard output, everything else to standard error.
#![expect(clippy::doc_markdown, reason = "clap prints these comments as help, where backticks are noise")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;
use t2t_spec::remote::Mode;
use t2t_store::secrets;

use crate::session::DeviceChoice;

mod add;
mod adopt;
mod alone;
mod affected;
mod against;
mod answer;
mod attempts;
mod arguments;
mod artifact;
mod build;
mod cache;
mod cluster;
mod compare;
mod complete;
mod context;
mod declared;
mod doctor;
mod dry_run;
mod edit;
mod edits;
mod error;
mod executor;
mod explain;
mod export;
mod held;
mod import;
mod improve;
mod init;
mod inspect;
mod limit_hint;
mod limits;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod measured;
mod models;
mod new;
mod outputs;
mod perform;
mod picture;
mod plan;
mod profile;
mod publish;
mod remote;
mod report;
mod repro;
mod revision;
mod running;
mod script;
mod setup;
mod signing;
mod skill;
mod status;
mod streams;
mod stages;
mod sweep;
mod tidy;
mod totals;
mod trial;
mod unchanged;
mod watch;

use self::arguments::{
    AddArguments, AdoptArguments, AffectedArguments, AttemptsArguments, BenchArguments, BuildArguments,
    CompareArguments, ExportArguments, ExportForm, GenerateArguments, GraphFormat, ImportForm, ImproveArguments,
    NewArguments, ProfileArguments, ReportArguments, ReportFormat, ReproArguments, Service, Stage, Targets,
    WatchArguments,
};
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
#[derive(Debug, Clone, Args)]
struct Common {
    /// The Python that has torch and triton (default: $T2T_PYTHON, $VIRTUAL_ENV, the workspace's .venv, t2t's own folder)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Where kernels are checked and measured: auto, cuda, cuda:N, cpu (Triton's interpreter)
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    device: DeviceChoice,
    /// Ask for the results of a device that this machine lacks, as in nvidia-h200: those in cache/ and in assets/results/MODEL. A build takes several, with commas between them
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
    /// End when the process with this number does, which started this one
    #[arg(long, global = true, hide = true, value_name = "PID")]
    parent: Option<i32>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring everything, or the named targets, up to date
    Build(BuildArguments),
    /// After each change of a file, build what became stale
    Watch(WatchArguments),
    /// Measure an op's variants; with --sweep at sizes in powers of two, which no build keeps
    Bench(BenchArguments),
    /// Record what each kernel of a variant takes on the device, and say what bounds it
    Profile(ProfileArguments),
    /// Make ops and their kernels from the names of torch operations; in an empty folder also the workspace
    Add(AddArguments),
    /// Declare an op for an existing kernel, check it, and report the result
    Adopt(AdoptArguments),
    /// Make ops of the problems of a public benchmark
    Import {
        #[command(subcommand)]
        form: ImportForm,
    },
    /// Make one more variant of an op, as a copy of one that is there
    New(NewArguments),
    /// Ask the generator again for kernels that it makes, and build what comes of it; earlier results are kept
    Generate(GenerateArguments),
    /// List the attempts at generated kernels; with --show or --diff print the kernel of one
    Attempts(AttemptsArguments),
    /// Ask an author for a faster kernel, round by round, with the figures; the best keeps its place
    Improve(ImproveArguments),
    /// Say what is up to date and what is not
    Status {
        #[command(flatten)]
        targets: Targets,
        /// How it is written; json has every action: its state, outcome, class, key, and why it is stale
        #[arg(long, value_enum, default_value = "text")]
        format: ReportFormat,
    },
    /// Say why an action is stale, or how it ended and what its result depends on; or what a class of rejections means
    Explain {
        /// As in softmax/v2_tiling:check, softmax:log, softmax; mismatch
        #[arg(required = true, add = complete::target())]
        targets: Vec<String>,
        /// How it is written; json has the named classes, and of each named action its state, outcome, reasons, key and facts
        #[arg(long, value_enum, default_value = "text")]
        format: ReportFormat,
    },
    /// Write a case of a check as a Python file that runs without t2t, and run it
    #[command(visible_alias = "debug")]
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
        #[arg(add = complete::op())]
        op: String,
    },
    /// Print a document of an action's result as JSON: an analysis, evidence, resources, figures
    Artifact {
        /// The action, as in softmax:analyze, softmax/v2_tiling:check
        #[arg(add = complete::target())]
        target: String,
        /// Which document, as in analysis, evidence, resources, bench (default: their names and sizes)
        name: Option<String>,
    },
    /// Print the compiler's output for a variant's kernels
    Ir {
        /// As in softmax/v4_optimized
        #[arg(add = complete::variant())]
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
        /// Write a page for a browser instead: source, TTGIR and PTX side by side, with lines that belong together
        #[arg(long, value_name = "FILE", conflicts_with = "stage")]
        html: Option<PathBuf>,
    },
    /// Write the results of this device to assets/results/DEVICE, for machines that lack it
    Publish,
    /// Draw the published speedups of a device as an SVG: each op's selected kernel beside torch and torch.compile
    Picture {
        /// As in nvidia-h200
        #[arg(value_name = "DEVICE")]
        of: String,
        /// The file to write (default: standard output)
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write a page for a browser: verdicts and speedups of all ops, charts, failures; one file that needs nothing beside it. With --serve it follows builds
    Report(ReportArguments),
    /// Write the chosen kernels of ops as a Python package with tests, to be used without t2t
    Export(ExportArguments),
    /// Compare the figures of two sides; the exit code is 1 if B is slower beyond the threshold
    Compare(CompareArguments),
    /// Print the ops that the changes since a commit can affect: committed, uncommitted and untracked ones
    Affected(AffectedArguments),
    /// Maintain cache/: verify, stats, gc, export, import
    Cache {
        #[command(subcommand)]
        command: cache::CacheCommand,
    },
    /// Perform one action of a workspace on another machine: pack, lacks, facts, run
    #[command(hide = true)]
    Perform {
        #[command(subcommand)]
        command: perform::PerformCommand,
    },
    /// Make this folder a workspace: write .gitignore and, if there is none, an ops.yaml with a first op
    Init,
    /// Print the JSON Schema of ops.yaml
    Schema,
    /// Say what this machine has and what it lacks
    Doctor {
        /// How it is written; json has the same as names and values
        #[arg(long, value_enum, default_value = "text")]
        format: ReportFormat,
    },
    /// Remove logs/ and, with --cache, cache/
    Clean {
        /// The store too: every result is lost, but for what persons wrote and something else replaced
        #[arg(long)]
        cache: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Serve agents: the Model Context Protocol on standard input and output
    #[cfg(feature = "mcp")]
    Mcp {
        /// The workspace (default: the one around the current folder, else that folder)
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
    /// Teach agents to work with t2t: skill install
    Skill {
        #[command(subcommand)]
        command: skill::SkillCommand,
    },
    /// Print a script that has a shell complete commands, options, ops, variants and phases
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands
    Man {
        /// The folder to write them to: t2t.1, t2t-build.1, …
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Runs the command line of this process and returns its exit code: 0 done, 1 a kernel was rejected, a required result is missing or a comparison found a regression, 2 bad use or bad ops.yaml, 3 the
/// machine failed, 130 interrupted.
#[must_use]
pub fn main() -> ExitCode {
    secrets::close_this_process();
    // A shell asks, and the answer is all that is printed. Otherwise nothing is done.
    CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE).complete();
    let code = limits::prepare().and_then(|()| Cli::try_parse().map_or_else(|said| error::told(&said), begin));
    let code = code.unwrap_or_else(|error| {
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

/// Runs the command, unless the process that it is bound to has ended meanwhile.
fn begin(cli: Cli) -> Result<u8, CliError> {
    match cli.common.parent {
        Some(parent) if !context::ends_with(parent) => Err(CliError::Interrupted),
        _ => run(cli),
    }
}

fn run(cli: Cli) -> Result<u8, CliError> {
    let common = &cli.common;
    match cli.command {
        Command::Build(arguments) if arguments.dry_run => dry_run::dry_run(common, &arguments),
        Command::Build(arguments) => build::build(common, &arguments),
        Command::Watch(arguments) => watch::watch(common, arguments),
        Command::Bench(arguments) if arguments.sweep => sweep::sweep(common, &arguments),
        Command::Bench(BenchArguments { against: Some(other), op, variant, json, .. }) => {
            against::against(common, &against::Asked { op, variant, other, is_json: json })
        }
        Command::Bench(arguments) => build::build(common, &arguments.build()),
        Command::Profile(arguments) => profile::profile(common, &arguments),
        Command::Add(arguments) => add::add(common, &arguments),
        Command::Adopt(arguments) => adopt::adopt(common, &arguments),
        Command::Import { form } => import::import(common, &form),
        Command::New(arguments) => new::new(&arguments),
        Command::Generate(arguments) => build::build(common, &arguments.build()),
        Command::Attempts(arguments) => attempts::attempts(common, &arguments),
        Command::Improve(arguments) => improve::improve(common, &arguments),
        Command::Status { targets, format } => status::status(common, &targets, format),
        Command::Explain { targets, format } => explain::explain(common, &targets, format),
        Command::Repro(arguments) => repro::repro(common, &arguments),
        Command::Graph { targets, format } => inspect::graph(common, &targets, format),
        Command::Log { op } => inspect::log(common, &op),
        Command::Artifact { target, name } => artifact::artifact(common, &target, name.as_deref()),
        Command::Ir { target, stage, kernel, all, html } => {
            let wanted = if all { inspect::Kernels::All } else { inspect::Kernels::First };
            match html {
                Some(file) => stages::write(common, &target, kernel.as_deref(), wanted, &file),
                None => inspect::ir(common, &target, stage.name(), kernel.as_deref(), wanted),
            }
        }
        Command::Picture { of, out } => picture::picture(&of, out.as_deref()),
        Command::Publish => publish::publish(common),
        Command::Report(arguments) => report::report(common, &arguments),
        Command::Export(arguments) => export::export(common, &arguments),
        Command::Compare(arguments) => compare::run(common, &arguments),
        Command::Affected(arguments) => affected::run(common, &arguments),
        Command::Cache { command } => cache::cache(common, &command),
        Command::Perform { command } => perform::perform(common, &command),
        Command::Schema => {
            streams::print(&format!("{:#}\n", t2t_spec::schema::schema()));
            Ok(0)
        }
        Command::Doctor { format } => doctor::doctor(common, format),
        Command::Init => init::init(),
        Command::Clean { cache, yes } => {
            let what = if cache { tidy::What::LogsAndStore } else { tidy::What::Logs };
            tidy::clean(what, if yes { tidy::Ask::Never } else { tidy::Ask::OnATerminal })
        }
        #[cfg(feature = "mcp")]
        Command::Mcp { workspace } => mcp::mcp(common, workspace),
        Command::Skill { command } => skill::skill(&command),
        Command::Completions { shell } => {
            streams::print(&complete::script(shell)?);
            Ok(0)
        }
        Command::Man { out } => man::man(Cli::command(), out.as_deref()),
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
