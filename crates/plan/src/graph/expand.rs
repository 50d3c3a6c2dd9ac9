//! Expansion: makes the actions of a build from ops.yaml, the workspace and the machine.
//!
//! Everything that a manifest needs and that is known before something runs is put into the actions here. It reads no file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use t2t_model::action::{Action, Dependency, DeviceClass, Identity, Lane, Need, Phase, Source, Target};
use t2t_model::digest::Digest;
use t2t_model::manifest::{Fact, Manifest};
use t2t_model::path::RepoPath;
use t2t_spec::{Baseline, Declaration, Op, Profile, Spec, Variant};

pub mod elsewhere;
mod inventory;
mod pages;
mod variant;

pub use self::inventory::{Binds, Configurations, Device, Elsewhere, Inventory, KernelFile};

use self::pages::summary;

/// How long actions that run no child of their own may take. They have no deadline of their own.
const LOCAL: Duration = Duration::from_mins(1);

/// How long the calibration may take. A slow device multiplies smaller matrices, so this is many times what it takes.
const CALIBRATION: Duration = Duration::from_mins(2);

/// What the name of an installed module's version begins with.
pub const MODULE: &str = "module.";

/// What results of timed calls are judged by.
const JUDGED: [&str; 5] = [
    "declaration.tolerances",
    "declaration.outputs",
    "declaration.mutates",
    "declaration.overwrites",
    "declaration.random",
];

/// Returns all actions of a build: the calibration first, if there is a device, then op by op in the order of ops.yaml, the summary last.
#[must_use]
pub fn expand(spec: &Spec, inventory: &Inventory) -> Vec<Action> {
    let mut actions: Vec<Action> = calibrate(inventory).into_iter().collect();
    actions.extend(spec.ops.iter().flat_map(|op| Expansion::of(op, spec, inventory).actions()));
    actions.push(summary(spec, inventory, &actions));
    actions
}

/// Returns the facts that results of timed calls are judged by.
fn judged(declared: &BTreeMap<Phase, BTreeMap<String, Fact>>) -> BTreeMap<String, Fact> {
    let is_judged = |name: &str| JUDGED.contains(&name);
    let facts = declared[&Phase::Check].iter().filter(|(name, _)| is_judged(name));
    facts.map(|(name, fact)| (name.clone(), fact.clone())).collect()
}

/// Returns the profile that counts on a device.
#[must_use]
pub fn profile(class: &DeviceClass) -> Profile {
    match class {
        DeviceClass::Interpreter => Profile::Cpu,
        DeviceClass::Cuda(_) => Profile::Cuda,
    }
}

/// Returns the phases of a variant on a device, in order.
fn variant_phases(class: &DeviceClass) -> &'static [Phase] {
    match class {
        DeviceClass::Interpreter => &[Phase::Compile, Phase::Check, Phase::Bench],
        DeviceClass::Cuda(_) => &[Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench],
    }
}

struct Expansion<'a> {
    op: &'a Op,
    spec: &'a Spec,
    inventory: &'a Inventory,
    device: &'a Device,
    /// Phase → the facts of the declaration that it reads, made once for all variants.
    declared: BTreeMap<Phase, BTreeMap<String, Fact>>,
    /// The digest of the facts that results of timed calls are judged by.
    judging: Digest,
}

impl<'a> Expansion<'a> {
    fn of(op: &'a Op, spec: &'a Spec, inventory: &'a Inventory) -> Self {
        Self::on(&inventory.device, op, spec, inventory)
    }

    /// The same where `device` were the device lane's.
    fn on(device: &'a Device, op: &'a Op, spec: &'a Spec, inventory: &'a Inventory) -> Self {
        let here = profile(&device.class);
        let (ahead, there) = (op.declaration(Profile::Cuda), op.declaration(here));
        let written = [&ahead, &there].map(|declaration| {
            let fields = declaration.fields();
            fields.iter().map(|(name, value)| (name.clone(), Fact::json(value))).collect::<BTreeMap<String, Fact>>()
        });
        let facts = |phase: Phase| {
            // What is analyzed and compiled does not depend on the device lane.
            let [ahead, there] = &written;
            let fields = if matches!(phase, Phase::Analyze | Phase::Compile) { ahead } else { there };
            let is_read = |name: &str| Declaration::read_by(phase).contains(&name);
            let read = fields.iter().filter(|(name, _)| is_read(name));
            read.map(|(name, fact)| (format!("declaration.{name}"), fact.clone())).collect()
        };
        let declared: BTreeMap<Phase, BTreeMap<String, Fact>> =
            Phase::ALL.into_iter().map(|phase| (phase, facts(phase))).collect();
        let judging = Manifest { facts: judged(&declared) }.key();
        Self { op, spec, inventory, device, declared, judging }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![self.analyze()];
        actions.extend(self.on_device().then(|| self.baseline()));
        for variant in &self.op.variants {
            for attempt in self.attempts(variant) {
                actions.extend(self.is_generated(variant).then(|| self.generate(variant, attempt)));
                let phases = variant_phases(&self.device.class).iter();
                actions.extend(phases.map(|phase| self.of_variant(variant, *phase, attempt)));
            }
        }
        actions.push(self.select());
        actions.push(self.log());
        actions
    }

    fn analyze(&self) -> Action {
        let mut facts = self.declared[&Phase::Analyze].clone();
        facts.extend(versions(self.inventory, ["torch"]));
        facts.insert("catalogue".to_owned(), Fact::Digest(self.inventory.catalogue));
        let sources = self.reference();
        facts.extend(meanings(&sources));
        facts.extend(self.op.reference.as_ref().map(|_| self.folders()));
        Action { sources, ..self.action(Phase::Analyze, None, Lane::Cpu, facts) }
    }

    fn baseline(&self) -> Action {
        let mut facts = self.declared[&Phase::Baseline].clone();
        facts.extend(versions(self.inventory, ["torch"]));
        facts.extend(measured_on(self.device));
        let baselines = &self.op.settings(self.profile()).baselines;
        let functions = || baselines.iter().filter_map(Baseline::function);
        let files = || functions().filter_map(|function| function.file.as_ref());
        let mut sources: BTreeMap<RepoPath, Source> = self.reference().into_iter().chain(self.values()).collect();
        sources.extend(files().flat_map(|file| self.closure(file)));
        facts.extend(meanings(&sources));
        facts.extend((self.op.reference.is_some() || files().next().is_some()).then(|| self.folders()));
        // What a module holds is found out by importing it, and discovered.
        let modules: BTreeSet<String> =
            functions().filter_map(|function| Some(format!("{MODULE}{}", function.package()?))).collect();
        facts.extend(versions(self.inventory, modules.iter().map(String::as_str)));
        if baselines.iter().any(Baseline::is_judged) {
            facts.extend(judged(&self.declared));
        }
        let mut action = self.action(Phase::Baseline, None, self.measuring_lane(), facts);
        action.sources = sources;
        action.dependencies = vec![self.analyzed(&[])];
        action
    }

    /// Where torch refuses the call as declared, there is nothing to measure and nothing to judge by. The analysis itself is not read.
    fn analyzed(&self, reads: &'static [&'static str]) -> Dependency {
        Dependency { on: self.target(None, Phase::Analyze), need: Need::Pass, reads }
    }

    /// Torch is timed on a device alone: beside Triton's interpreter its time says nothing.
    fn baselines(&self, reads: &'static [&'static str]) -> Vec<Dependency> {
        self.on_device().then(|| self.settle(None, Phase::Baseline, reads)).into_iter().collect()
    }

    fn on_device(&self) -> bool {
        matches!(self.device.class, DeviceClass::Cuda(_))
    }

    fn settle(&self, variant: Option<&Variant>, phase: Phase, reads: &'static [&'static str]) -> Dependency {
        Dependency { on: self.target(variant, phase), need: Need::Settle, reads }
    }

    fn target(&self, variant: Option<&Variant>, phase: Phase) -> Target {
        match variant {
            Some(variant) => Target::of_variant(&self.op.name, &variant.name, phase),
            None => Target::of_op(&self.op.name, phase),
        }
    }

    fn action(&self, phase: Phase, variant: Option<&Variant>, lane: Lane, facts: BTreeMap<String, Fact>) -> Action {
        let anywhere = matches!(phase, Phase::Analyze | Phase::Compile);
        let mut facts = facts;
        if let Some(harness) = self.inventory.harness.get(&phase) {
            facts.insert("harness".to_owned(), Fact::Digest(*harness));
        }
        Action {
            identity: Identity {
                target: self.target(variant, phase),
                device: (!anywhere).then(|| self.device.class.clone()),
            },
            lane,
            facts,
            sources: BTreeMap::new(),
            generated: None,
            dependencies: Vec::new(),
            deadline: self.op.timeout(phase, self.profile()).unwrap_or(LOCAL),
            judging: (phase == Phase::Bench).then_some(self.judging),
        }
    }

    fn closure(&self, file: &str) -> BTreeMap<RepoPath, Source> {
        self.inventory.files.get(file).map(|file| file.closure.clone()).unwrap_or_default()
    }

    /// Returns the fact of the folders that Python of the workspace imports from.
    fn folders(&self) -> (String, Fact) {
        ("sources".to_owned(), Fact::json(&json!(self.inventory.sources)))
    }

    /// Returns the reference in Python and what it imports; nothing where a torch function is replaced.
    fn reference(&self) -> BTreeMap<RepoPath, Source> {
        self.op.reference.as_ref().map(|reference| self.closure(&reference.file)).unwrap_or_default()
    }

    /// Returns the files that hold values of the op's inputs.
    fn values(&self) -> BTreeMap<RepoPath, Source> {
        self.op.values().flat_map(|file| self.closure(file)).collect()
    }

    fn profile(&self) -> Profile {
        profile(&self.device.class)
    }

    fn checking_lane(&self) -> Lane {
        match self.device.class {
            DeviceClass::Interpreter => Lane::Cpu,
            DeviceClass::Cuda(_) => Lane::Device,
        }
    }

    fn measuring_lane(&self) -> Lane {
        match self.device.class {
            DeviceClass::Interpreter => Lane::WholeCpu,
            DeviceClass::Cuda(_) => Lane::Device,
        }
    }
}

/// Returns the action that measures what the device does at most. The interpreter has none.
fn calibrate(inventory: &Inventory) -> Option<Action> {
    let DeviceClass::Cuda(_) = inventory.device.class else { return None };
    let mut facts: BTreeMap<String, Fact> = versions(inventory, ["torch"]).collect();
    facts.extend(measured_on(&inventory.device));
    facts.extend(inventory.harness.get(&Phase::Calibrate).map(|digest| ("harness".to_owned(), Fact::Digest(*digest))));
    Some(Action {
        identity: Identity { target: Target::calibrate(), device: Some(inventory.device.class.clone()) },
        lane: Lane::Device,
        facts,
        sources: BTreeMap::new(),
        generated: None,
        dependencies: Vec::new(),
        deadline: CALIBRATION,
        judging: None,
    })
}

/// Returns the facts of what these files mean.
pub(crate) fn meanings(sources: &BTreeMap<RepoPath, Source>) -> impl Iterator<Item = (String, Fact)> {
    sources.iter().map(|(path, source)| (format!("source.{path}"), Fact::Digest(source.meaning)))
}

fn versions<'a>(
    inventory: &'a Inventory,
    names: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = (String, Fact)> {
    names.into_iter().map(|name| {
        let version = inventory.toolchain.get(name).cloned().unwrap_or_default();
        (format!("toolchain.{name}"), Fact::Text(version))
    })
}

/// Returns the facts of a result that is a measurement: the device's model and driver.
fn measured_on(device: &Device) -> impl Iterator<Item = (String, Fact)> + use<> {
    let driver = device.driver.clone().map(|driver| ("device.driver".to_owned(), Fact::Text(driver)));
    [("device.model".to_owned(), Fact::Text(device.class.to_string()))].into_iter().chain(driver)
}
