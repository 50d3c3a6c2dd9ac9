//! The actions of a variant: its kernel file made, compiled, checked, tuned and measured, in as many attempts as there may be.
//!
//! It does not know what an attempt comes to.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::json;
use t2t_model::action::{Action, Dependency, Lane, Need, Phase, Target};
use t2t_model::manifest::Fact;
use t2t_model::path::RepoPath;
use t2t_spec::authors::Author;
use t2t_spec::{Profile, Variant};

use super::{Configurations, Expansion, LOCAL, meanings, measured_on, versions};

/// How many attempts there are at most, whatever ops.yaml says.
const MOST_ATTEMPTS: u32 = 64;

impl Expansion<'_> {
    /// Returns whether a generator writes the variant's kernel file.
    pub(super) fn is_generated(&self, variant: &Variant) -> bool {
        self.inventory.generated.contains(&variant.file)
    }

    /// Returns the numbers of the attempts that there may be at a variant. What a person wrote is one.
    pub(super) fn attempts(&self, variant: &Variant) -> RangeInclusive<u32> {
        let retries = self.op.settings(self.profile()).max_retries;
        if self.is_generated(variant) {
            1..=u32::try_from(retries.saturating_add(1)).unwrap_or(MOST_ATTEMPTS).min(MOST_ATTEMPTS)
        } else {
            1..=1
        }
    }

    /// Returns the action that writes a variant's kernel file. A later attempt needs that the one before was rejected, and reads why.
    pub(super) fn generate(&self, variant: &Variant, attempt: u32) -> Action {
        let author = variant.generator.as_ref().and_then(|name| self.spec.authors.named.get(name));
        match author {
            Some(author) => self.asked(variant, author, attempt),
            None => self.rendered(variant, attempt),
        }
    }

    fn rendered(&self, variant: &Variant, attempt: u32) -> Action {
        let phase = Phase::Generate;
        let mut facts = self.declared[&phase].clone();
        facts.extend(variant.facts(phase).iter().map(|(name, value)| (format!("variant.{name}"), Fact::json(value))));
        facts.insert("attempt".to_owned(), Fact::Text(attempt.to_string()));
        facts.insert("generator".to_owned(), Fact::Text(variant.generator.clone().unwrap_or_default()));
        facts.extend(self.inventory.generator.map(|digest| ("generator.files".to_owned(), Fact::Digest(digest))));
        let mut action = self.action(phase, Some(variant), Lane::Cpu, facts);
        action.identity.target.attempt = attempt;
        action.deadline = LOCAL;
        if attempt == 1 {
            // The first attempt is the same for every device.
            action.identity.device = None;
            return action;
        }
        let before = attempt - 1;
        action.dependencies = vec![
            self.needs(variant, phase, before, Need::Pass, &["attempt"]),
            self.needs(variant, Phase::Compile, before, Need::Reject, &["failure"]),
            self.needs(variant, Phase::Check, before, Need::Reject, &["failure"]),
        ];
        action
    }

    /// Returns the action in which an author is asked for a kernel. An answer that is none is as good a reason for another attempt as a kernel that is rejected.
    ///
    /// What it depends on is the same on every device: an accepted kernel is asked for once.
    fn asked(&self, variant: &Variant, author: &Author, attempt: u32) -> Action {
        let phase = Phase::Generate;
        let declared = self.op.declaration(Profile::Cuda).asked();
        let mut facts: BTreeMap<String, Fact> =
            declared.iter().map(|(name, value)| (format!("declaration.{name}"), Fact::json(value))).collect();
        let own = variant.asked();
        facts.extend(own.iter().map(|(name, value)| (format!("variant.{name}"), Fact::json(value))));
        facts.extend(meanings(&self.reference()));
        facts.insert("attempt".to_owned(), Fact::Text(attempt.to_string()));
        facts.insert("generator".to_owned(), Fact::json(&author.fact()));
        facts.insert("prompt".to_owned(), Fact::Digest(self.inventory.prompt));
        let mut action = self.action(phase, Some(variant), Lane::Author, facts);
        action.identity.target.attempt = attempt;
        action.deadline = author.timeout;
        action.dependencies =
            vec![Dependency { on: self.target(None, Phase::Analyze), need: Need::Pass, reads: &["analysis"] }];
        if attempt == 1 {
            action.identity.device = None;
            return action;
        }
        let before = |phase, reads| self.needs(variant, phase, attempt - 1, Need::Reject, reads);
        action.dependencies.extend([
            before(phase, &["attempt", "kernel", "failure"]),
            before(Phase::Compile, &["failure"]),
            before(Phase::Check, &["failure", "verdict"]),
        ]);
        action
    }

    /// Returns the action of a phase of an attempt at a variant.
    pub(super) fn of_variant(&self, variant: &Variant, phase: Phase, attempt: u32) -> Action {
        if let (Some(cuda), Phase::Compile, false) = (&variant.cuda, phase, self.inventory.is_extension(variant)) {
            return self.compiled_by_nvcc(variant, cuda);
        }
        let is_extension = self.inventory.is_extension(variant);
        let mut facts = self.declared[&phase].clone();
        let own = if is_extension { variant.facts_of_extension(phase) } else { variant.facts(phase) };
        facts.extend(own.iter().map(|(name, value)| (format!("variant.{name}"), Fact::json(value))));
        let needed: &[&str] =
            if phase == Phase::Compile { &["torch", "triton", "ptxas"] } else { &["torch", "triton"] };
        facts.extend(versions(self.inventory, needed.iter().copied()));
        facts.extend([self.folders()]);
        match phase {
            Phase::Compile => self.compiled_for(variant, &mut facts),
            Phase::Check => self.checked_on(&mut facts),
            _ => facts.extend(measured_on(self.device)),
        }
        // Of what a generator writes nothing is known yet: the files of the inventory have it not.
        let mut sources = self.closure(&variant.file);
        if let Some(cuda) = &variant.cuda {
            sources.extend(self.closure(cuda));
            // What compile makes is run where there is a device.
            if self.on_device() || phase == Phase::Compile {
                facts.extend(self.nvcc());
                // A module of torch's is of one Python and one C++ compiler.
                facts.extend(is_extension.then(|| versions(self.inventory, ["python", "cxx"])).into_iter().flatten());
            }
        }
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
        if phase == Phase::Compile && is_extension {
            action.facts.insert("harness".to_owned(), Fact::Digest(self.inventory.harness_of_inline));
        }
        action.identity.target.attempt = attempt;
        action.sources = sources;
        action.dependencies = self.needs_of_variant(variant, phase, attempt);
        if self.is_generated(variant) {
            action.generated = RepoPath::new(&variant.file).ok();
            action.dependencies.push(self.needs(variant, Phase::Generate, attempt, Need::Pass, &[]));
        }
        action
    }

    /// Returns the action that compiles the file `cuda`. It reads nothing else of the op: not the wrapper, and not what ops.yaml declares.
    fn compiled_by_nvcc(&self, variant: &Variant, cuda: &str) -> Action {
        let phase = Phase::Compile;
        let mut facts: BTreeMap<String, Fact> = self.nvcc().into();
        facts.extend(variant.facts(phase).iter().map(|(name, value)| (format!("variant.{name}"), Fact::json(value))));
        let sources = self.closure(cuda);
        facts.extend(meanings(&sources));
        let fault = self.inventory.fault(variant);
        facts.extend(fault.map(|fault| ("fault".to_owned(), Fact::Text(fault.to_string()))));
        let mut action = self.action(phase, Some(variant), Lane::Cpu, facts);
        action.facts.insert("harness".to_owned(), Fact::Digest(self.inventory.harness_of_cuda));
        action.sources = sources;
        action
    }

    /// Returns the facts of what compiles CUDA C++, and for what.
    fn nvcc(&self) -> [(String, Fact); 2] {
        let version = self.inventory.toolchain.get("nvcc").cloned().unwrap_or_default();
        let architectures = Fact::json(&json!(self.inventory.architectures));
        [("toolchain.nvcc".to_owned(), Fact::Text(version)), ("architectures".to_owned(), architectures)]
    }

    /// Returns an edge to a phase of an attempt at a variant.
    pub(super) fn needs(
        &self,
        variant: &Variant,
        source: Phase,
        attempt: u32,
        need: Need,
        reads: &'static [&'static str],
    ) -> Dependency {
        let on = Target::of_variant(&self.op.name, &variant.name, source).of_attempt(attempt);
        Dependency { on, need, reads }
    }

    fn needs_of_variant(&self, variant: &Variant, phase: Phase, attempt: u32) -> Vec<Dependency> {
        let on_device = self.on_device();
        let need = |source: Phase, need: Need, reads: &'static [&'static str]| {
            self.needs(variant, source, attempt, need, reads)
        };
        match phase {
            // On a device the check finds its kernels compiled; the interpreter compiles nothing.
            Phase::Check if on_device => vec![self.analyzed(&["lengths"]), need(Phase::Compile, Need::Pass, &[])],
            Phase::Check => vec![self.analyzed(&["lengths"])],
            Phase::Bench if on_device => vec![
                need(Phase::Compile, Need::Pass, &[]),
                need(Phase::Check, Need::Pass, &["verdict"]),
                need(Phase::Tune, Need::Pass, &["tune"]),
            ],
            Phase::Tune | Phase::Bench => {
                vec![need(Phase::Compile, Need::Pass, &[]), need(Phase::Check, Need::Pass, &["verdict"])]
            }
            // It compiles the cases of the check ahead. What torch refuses is compiled all the same.
            Phase::Compile => vec![self.settle(None, Phase::Analyze, &["lengths"])],
            _ => Vec::new(),
        }
    }

    fn compiled_for(&self, variant: &Variant, facts: &mut BTreeMap<String, Fact>) {
        for (id, row) in &self.inventory.targets {
            facts.insert(format!("target.{id}"), Fact::json(row));
        }
        // Nothing that torch would build is autotuned.
        if self.inventory.configurations == Configurations::First && !self.inventory.is_extension(variant) {
            facts.insert("configurations".to_owned(), Fact::Text("first".to_owned()));
        }
    }

    fn checked_on(&self, facts: &mut BTreeMap<String, Fact>) {
        facts.insert("device.class".to_owned(), Fact::Text(self.device.class.to_string()));
        facts.insert("device.architecture".to_owned(), Fact::Text(self.device.architecture.clone()));
    }
}
