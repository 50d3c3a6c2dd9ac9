//! Requests: what the children of an action are told, from what ops.yaml declares and the machine has.
//!
//! It does not know how children are run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use t2t_host::cores::Shares;
use t2t_model::action::{Action, DeviceClass, Lane, Phase};
use t2t_plan::graph::expand::{Configurations, Inventory, profile};
use t2t_protocol::{
    Arguments, Common, Input, More, OfAnalyze, OfBaseline, OfBench, OfCheck, OfCompile, OfCompileCuda, OfTiming, Part,
    ServerKind, Taken,
};
use t2t_spec::{Declaration, Op, Profile, Spec, Variant};

use crate::engine::inputs::Inputs;
use crate::engine::job::Job;

/// What all requests of a build share.
#[derive(Debug)]
pub struct Requests<'a> {
    /// The declared ops.
    pub spec: &'a Spec,
    /// What the workspace and the machine hold.
    pub inventory: &'a Inventory,
    /// The workspace.
    pub root: &'a Path,
    /// The file of the op catalogue.
    pub catalogue: &'a Path,
    /// What kernel code may read beside the kernels.
    pub readable: &'a [PathBuf],
    /// How the cores are shared.
    pub shares: &'a Shares,
    /// How many slots the CPU lane has.
    pub jobs: usize,
    /// What values of a check's inputs depend on.
    pub salt: &'a str,
}

/// What an action is given beside its declaration.
#[derive(Debug, Default)]
pub struct Given {
    /// Archives of compiled kernels.
    pub warm: Vec<PathBuf>,
    /// The document `tune`.
    pub tune: Option<Value>,
    /// The document `lengths`.
    pub lengths: BTreeMap<String, Taken>,
    /// The UUID of the device it runs on.
    pub device: Option<String>,
    /// The cores it runs on.
    pub cores: Option<Vec<usize>>,
    /// How much it gives way to others.
    pub nice: Option<i32>,
    /// How many processes it may compile in.
    pub processes: usize,
    /// How many children may be ready for its device.
    pub ready: usize,
    /// The inputs of the op's own cases, where the check of another variant prepared them.
    pub inputs: Option<Inputs>,
    /// Whether there is a slot for another child beside it.
    pub has_room: bool,
}

impl Requests<'_> {
    /// Returns the job of `action`, which runs Python, in the folder `scratch`.
    #[must_use]
    pub fn job(&self, action: &Action, given: &Given, scratch: PathBuf) -> Job {
        let target = action.target();
        // The calibration is of no op.
        let op = self.spec.op(&target.op);
        let variant = op.and_then(|op| op.variant(target.variant.as_deref()?));
        let mut read = given.warm.clone();
        read.push(self.catalogue.to_owned());
        read.extend(op.and_then(|op| op.cases.as_ref()).map(|file| self.root.join(file)));
        read.extend(action.sources.keys().map(|path| path.under(self.root)));
        Job {
            target: target.clone(),
            kind: self.kind(target.phase),
            arguments: self.arguments(op, variant, action, given),
            read,
            readable: self.readable.to_vec(),
            sources: self.spec.sources.clone(),
            root: self.root.to_owned(),
            scratch,
            deadline: action.deadline,
            threads: self.threads(action),
            device: given.device.clone(),
            cores: given.cores.clone(),
            spare: self.shares.cpu.clone(),
            nice: given.nice,
            processes: given.processes,
            ready: given.ready,
            inputs: given.inputs.clone(),
            is_extension: variant.is_some_and(|variant| self.inventory.is_extension(variant)),
            has_room: given.has_room,
            asking: None,
        }
    }

    fn kind(&self, phase: Phase) -> ServerKind {
        match (phase, &self.inventory.device.class) {
            (Phase::Analyze | Phase::Compile, _) => ServerKind::Compiled,
            (_, DeviceClass::Cuda(_)) => ServerKind::Device,
            (_, DeviceClass::Interpreter) => ServerKind::Interpreter,
        }
    }

    fn arguments(&self, op: Option<&Op>, variant: Option<&Variant>, action: &Action, given: &Given) -> Arguments {
        let phase = action.target().phase;
        let declaration = op.map(|op| op.declaration(self.profile(phase)));
        let warm = given.warm.iter().map(|path| path.to_string_lossy().into_owned());
        Arguments {
            common: Common {
                root: self.root.to_string_lossy().into_owned(),
                // Each child has its own.
                scratch: String::new(),
                lane: self.lane(phase),
                model: self.inventory.device.class.to_string(),
                devices: self.inventory.targets.values().cloned().collect(),
                warm: warm.collect(),
                deadline_s: action.deadline.as_secs_f64(),
                is_told_of_quiet: false,
                timed_until: None,
            },
            op: declaration.as_ref().map(|declaration| t2t_protocol::Declaration {
                lengths: given.lengths.clone(),
                ..self.declared(declaration)
            }),
            variant: variant.map(told),
            part: match variant {
                Some(Variant { cuda: Some(_), .. }) if phase == Phase::Compile => self.of_cuda(action, given),
                _ => self.part(phase, declaration.as_ref(), given),
            },
            more: More::Nothing {},
        }
    }

    /// Returns what the children of a phase are told beside what all are.
    fn part(&self, phase: Phase, declaration: Option<&Declaration>, given: &Given) -> Part {
        match (phase, declaration) {
            (Phase::Analyze, _) => {
                Part::Analyze(OfAnalyze { catalogue: self.catalogue.to_string_lossy().into_owned() })
            }
            (Phase::Compile, _) => Part::Compile(OfCompile {
                targets: with_ids(&self.inventory.targets),
                is_every: self.inventory.configurations == Configurations::All,
                processes: given.processes as u64,
            }),
            (Phase::Check, _) => Part::Check(OfCheck { salt: self.salt.to_owned() }),
            (Phase::Tune, Some(op)) => Part::Tune(OfTiming { protocol: told(&op.protocol) }),
            (Phase::Bench, Some(op)) => {
                Part::Bench(OfBench { protocol: told(&op.protocol), tune: given.tune.clone().unwrap_or_default() })
            }
            (Phase::Baseline, Some(op)) => {
                let functions = op.baselines.iter().filter_map(|baseline| baseline.function()).map(told).collect();
                Part::Baseline(OfBaseline { protocol: told(&op.protocol), baselines: own_names(op), functions })
            }
            _ => Part::Calibrate {},
        }
    }

    /// Returns what the compile of a variant in CUDA C++ is told beside what all children are.
    fn of_cuda(&self, action: &Action, given: &Given) -> Part {
        Part::CompileCuda(OfCompileCuda {
            architectures: self.inventory.architectures.clone(),
            files: action.sources.keys().map(ToString::to_string).collect(),
            processes: given.processes as u64,
        })
    }

    /// Returns the declaration as children read it: a reference knows in which folder its file lies, and files that hold values are named as children find them.
    fn declared(&self, declaration: &Declaration) -> t2t_protocol::Declaration {
        let mut declared: t2t_protocol::Declaration = told(declaration);
        if let Some(reference) = &mut declared.reference {
            reference.root = Some(self.root.to_string_lossy().into_owned());
        }
        for input in &mut declared.inputs {
            let Input::Tensor(tensor) = input else { continue };
            if let Some(path) = tensor.init.file_mut() {
                *path = self.root.join(&*path).to_string_lossy().into_owned();
            }
        }
        declared
    }

    fn profile(&self, phase: Phase) -> Profile {
        match phase {
            Phase::Analyze | Phase::Compile => Profile::Cuda,
            _ => profile(&self.inventory.device.class),
        }
    }

    fn lane(&self, phase: Phase) -> t2t_protocol::Lane {
        match (phase, &self.inventory.device.class) {
            (Phase::Analyze | Phase::Compile, _) => t2t_protocol::Lane::Compile,
            (_, DeviceClass::Cuda(_)) => t2t_protocol::Lane::Cuda,
            (_, DeviceClass::Interpreter) => t2t_protocol::Lane::Interpreter,
        }
    }

    /// A measurement has all cores of its lane; other children share them.
    fn threads(&self, action: &Action) -> usize {
        match action.lane {
            Lane::Cpu => (self.shares.left / self.jobs.max(1)).max(1),
            Lane::WholeCpu => self.shares.left,
            Lane::Device => self.shares.per_device,
            Lane::Author => 1,
        }
    }
}

/// Returns the names of torch itself among the baselines of an op: eager, and as torch.compile makes it.
pub(crate) fn own_names(declaration: &Declaration) -> Vec<String> {
    let own = declaration.baselines.iter().filter(|baseline| baseline.function().is_none());
    own.map(|baseline| baseline.name().to_owned()).collect()
}

fn with_ids(targets: &BTreeMap<String, Value>) -> Vec<Value> {
    let rows = targets.iter().map(|(id, row)| {
        let mut row = row.clone();
        row["id"] = id.as_str().into();
        row
    });
    rows.collect()
}

/// Returns what ops.yaml declares as the protocol has it: the same mapping.
pub(crate) fn told<T: DeserializeOwned>(declared: &impl Serialize) -> T {
    serde_json::from_value(json!(declared)).expect("the protocol has all that ops.yaml can declare")
}
