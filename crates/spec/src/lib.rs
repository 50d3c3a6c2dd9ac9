//! What ops.yaml declares: the ops, their kernels, and how they are judged and measured.
//!
//! A [`Spec`] is a value in which everything is resolved: defaults, profiles, dims, names. It does not know whether kernel files
//! exist, which devices there are, or what has been built.

mod fault;
mod identifier;
pub mod remote;
pub mod executor;
pub mod names;
pub mod part;
mod sections;
mod kinds;
pub mod fields;
pub mod schema;
mod node;
mod parse;
mod json;
mod aliases;
mod conform;
mod layers;
mod torch;
mod reference;
mod sizes;
mod expression;
pub mod doubling;
mod built_in;
pub mod entry;
pub mod listed;
mod reader;
mod inputs;
mod call;
mod inits;
mod outputs;
mod random;
pub mod authors;
mod variants;
mod edges;
mod baselines;
mod settings;
mod check;
mod declare;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;
use t2t_model::action::Phase;
use t2t_model::problem::{Position, Problem};
use t2t_model::signature::Trust;

use self::authors::Authors;
pub use self::baselines::{Baseline, BaselineFunction};
pub use self::declare::{Declaration, Facts};
use self::expression::Expression;
pub(crate) use self::random::Random;
pub(crate) use self::reference::Reference;
pub use self::torch::{Signature, Signatures, TorchName, TorchNames};
pub(crate) use t2t_protocol::{Binding, ComparedOutput, Init, Layout, Precision, Quantity};
pub use t2t_protocol::{Methods, Passes, Protocol, StopRule};

/// The version of ops.yaml that this t2t reads.
///
/// History: 1 is the first.
pub(crate) const VERSION: i64 = 1;

/// The largest ops.yaml that is read, in bytes. Ten thousand ops take an eighth of it.
pub const FILE_LIMIT: usize = 16 << 20;

/// Which of an op's settings count: those with the CPU profile applied (the interpreter), or those without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// The interpreter.
    Cpu,
    /// A CUDA device; also what analyses and compiles speak of.
    Cuda,
}

/// A whole ops.yaml.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Device models or architectures to compile for; empty for the present device's.
    pub targets: Vec<String>,
    /// The remote cache, if one is declared.
    pub remote: Option<remote::Remote>,
    /// Which machines perform what depends on a device, if that is declared.
    pub executor: Option<executor::Executor>,
    /// The keys whose signatures count.
    pub trust: Trust,
    /// Folders that kernels import from and read beside those that they do anyway, relative to the workspace.
    pub sources: Vec<String>,
    /// What writes kernels beside the embedded generator.
    pub authors: Authors,
    /// The ops in the order of the file.
    pub ops: Vec<Op>,
    /// Where each op is in `ops`.
    places: HashMap<String, usize>,
}

/// A torch operation and the kernels meant to replace it.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// The name under `ops`.
    pub name: String,
    /// Where ops.yaml declares it.
    pub place: Position,
    /// The torch function; None where there is a reference.
    pub torch: Option<TorchName>,
    /// What stands in its place.
    pub reference: Option<Reference>,
    /// The tensors, and the scalars among them, in declared order; each member of a list is one.
    pub inputs: Vec<Input>,
    /// How each output is compared, in torch's order; None where nothing is said.
    pub(crate) outputs: Option<Vec<ComparedOutput>>,
    /// What must hold of results that are drawn at random; None where none are.
    pub(crate) random: Option<Random>,
    /// The other arguments. A text that is a dim's name means its length.
    pub kwargs: BTreeMap<String, Value>,
    /// The variants in declared order, which is the order of growing complexity.
    pub variants: Vec<Variant>,
    /// The op's `cases.py`, relative to the workspace.
    pub cases: Option<String>,
    /// How exact float32 products must be.
    pub precision: Precision,
    /// The inputs that the op may change.
    pub mutates: Vec<String>,
    /// The inputs in which a kernel may leave anything.
    pub overwrites: Vec<String>,
    /// The aten operations that torch may compute for a wrapper.
    pub allow: Vec<String>,
    /// Whether gradients are checked as well.
    pub backward: bool,
    /// Whether broadcast inputs are checked as well.
    pub(crate) broadcast: bool,
    /// Whether two runs must give the same bits.
    pub(crate) deterministic: bool,
    /// The template of the op's log, relative to the workspace.
    pub template: String,
    cpu: Settings,
    cuda: Settings,
}

/// What a profile can change.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The tested dtypes; the first is measured.
    pub dtypes: Vec<String>,
    /// The lengths of all dims by size.
    pub sizes: BTreeMap<String, Binding>,
    /// The lengths of all dims by size, of the sizes that are checked.
    pub check_sizes: BTreeMap<String, Binding>,
    /// How many seeds a declared case has.
    pub seeds: u64,
    /// `[atol, rtol]` by dtype.
    pub tolerances: BTreeMap<String, [f64; 2]>,
    /// The edges that are not asked for, each with the reason that is given.
    pub edges: BTreeMap<String, Option<String>>,
    /// The dims that `dims` gives a length: a kernel may rely on it.
    pub(crate) fixed: Vec<String>,
    /// How often a generator may try again.
    pub max_retries: u64,
    /// The deadline of a check.
    pub(crate) check_timeout: Duration,
    /// How a size is measured.
    pub protocol: Protocol,
    /// What the kernels are compared with on a device, torch first among them.
    pub baselines: Vec<Baseline>,
    /// The deadline of a bench.
    pub(crate) bench_timeout: Duration,
}

/// What stands in an input's place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Input {
    /// A tensor, or a member of a list of them.
    Tensor(Tensor),
    /// A value that is no tensor.
    Scalar {
        /// The argument's name in torch.
        name: String,
        /// The value.
        scalar: Value,
    },
}

impl Input {
    /// Returns the tensor, if it is one.
    #[must_use]
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            Self::Scalar { .. } => None,
        }
    }

    /// Returns the name of the argument that it stands for, or is a member of.
    #[must_use]
    pub fn argument(&self) -> &str {
        match self {
            Self::Tensor(tensor) => tensor.list.as_ref().unwrap_or(&tensor.name),
            Self::Scalar { name, .. } => name,
        }
    }
}

/// A tensor argument.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tensor {
    /// The argument's name in torch; of a member of a list with its number, as in `tensors.0`.
    pub(crate) name: String,
    /// The name of the list that it is a member of.
    pub list: Option<String>,
    /// The lengths of its dims.
    pub(crate) shape: Vec<Dim>,
    /// None where it follows the tested dtype.
    pub dtype: Option<String>,
    /// How its values are drawn.
    pub init: Init,
    /// Whether its gradient is checked where the op is checked backward.
    pub requires_grad: bool,
    /// How it lies in memory: `contiguous`, `transposed`, `strided`, `channels_last`. Of several, cases take one after the other.
    pub(crate) layout: Layout,
    /// Whether it is absent in some cases.
    pub optional: bool,
}

/// One length of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dim {
    /// A fixed length.
    Length(u64),
    /// A dim, which a size binds, or an expression of dims.
    Of(Expression),
}

/// A kernel of an op: a wrapper in a file of the workspace, or in an installed module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// The name under `variants`.
    pub name: String,
    /// Relative to the workspace, with `/`; of an installed module its name.
    pub file: String,
    /// The installed module that defines the wrapper, where no file of the workspace does.
    pub module: Option<String>,
    /// The file with the kernels in CUDA C++ that the wrapper launches, relative to the workspace: a `.cu`, or the wrapper's own where that has torch build them. None where they are in Triton; in Triton's requests there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The wrapper that the file must define, as in `softmax` or `Softmax.apply`.
    pub entry: String,
    /// How it is called, as in `entry(input, dim)`; None where names decide.
    pub call: Option<String>,
    /// The methods of an entry that is an operator; None where nothing is said of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Methods>,
    /// Of `interpreter` and `cuda`, those on which it can be judged.
    pub(crate) lanes: Vec<String>,
    /// Whether two runs must give the same bits.
    pub(crate) deterministic: bool,
    /// What writes the file where no person did; None where nothing does. In no request.
    #[serde(skip)]
    pub generator: Option<String>,
}

impl Spec {
    /// Returns the spec of these ops, in the order of the file.
    fn new(
        targets: Vec<String>,
        (remote, executor): (Option<remote::Remote>, Option<executor::Executor>),
        trust: Trust,
        sources: Vec<String>,
        authors: Authors,
        ops: Vec<Op>,
    ) -> Self {
        let places = ops.iter().enumerate().map(|(place, op)| (op.name.clone(), place)).collect();
        Self { targets, remote, executor, trust, sources, authors, ops, places }
    }

    /// Reads `bytes`, the contents of `file`. `names` are the functions that torch has; without them torch names are not checked.
    ///
    /// # Errors
    /// Everything that is wrong with the file, ordered by place.
    pub fn parse(file: &str, bytes: &[u8], names: Option<&TorchNames>) -> Result<Spec, Vec<Problem>> {
        let text = text_of(file, bytes).map_err(|problem| vec![problem])?;
        let mut faults = Vec::new();
        let spec = parse::parse(text, &mut faults).map_err(|fault| faults.push(fault)).ok().and_then(|mut root| {
            aliases::resolve(&mut root);
            check::check(&root, names, &mut faults)
        });
        match spec {
            Some(spec) if faults.is_empty() => Ok(spec),
            _ => Err(fault::problems(file, text, faults)),
        }
    }

    /// Returns the op of that name.
    #[must_use]
    pub fn op(&self, name: &str) -> Option<&Op> {
        self.places.get(name).map(|place| &self.ops[*place])
    }
}

impl Op {
    /// Returns the settings that count under a profile.
    #[must_use]
    pub fn settings(&self, profile: Profile) -> &Settings {
        match profile {
            Profile::Cpu => &self.cpu,
            Profile::Cuda => &self.cuda,
        }
    }

    /// Returns whether its results are drawn at random.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.random.is_some()
    }

    /// Returns whether an argument has the length of a dim in it, and so another value in another size.
    #[must_use]
    pub fn is_of_lengths(&self, argument: &str) -> bool {
        let mut named = BTreeSet::new();
        self.kwargs.get(argument).inspect(|value| settings::strings(value, &mut named));
        self.cuda.sizes.values().flat_map(Binding::keys).any(|dim| named.contains(dim))
    }

    /// Returns the files that hold values of inputs, relative to the workspace.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().filter_map(|input| input.tensor()?.init.file())
    }

    /// Returns the files of the workspace that have functions which kernels are compared with on a device.
    pub fn baseline_files(&self) -> impl Iterator<Item = &String> {
        self.cuda.baselines.iter().filter_map(|baseline| baseline.function()?.file.as_ref())
    }

    /// Returns the variant of that name.
    #[must_use]
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Returns the longest that an action of this op may take. Phases that run no child have no deadline.
    #[must_use]
    pub fn timeout(&self, phase: Phase, profile: Profile) -> Option<Duration> {
        let settings = self.settings(profile);
        match phase {
            Phase::Analyze | Phase::Generate | Phase::Check => Some(settings.check_timeout),
            Phase::Compile | Phase::Tune | Phase::Bench | Phase::Baseline => Some(settings.bench_timeout),
            Phase::Calibrate | Phase::Select | Phase::Log | Phase::Summary => None,
        }
    }
}

impl Serialize for Dim {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Dim::Length(length) => to.serialize_u64(*length),
            Dim::Of(expression) => to.collect_str(expression),
        }
    }
}

fn text_of<'bytes>(file: &str, bytes: &'bytes [u8]) -> Result<&'bytes str, Problem> {
    if bytes.len() > FILE_LIMIT {
        let message = format!("the file has {} bytes, more than the {FILE_LIMIT} that are read", bytes.len());
        let hint = "split the repository, or move cases into `cases.py` files";
        return Err(Problem::of_file(file, message).with_hint(hint));
    }
    std::str::from_utf8(bytes).map_err(|error| not_utf8(file, bytes, error.valid_up_to()))
}

/// Says where the first wrong byte is; the line is shown with `�` in its place.
fn not_utf8(file: &str, bytes: &[u8], at: usize) -> Problem {
    let before = String::from_utf8_lossy(&bytes[..at]);
    let line = before.rsplit('\n').next().unwrap_or_default();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let place = Position { line: number(before.matches('\n').count() + 1), column: number(line.chars().count() + 1) };
    let text = String::from_utf8_lossy(bytes);
    let message = format!("not UTF-8: byte 0x{:02x} at offset {at}", bytes[at]);
    t2t_model::problem::Listing::new(file, &text).problem(place, message).with_hint("save the file as UTF-8")
}
