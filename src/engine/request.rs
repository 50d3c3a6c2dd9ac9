//! Requests: what the children of an action are told, from what ops.yaml declares and the machine has.
//!
//! It does not know how children are run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use t2t_host::cores::Shares;
use t2t_model::action::{Action, DeviceClass, Lane, Phase};
use t2t_plan::graph::expand::{Configurations, Inventory, profile};
use t2t_protocol::ServerKind;
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
        let mut arguments = self.arguments(op, variant, target.phase, given);
        arguments.insert("deadline_s".to_owned(), action.deadline.as_secs_f64().into());
        Job {
            target: target.clone(),
            kind: self.kind(target.phase),
            arguments,
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
            has_room: given.has_room,
        }
    }

    fn kind(&self, phase: Phase) -> ServerKind {
        match (phase, &self.inventory.device.class) {
            (Phase::Analyze | Phase::Compile, _) => ServerKind::Compiled,
            (_, DeviceClass::Cuda(_)) => ServerKind::Device,
            (_, DeviceClass::Interpreter) => ServerKind::Interpreter,
        }
    }

    fn arguments(&self, op: Option<&Op>, variant: Option<&Variant>, phase: Phase, given: &Given) -> Map<String, Value> {
        let declaration = op.map(|op| op.declaration(self.profile(phase)));
        let mut arguments = Map::new();
        let mut put = |name: &str, value: Value| arguments.insert(name.to_owned(), value);
        put("lane", self.lane(phase).into());
        put("model", self.inventory.device.class.to_string().into());
        put("devices", self.inventory.targets.values().cloned().collect());
        if let Some(variant) = variant {
            put("variant", json!(variant));
        }
        match phase {
            Phase::Analyze => put("catalogue", self.catalogue.to_string_lossy().into()),
            Phase::Compile => {
                put("targets", with_ids(&self.inventory.targets));
                put("is_every", (self.inventory.configurations == Configurations::All).into());
                put("processes", given.processes.into())
            }
            Phase::Check => put("salt", self.salt.into()),
            Phase::Bench => put("tune", given.tune.clone().unwrap_or_default()),
            _ => None,
        };
        if let Some(declaration) = declaration {
            if phase == Phase::Baseline {
                put("baselines", json!(declaration.baselines));
            }
            if matches!(phase, Phase::Bench | Phase::Baseline | Phase::Tune) {
                put("protocol", json!(declaration.protocol));
            }
            put("op", self.declared(&declaration));
        }
        let warm: Vec<String> = given.warm.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        arguments.insert("warm".to_owned(), json!(warm));
        arguments
    }

    /// Returns the declaration as children read it: a reference knows in which folder its file lies, and files that hold values are named as children find them.
    fn declared(&self, declaration: &Declaration) -> Value {
        let mut declared = json!(declaration);
        if let Some(reference) = declared["reference"].as_object_mut() {
            reference.insert("root".to_owned(), self.root.to_string_lossy().into());
        }
        for input in declared["inputs"].as_array_mut().into_iter().flatten() {
            let mut init = &mut input["init"];
            while init["kind"] == "sorted" {
                init = &mut init["of"];
            }
            if let ("file", Some(path)) = (init["kind"].as_str().unwrap_or_default(), init["path"].as_str()) {
                init["path"] = self.root.join(path).to_string_lossy().into();
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

    fn lane(&self, phase: Phase) -> &'static str {
        match (phase, &self.inventory.device.class) {
            (Phase::Analyze | Phase::Compile, _) => "compile",
            (_, DeviceClass::Cuda(_)) => "cuda",
            (_, DeviceClass::Interpreter) => "interpreter",
        }
    }

    /// A measurement has all cores of its lane; other children share them.
    fn threads(&self, action: &Action) -> usize {
        match action.lane {
            Lane::Cpu => (self.shares.left / self.jobs.max(1)).max(1),
            Lane::WholeCpu => self.shares.left,
            Lane::Device => self.shares.per_device,
        }
    }
}

fn with_ids(targets: &BTreeMap<String, Value>) -> Value {
    let rows = targets.iter().map(|(id, row)| {
        let mut row = row.clone();
        row["id"] = id.as_str().into();
        row
    });
    rows.collect()
}
