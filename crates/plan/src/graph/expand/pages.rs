//! The actions that choose and render: an op's selection, its log, the summary.
//!
//! It does not know what is chosen or rendered.

use std::collections::BTreeMap;

use serde_json::json;
use t2t_model::action::{Action, Dependency, DeviceClass, Identity, Lane, Need, Phase, Target};
use t2t_model::manifest::Fact;
use t2t_spec::Spec;

use super::{Device, Expansion, Inventory, LOCAL, variant_phases};

impl Expansion<'_> {
    /// Returns the action that chooses the best variant. Of a generated one it reads the attempt that stands. It also takes over what is published of a device elsewhere.
    pub(super) fn select(&self) -> Action {
        let names: Vec<&str> = self.op.variants.iter().map(|variant| variant.name.as_str()).collect();
        let mut facts = BTreeMap::from([
            ("variants".to_owned(), Fact::json(&json!(names))),
            ("rank".to_owned(), Fact::Text(t2t_report::rank::VERSION.to_string())),
            ("device".to_owned(), Fact::Text(self.device.class.to_string())),
        ]);
        let elsewhere = self.shown_elsewhere();
        let is_shown = !elsewhere.is_empty();
        facts.extend(elsewhere);
        let mut action = self.action(Phase::Select, None, Lane::Cpu, facts);
        action.dependencies = self.baselines(&["baseline"]);
        for variant in &self.op.variants {
            for attempt in self.attempts(variant) {
                action.dependencies.push(self.needs(variant, Phase::Check, attempt, Need::Settle, &["verdict"]));
                action.dependencies.push(self.needs(variant, Phase::Bench, attempt, Need::Settle, &["bench"]));
                if is_shown && self.is_generated(variant) {
                    action.dependencies.push(self.needs(variant, Phase::Generate, attempt, Need::Settle, &["kernel"]));
                }
            }
        }
        action
    }

    pub(super) fn log(&self) -> Action {
        let template = self.inventory.templates.get(&self.op.template);
        let mut facts = BTreeMap::from([
            ("template".to_owned(), template.map_or(Fact::Text("missing".to_owned()), |digest| Fact::Digest(*digest))),
            ("device".to_owned(), Fact::Text(self.device.class.to_string())),
            ("declaration.kwargs".to_owned(), Fact::json(&json!(self.op.kwargs))),
            ("declaration.precision".to_owned(), Fact::json(&json!(self.op.precision))),
            ("render".to_owned(), Fact::Text(t2t_report::render::VERSION.to_string())),
        ]);
        facts.extend(
            self.inventory.rounds.get(&self.op.name).map(|rounds| ("rounds".to_owned(), Fact::Digest(*rounds))),
        );
        for variant in &self.op.variants {
            if !self.is_generated(variant) {
                let docstring = self.inventory.files.get(&variant.file).and_then(|file| file.docstring.clone());
                facts.insert(format!("docstring.{}", variant.name), Fact::Text(docstring.unwrap_or_default()));
            }
            facts.insert(format!("file.{}", variant.name), Fact::Text(variant.file.clone()));
        }
        let mut action = self.action(Phase::Log, None, Lane::Cpu, facts);
        action.dependencies = vec![
            self.settle(None, Phase::Analyze, &["analysis", "failure"]),
            self.settle(None, Phase::Select, &["selection"]),
        ];
        action.dependencies.extend(self.baselines(&["baseline", "failure"]));
        action.dependencies.extend(ceilings(self.device));
        for variant in &self.op.variants {
            for attempt in self.attempts(variant) {
                let own = self.is_generated(variant).then_some(&Phase::Generate).into_iter();
                let phases = own.chain(variant_phases(&self.device.class));
                let needs = phases.map(|phase| self.needs(variant, *phase, attempt, Need::Settle, shown(*phase)));
                action.dependencies.extend(needs);
            }
        }
        action
    }
}

/// Returns the edge from a log to the device's calibration. The log is rendered without ceilings if that is unknown.
fn ceilings(device: &Device) -> Option<Dependency> {
    let edge = Dependency { on: Target::calibrate(), need: Need::Settle, reads: &["calibration"] };
    matches!(device.class, DeviceClass::Cuda(_)).then_some(edge)
}

/// Returns the artifacts of a phase that a log shows.
fn shown(phase: Phase) -> &'static [&'static str] {
    match phase {
        Phase::Generate => &["attempt", "kernel", "failure"],
        Phase::Compile => &["launches", "resources", "failure"],
        Phase::Check => &["verdict", "evidence", "failure"],
        Phase::Tune => &["tune", "failure"],
        Phase::Bench => &["bench", "failure"],
        _ => &[],
    }
}

/// Returns the action that renders the log of the whole build.
pub(super) fn summary(spec: &Spec, inventory: &Inventory, actions: &[Action]) -> Action {
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
        generated: None,
        dependencies: needs.collect(),
        deadline: LOCAL,
        judging: None,
    }
}
