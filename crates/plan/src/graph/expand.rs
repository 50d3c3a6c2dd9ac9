//! Expansion: makes the actions of a build from ops.yaml, the workspace and the machine.
//!
//! Everything that a manifest needs and that is known before something runs is put into the actions here. It reads no file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use t2t_model::action::{Action, Dependency, DeviceClass, Identity, Lane, Need, Phase, Source, Target};
use t2t_model::digest::Digest;
use t2t_model::manifest::Fact;
use t2t_model::path::RepoPath;
use t2t_model::problem::Problem;
use t2t_spec::{Declaration, Op, Profile, Spec, Variant};

/// The workspace and the machine, as far as results depend on them.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// Kernel files, `cases.py` files and references by path, those that are missing too; and files that hold values of inputs.
    pub files: BTreeMap<String, KernelFile>,
    /// Template path → digest.
    pub templates: BTreeMap<String, Digest>,
    /// The digest of the summary's template.
    pub summary_template: Digest,
    /// The digest of the op catalogue.
    pub catalogue: Digest,
    /// The meaning of the harness files that each phase imports.
    pub harness: BTreeMap<Phase, Digest>,
    /// Versions: `torch`, `triton`, `ptxas`.
    pub toolchain: BTreeMap<String, String>,
    /// The device lane.
    pub device: Device,
    /// Folders that kernels import from beside those that they do anyway.
    pub sources: Vec<String>,
    /// What is compiled for: id → row of the device table.
    pub targets: BTreeMap<String, Value>,
    /// How much of autotuned kernels is compiled for it.
    pub configurations: Configurations,
}

/// How much of an autotuned kernel is compiled ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configurations {
    /// Every configuration: one of them will be chosen.
    All,
    /// The first alone: there is no device to choose one, and no target was asked for.
    First,
}

/// The device lane, as far as results depend on it.
#[derive(Debug, Clone)]
pub struct Device {
    /// Interpreter, or a CUDA model.
    pub class: DeviceClass,
    /// The architecture, as in `sm_90`; `interpreter` for the interpreter.
    pub architecture: String,
    /// The driver's version, where there is one.
    pub driver: Option<String>,
}

/// A kernel file, a `cases.py` or a reference in Python, with all that it imports.
#[derive(Debug, Clone, Default)]
pub struct KernelFile {
    /// The file and the workspace files it imports.
    pub closure: BTreeMap<RepoPath, Source>,
    /// The module's docstring.
    pub docstring: Option<String>,
    /// Why it cannot be used.
    pub fault: Option<Problem>,
    /// What it binds; None where that is not known.
    pub binds: Option<Binds>,
}

/// The names that a Python file binds at module level.
#[derive(Debug, Clone, Default)]
pub struct Binds {
    /// Its own functions and classes.
    pub callables: Vec<String>,
    /// All others; `*` for an import of everything.
    pub names: Vec<String>,
}

impl Inventory {
    /// Returns why the file of a variant cannot be used for it. Of an installed module that is found out by importing it.
    #[must_use]
    pub fn fault(&self, variant: &Variant) -> Option<Problem> {
        let file = self.files.get(&variant.file)?;
        file.fault.clone().or_else(|| lacks_entry(file.binds.as_ref()?, variant))
    }
}

fn lacks_entry(binds: &Binds, variant: &Variant) -> Option<Problem> {
    let first = variant.entry.split('.').next().unwrap_or_default();
    let there = |name: &str| binds.callables.iter().chain(&binds.names).any(|bound| bound == name);
    if there(first) || there("*") {
        return None;
    }
    let names: Vec<String> = binds.callables.iter().map(|name| format!("`{name}`")).collect();
    let has = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
    let message = format!("no callable `{first}`; the file has {has}");
    Some(Problem::of_file(&variant.file, message).with_hint("name the wrapper with `entry:` in ops.yaml"))
}

/// How long actions that run no child of their own may take. They have no deadline of their own.
const LOCAL: Duration = Duration::from_mins(1);

/// How long the calibration may take. A slow device multiplies smaller matrices, so this is many times what it takes.
const CALIBRATION: Duration = Duration::from_mins(2);

/// Returns all actions of a build: the calibration first, if there is a device, then op by op in the order of ops.yaml, the summary last.
#[must_use]
pub fn expand(spec: &Spec, inventory: &Inventory) -> Vec<Action> {
    let mut actions: Vec<Action> = calibrate(inventory).into_iter().collect();
    actions.extend(spec.ops.iter().flat_map(|op| Expansion::of(op, inventory).actions()));
    actions.push(summary(spec, inventory, &actions));
    actions
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
    inventory: &'a Inventory,
    /// Phase → the facts of the declaration that it reads, made once for all variants.
    declared: BTreeMap<Phase, BTreeMap<String, Fact>>,
}

impl<'a> Expansion<'a> {
    fn of(op: &'a Op, inventory: &'a Inventory) -> Self {
        let here = profile(&inventory.device.class);
        let (ahead, there) = (op.declaration(Profile::Cuda), op.declaration(here));
        let written = [&ahead, &there].map(|declaration| {
            let fields = declaration.fields();
            fields.iter().map(|(name, value)| (name.clone(), Fact::json(value))).collect::<BTreeMap<String, Fact>>()
        });
        let facts = |phase: Phase| {
            // What is analyzed and compiled does not depend on the device lane.
            let [ahead, there] = &written;
            let fields = if matches!(phase, Phase::Analyze | Phase::Compile) { ahead } else { there };
            let is_read = |name: &str| Declaration::read_by(phase).is_none_or(|names| names.contains(&name));
            let read = fields.iter().filter(|(name, _)| is_read(name));
            read.map(|(name, fact)| (format!("declaration.{name}"), fact.clone())).collect()
        };
        Self { op, inventory, declared: Phase::ALL.into_iter().map(|phase| (phase, facts(phase))).collect() }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![self.analyze()];
        actions.extend(self.on_device().then(|| self.baseline()));
        for variant in &self.op.variants {
            for phase in variant_phases(&self.inventory.device.class) {
                actions.push(self.of_variant(variant, *phase));
            }
        }
        actions.push(self.select());
        actions.push(self.log());
        actions
    }

    fn analyze(&self) -> Action {
        let mut facts = self.declared[&Phase::Analyze].clone();
        facts.extend(versions(self.inventory, &["torch"]));
        facts.insert("catalogue".to_owned(), Fact::Digest(self.inventory.catalogue));
        let sources = self.reference();
        facts.extend(meanings(&sources));
        facts.extend(self.op.reference.as_ref().map(|_| self.folders()));
        Action { sources, ..self.action(Phase::Analyze, None, Lane::Cpu, facts) }
    }

    fn baseline(&self) -> Action {
        let mut facts = self.declared[&Phase::Baseline].clone();
        facts.extend(versions(self.inventory, &["torch"]));
        facts.extend(measured_on(&self.inventory.device));
        let sources: BTreeMap<RepoPath, Source> = self.reference().into_iter().chain(self.values()).collect();
        facts.extend(meanings(&sources));
        facts.extend(self.op.reference.as_ref().map(|_| self.folders()));
        let mut action = self.action(Phase::Baseline, None, self.measuring_lane(), facts);
        action.sources = sources;
        action.dependencies = vec![self.analyzed()];
        action
    }

    fn of_variant(&self, variant: &Variant, phase: Phase) -> Action {
        let mut facts = self.declared[&phase].clone();
        facts.extend(variant.facts(phase).iter().map(|(name, value)| (format!("variant.{name}"), Fact::json(value))));
        let needed: &[&str] =
            if phase == Phase::Compile { &["torch", "triton", "ptxas"] } else { &["torch", "triton"] };
        facts.extend(versions(self.inventory, needed));
        facts.extend([self.folders()]);
        match phase {
            Phase::Compile => self.compiled_for(&mut facts),
            Phase::Check => self.checked_on(&mut facts),
            _ => facts.extend(measured_on(&self.inventory.device)),
        }
        let mut sources = self.closure(&variant.file);
        if let (Some(cases), Phase::Compile | Phase::Check | Phase::Bench) = (&self.op.cases, phase) {
            sources.extend(self.closure(cases));
        }
        if matches!(phase, Phase::Check | Phase::Bench) {
            sources.extend(self.reference());
        }
        if phase != Phase::Compile {
            sources.extend(self.values());
        }
        facts.extend(meanings(&sources));
        let cases = self.op.cases.as_ref().filter(|_| phase == Phase::Check);
        let unfit = || self.inventory.files.get(cases?)?.fault.clone();
        let fault = self.inventory.fault(variant).or_else(unfit);
        facts.extend(fault.map(|fault| ("fault".to_owned(), Fact::Text(fault.to_string()))));
        let lane = match phase {
            Phase::Compile => Lane::Cpu,
            Phase::Check => self.checking_lane(),
            _ => self.measuring_lane(),
        };
        let mut action = self.action(phase, Some(variant), lane, facts);
        action.sources = sources;
        action.dependencies = self.needs_of_variant(variant, phase);
        action
    }

    fn select(&self) -> Action {
        let names: Vec<&str> = self.op.variants.iter().map(|variant| variant.name.as_str()).collect();
        let facts = BTreeMap::from([
            ("variants".to_owned(), Fact::json(&json!(names))),
            ("rank".to_owned(), Fact::Text(t2t_report::rank::VERSION.to_string())),
            ("device".to_owned(), Fact::Text(self.inventory.device.class.to_string())),
        ]);
        let mut action = self.action(Phase::Select, None, Lane::Cpu, facts);
        action.dependencies = self.baselines(&["baseline"]);
        for variant in &self.op.variants {
            action.dependencies.push(self.settle(Some(variant), Phase::Check, &["verdict"]));
            action.dependencies.push(self.settle(Some(variant), Phase::Bench, &["bench"]));
        }
        action
    }

    fn log(&self) -> Action {
        let template = self.inventory.templates.get(&self.op.template);
        let mut facts = BTreeMap::from([
            ("template".to_owned(), template.map_or(Fact::Text("missing".to_owned()), |digest| Fact::Digest(*digest))),
            ("device".to_owned(), Fact::Text(self.inventory.device.class.to_string())),
            ("declaration.kwargs".to_owned(), Fact::json(&json!(self.op.kwargs))),
            ("declaration.precision".to_owned(), Fact::json(&json!(self.op.precision))),
            ("render".to_owned(), Fact::Text(t2t_report::render::VERSION.to_string())),
        ]);
        for variant in &self.op.variants {
            let docstring = self.inventory.files.get(&variant.file).and_then(|file| file.docstring.clone());
            facts.insert(format!("docstring.{}", variant.name), Fact::Text(docstring.unwrap_or_default()));
            facts.insert(format!("file.{}", variant.name), Fact::Text(variant.file.clone()));
        }
        let mut action = self.action(Phase::Log, None, Lane::Cpu, facts);
        action.dependencies = vec![
            self.settle(None, Phase::Analyze, &["analysis", "failure"]),
            self.settle(None, Phase::Select, &["selection"]),
        ];
        action.dependencies.extend(self.baselines(&["baseline", "failure"]));
        action.dependencies.extend(ceilings(&self.inventory.device));
        for variant in &self.op.variants {
            for phase in variant_phases(&self.inventory.device.class) {
                action.dependencies.push(self.settle(Some(variant), *phase, shown(*phase)));
            }
        }
        action
    }

    fn needs_of_variant(&self, variant: &Variant, phase: Phase) -> Vec<Dependency> {
        let on_device = self.on_device();
        let need = |source: Phase, need: Need, reads: &'static [&'static str]| Dependency {
            on: Target::of_variant(&self.op.name, &variant.name, source),
            need,
            reads,
        };
        match phase {
            // On a device the check finds its kernels compiled; the interpreter compiles nothing.
            Phase::Check if on_device => vec![self.analyzed(), need(Phase::Compile, Need::Pass, &[])],
            Phase::Check => vec![self.analyzed()],
            Phase::Bench if on_device => vec![
                need(Phase::Compile, Need::Pass, &[]),
                need(Phase::Check, Need::Pass, &["verdict"]),
                need(Phase::Tune, Need::Pass, &["tune"]),
            ],
            Phase::Tune | Phase::Bench => {
                vec![need(Phase::Compile, Need::Pass, &[]), need(Phase::Check, Need::Pass, &["verdict"])]
            }
            _ => Vec::new(),
        }
    }

    /// Where torch refuses the call as declared, there is nothing to measure and nothing to judge by. The analysis itself is not read.
    fn analyzed(&self) -> Dependency {
        Dependency { on: self.target(None, Phase::Analyze), need: Need::Pass, reads: &[] }
    }

    /// Torch is timed on a device alone: beside Triton's interpreter its time says nothing.
    fn baselines(&self, reads: &'static [&'static str]) -> Vec<Dependency> {
        self.on_device().then(|| self.settle(None, Phase::Baseline, reads)).into_iter().collect()
    }

    fn on_device(&self) -> bool {
        matches!(self.inventory.device.class, DeviceClass::Cuda(_))
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
                device: (!anywhere).then(|| self.inventory.device.class.clone()),
            },
            lane,
            facts,
            sources: BTreeMap::new(),
            dependencies: Vec::new(),
            deadline: self.op.timeout(phase, self.profile()).unwrap_or(LOCAL),
        }
    }

    fn compiled_for(&self, facts: &mut BTreeMap<String, Fact>) {
        for (id, row) in &self.inventory.targets {
            facts.insert(format!("target.{id}"), Fact::json(row));
        }
        if self.inventory.configurations == Configurations::First {
            facts.insert("configurations".to_owned(), Fact::Text("first".to_owned()));
        }
    }

    fn checked_on(&self, facts: &mut BTreeMap<String, Fact>) {
        facts.insert("device.class".to_owned(), Fact::Text(self.inventory.device.class.to_string()));
        facts.insert("device.architecture".to_owned(), Fact::Text(self.inventory.device.architecture.clone()));
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
        profile(&self.inventory.device.class)
    }

    fn checking_lane(&self) -> Lane {
        match self.inventory.device.class {
            DeviceClass::Interpreter => Lane::Cpu,
            DeviceClass::Cuda(_) => Lane::Device,
        }
    }

    fn measuring_lane(&self) -> Lane {
        match self.inventory.device.class {
            DeviceClass::Interpreter => Lane::WholeCpu,
            DeviceClass::Cuda(_) => Lane::Device,
        }
    }
}

/// Returns the action that measures what the device does at most. The interpreter has none.
fn calibrate(inventory: &Inventory) -> Option<Action> {
    let DeviceClass::Cuda(_) = inventory.device.class else { return None };
    let mut facts: BTreeMap<String, Fact> = versions(inventory, &["torch"]).collect();
    facts.extend(measured_on(&inventory.device));
    facts.extend(inventory.harness.get(&Phase::Calibrate).map(|digest| ("harness".to_owned(), Fact::Digest(*digest))));
    Some(Action {
        identity: Identity { target: Target::calibrate(), device: Some(inventory.device.class.clone()) },
        lane: Lane::Device,
        facts,
        sources: BTreeMap::new(),
        dependencies: Vec::new(),
        deadline: CALIBRATION,
    })
}

/// Returns the edge from a log to the device's calibration. The log is rendered without ceilings if that is unknown.
fn ceilings(device: &Device) -> Option<Dependency> {
    let edge = Dependency { on: Target::calibrate(), need: Need::Settle, reads: &["calibration"] };
    matches!(device.class, DeviceClass::Cuda(_)).then_some(edge)
}

fn meanings(sources: &BTreeMap<RepoPath, Source>) -> impl Iterator<Item = (String, Fact)> {
    sources.iter().map(|(path, source)| (format!("source.{path}"), Fact::Digest(source.meaning)))
}

fn versions<'a>(inventory: &'a Inventory, names: &'a [&str]) -> impl Iterator<Item = (String, Fact)> + use<'a> {
    names.iter().map(|name| {
        let version = inventory.toolchain.get(*name).cloned().unwrap_or_default();
        (format!("toolchain.{name}"), Fact::Text(version))
    })
}

/// Returns the facts of a result that is a measurement: the device's model and driver.
fn measured_on(device: &Device) -> impl Iterator<Item = (String, Fact)> + use<> {
    let driver = device.driver.clone().map(|driver| ("device.driver".to_owned(), Fact::Text(driver)));
    [("device.model".to_owned(), Fact::Text(device.class.to_string()))].into_iter().chain(driver)
}

/// Returns the artifacts of a phase that a log shows.
fn shown(phase: Phase) -> &'static [&'static str] {
    match phase {
        Phase::Compile => &["launches", "resources", "failure"],
        Phase::Check => &["verdict", "evidence", "failure"],
        Phase::Tune => &["tune", "failure"],
        Phase::Bench => &["bench", "failure"],
        _ => &[],
    }
}

fn summary(spec: &Spec, inventory: &Inventory, actions: &[Action]) -> Action {
    let order: Vec<&str> = spec.ops.iter().map(|op| op.name.as_str()).collect();
    let reads = |phase: Phase| -> &'static [&'static str] {
        match phase {
            Phase::Calibrate => &["calibration", "cost"],
            Phase::Select => &["selection", "cost"],
            _ => &["cost"],
        }
    };
    let needs = actions.iter().filter(|action| action.target().phase != Phase::Log).map(|action| Dependency {
        on: action.target().clone(),
        need: Need::Settle,
        reads: reads(action.target().phase),
    });
    Action {
        identity: Identity { target: Target::summary(), device: Some(inventory.device.class.clone()) },
        lane: Lane::Cpu,
        facts: BTreeMap::from([
            ("template".to_owned(), Fact::Digest(inventory.summary_template)),
            ("order".to_owned(), Fact::json(&json!(order))),
            ("render".to_owned(), Fact::Text(t2t_report::render::VERSION.to_string())),
            ("device".to_owned(), Fact::Text(inventory.device.class.to_string())),
        ]),
        sources: BTreeMap::new(),
        dependencies: needs.collect(),
        deadline: LOCAL,
    }
}
