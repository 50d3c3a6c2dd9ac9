//! The declaration of an op for the harness, and the part of it that each phase's result depends on.
//!
//! The form is fixed by docs/design/harness.md. It does not know the other ops, nor in which order they stand.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use t2t_model::action::Phase;

use super::{Baseline, Binding, ComparedOutput, Input, Op, Precision, Profile, Protocol, Random, Reference, Variant};

/// Named values that enter a manifest.
pub type Facts = BTreeMap<String, Value>;

/// An op under one profile, with nothing left to default. Serialized, it is the request's `op`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Declaration {
    /// The op's name.
    pub name: String,
    /// The torch function, in full; None where there is a reference.
    pub torch: Option<String>,
    /// What stands in its place.
    pub reference: Option<Reference>,
    /// The tensors, and the scalars among them, in declared order.
    pub(crate) inputs: Vec<Input>,
    /// How each output is compared.
    pub(crate) outputs: Option<Vec<ComparedOutput>>,
    /// What must hold of results that are drawn at random.
    pub(crate) random: Option<Random>,
    /// The other arguments.
    pub(crate) kwargs: BTreeMap<String, Value>,
    /// The tested dtypes.
    pub(crate) dtypes: Vec<String>,
    /// The sizes that are measured.
    pub sizes: BTreeMap<String, Binding>,
    /// The sizes that devices measure, on the interpreter, which runs smaller ones: what is launched there is reached by smaller cases.
    pub(crate) measured: BTreeMap<String, Binding>,
    /// The sizes that are checked.
    pub(crate) check_sizes: BTreeMap<String, Binding>,
    /// How many seeds a declared case has.
    pub(crate) seeds: u64,
    /// The edges that are not asked for, each with the reason that is given.
    pub(crate) edges: BTreeMap<String, Option<String>>,
    /// The dims that `dims` fixes. Others may have other lengths, whatever the sizes have in common.
    pub(crate) fixed: Vec<String>,
    /// `[atol, rtol]` by dtype.
    pub(crate) tolerances: BTreeMap<String, [f64; 2]>,
    /// How exact float32 products must be.
    pub(crate) precision: Precision,
    /// The inputs that the op may change.
    pub(crate) mutates: Vec<String>,
    /// The inputs in which a kernel may leave anything.
    pub(crate) overwrites: Vec<String>,
    /// The aten operations that torch may compute for a wrapper.
    pub(crate) allow: Vec<String>,
    /// Whether gradients are checked as well.
    pub(crate) backward: bool,
    /// Whether broadcast inputs are checked as well.
    pub(crate) broadcast: bool,
    /// Whether two runs must give the same bits.
    pub(crate) deterministic: bool,
    /// The op's `cases.py`, relative to the workspace.
    pub(crate) cases: Option<String>,
    /// Requests have this beside the op.
    #[serde(skip)]
    pub protocol: Protocol,
    /// Requests have this beside the op.
    #[serde(skip)]
    pub baselines: Vec<Baseline>,
}

impl Op {
    /// Returns the op's declaration for a lane.
    #[must_use]
    pub fn declaration(&self, profile: Profile) -> Declaration {
        let settings = self.settings(profile).clone();
        Declaration {
            name: self.name.clone(),
            torch: self.torch.as_ref().map(|name| name.as_str().to_owned()),
            reference: self.reference.clone(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            random: self.random.clone(),
            kwargs: self.kwargs.clone(),
            dtypes: settings.dtypes,
            measured: match profile {
                Profile::Cpu => self.settings(Profile::Cuda).sizes.clone(),
                Profile::Cuda => BTreeMap::new(),
            },
            sizes: settings.sizes,
            check_sizes: settings.check_sizes,
            seeds: settings.seeds,
            edges: settings.edges,
            fixed: settings.fixed,
            tolerances: settings.tolerances,
            precision: self.precision,
            mutates: self.mutates.clone(),
            overwrites: self.overwrites.clone(),
            allow: self.allow.clone(),
            backward: self.backward,
            broadcast: self.broadcast,
            deterministic: self.deterministic,
            cases: self.cases.clone(),
            protocol: settings.protocol,
            baselines: settings.baselines,
        }
    }
}

impl Declaration {
    /// Returns what a phase reads of the declaration: a change to anything else leaves its results fresh.
    ///
    /// Deadlines and retries are in no declaration. A bench does not read tolerances, although a sampled output of it is judged by
    /// them: it depends on the verdict of the check, so a new tolerance reruns it only where the verdict changed, or where the bench was rejected
    /// (`Action::judging`).
    #[must_use]
    pub fn facts(&self, phase: Phase) -> Facts {
        let fields = self.fields();
        select(&fields, Self::read_by(phase))
    }

    /// Returns what an author is told of the op, and an attempt depends on: all that a kernel must meet.
    #[must_use]
    pub fn asked(&self) -> Facts {
        select(&whole(self), ASKED)
    }

    /// Returns all its fields.
    #[must_use]
    pub fn fields(&self) -> Facts {
        let mut fields = whole(self);
        fields.insert("protocol".to_owned(), json!(self.protocol));
        fields.insert("baselines".to_owned(), json!(self.baselines));
        // What is timed decides which kernels are tuned. Without a word it is no fact.
        fields.extend(self.protocol.passes.map(|passes| ("passes".to_owned(), json!(passes))));
        fields
    }

    /// Returns the names of the fields that a phase reads, as [`Self::facts`] has them.
    #[must_use]
    pub fn read_by(phase: Phase) -> &'static [&'static str] {
        read_by(phase)
    }
}

/// What an author is told of an op.
const ASKED: &[&str] = &[
    "name",
    "torch",
    "reference",
    "inputs",
    "outputs",
    "random",
    "kwargs",
    "dtypes",
    "sizes",
    "edges",
    "fixed",
    "tolerances",
    "precision",
    "mutates",
    "overwrites",
    "allow",
    "backward",
    "broadcast",
    "deterministic",
];

impl Variant {
    /// Returns what an author is told of the variant, and an attempt depends on.
    #[must_use]
    pub fn asked(&self) -> Facts {
        select(&whole(self), &["name", "entry", "call", "methods", "deterministic"])
    }

    /// Returns whether its CUDA C++ stands in the Python file of its wrapper, which has torch build it (`load_inline`).
    #[must_use]
    pub fn is_inline(&self) -> bool {
        self.cuda.as_ref() == Some(&self.file)
    }

    /// Returns what a phase reads of the variant's declaration. Its file enters a key by its contents, and not here.
    #[must_use]
    pub fn facts(&self, phase: Phase) -> Facts {
        let read: &[&str] = match phase {
            // nvcc reads no Python.
            Phase::Compile if self.cuda.is_some() => &["cuda"],
            Phase::Compile => &["module", "entry", "call", "methods", "lanes"],
            Phase::Check => &["module", "cuda", "entry", "call", "methods", "lanes", "deterministic"],
            Phase::Tune | Phase::Bench => &["module", "cuda", "entry", "call", "methods"],
            Phase::Generate => &["name", "entry"],
            _ => &[],
        };
        select(&whole(self), read)
    }

    /// Returns the same of one whose Python file has torch build its CUDA C++: what torch would build is known once the wrapper runs.
    #[must_use]
    pub fn facts_of_extension(&self, phase: Phase) -> Facts {
        match phase {
            Phase::Compile => select(&whole(self), &["module", "cuda", "entry", "call", "methods", "lanes"]),
            _ => self.facts(phase),
        }
    }
}

fn whole(declared: &impl Serialize) -> Facts {
    match serde_json::to_value(declared) {
        Ok(Value::Object(fields)) => fields.into_iter().collect(),
        _ => unreachable!("a declaration is a mapping with text keys and finite numbers"),
    }
}

fn select(whole: &Facts, names: &[&str]) -> Facts {
    names
        .iter()
        .filter_map(|name| whole.get_key_value(*name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[rustfmt::skip]
fn read_by(phase: Phase) -> &'static [&'static str] {
    match phase {
        // The arithmetic bound of an op depends on the precision of its products.
        Phase::Analyze => &["torch", "reference", "inputs", "outputs", "random", "kwargs", "dtypes", "sizes", "precision"],
        // Its second round compiles the edge cases of the check, among them broadcast ones and backward passes.
        Phase::Compile => &[
            "reference", "inputs", "random", "kwargs", "dtypes", "sizes", "check_sizes", "seeds", "edges", "fixed",
            "mutates", "backward", "broadcast",
        ],
        // Which dims are free, and which lengths fit, shows in the sizes that are measured, too.
        Phase::Check => &[
            "torch", "reference", "inputs", "outputs", "random", "kwargs", "dtypes", "sizes", "measured", "check_sizes", "seeds",
            "edges", "fixed", "tolerances",
            "precision", "mutates", "overwrites", "allow", "backward", "broadcast", "deterministic", "cases",
        ],
        // A class is constructed as the reference is.
        Phase::Tune => &["reference", "inputs", "random", "kwargs", "dtypes", "sizes", "passes", "mutates"],
        // Torch runs beside the variant, in the declared precision.
        Phase::Bench => &[
            "torch", "reference", "inputs", "random", "kwargs", "dtypes", "sizes", "precision", "protocol", "cases",
        ],
        Phase::Baseline => &[
            "torch", "reference", "inputs", "kwargs", "dtypes", "sizes", "precision", "protocol", "baselines",
        ],
        Phase::Generate => &["torch", "backward"],
        Phase::Calibrate | Phase::Select | Phase::Log | Phase::Summary => &[],
    }
}
