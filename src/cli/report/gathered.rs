//! The documents of an op, owned, as a page of it borrows them.
//!
//! It does not know where they are from.

use std::collections::BTreeMap;

use t2t_model::action::{Phase, Target};
use t2t_protocol::{Analysis, Baseline, Calibration, Evidence, Failure, Launches, Resources, Tune};
use t2t_report::rank::{Found, Lane, Selection, VariantResult};
use t2t_report::render::attempts::Attempt;
use t2t_report::render::op_page::{OpPage, VariantPage};
use t2t_spec::Op;

use super::documents::Documents;
use crate::cli::attempts::difference;
use crate::session::Session;

/// The documents of an op.
pub(super) struct Gathered<'a> {
    op: &'a Op,
    analysis: Found<Analysis>,
    analysis_failure: Found<Failure>,
    pub(super) baseline: Found<Baseline>,
    pub(super) selection: Found<Selection>,
    /// Of the variants that are shown, in declared order.
    pub(super) results: Vec<VariantResult>,
    parts: Vec<Parts<'a>>,
}

/// The other documents of a variant.
struct Parts<'a> {
    file: &'a str,
    docstring: Option<&'a str>,
    evidence: Found<Evidence>,
    launches: Found<Launches>,
    resources: Found<Resources>,
    tune: Found<Tune>,
    failures: BTreeMap<Phase, Found<Failure>>,
    attempts: Vec<Attempt>,
    /// What each attempt changed of the one before, by its number.
    changes: BTreeMap<u32, String>,
}

impl<'a> Gathered<'a> {
    /// Returns the documents of an op and of those of its variants that are `wanted`.
    pub(super) fn of(
        documents: &Documents<'_>,
        op: &'a Op,
        session: &'a Session,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let of_op = |phase| Target::of_op(&op.name, phase);
        let variants = || op.variants.iter().filter(|variant| wanted(&variant.name));
        let standing = |variant: &str, phase| documents.standing(&Target::of_variant(&op.name, variant, phase));
        let result = |name: &String| VariantResult {
            name: name.clone(),
            verdict: documents.found(&standing(name, Phase::Check), "verdict"),
            bench: documents.found(&standing(name, Phase::Bench), "bench"),
        };
        let docstring = |file: &String| session.inventory.files.get(file)?.docstring.as_deref();
        Self {
            op,
            analysis: documents.found(&of_op(Phase::Analyze), "analysis"),
            analysis_failure: documents.found(&of_op(Phase::Analyze), "failure"),
            baseline: documents.found(&of_op(Phase::Baseline), "baseline"),
            selection: documents.found(&of_op(Phase::Select), "selection"),
            results: variants().map(|variant| result(&variant.name)).collect(),
            parts: variants()
                .map(|variant| {
                    let of = |phase| standing(&variant.name, phase);
                    Parts::of(documents, &of, &variant.file, docstring(&variant.file))
                })
                .collect(),
        }
    }

    /// Returns what attempts at generated kernels changed of those before, by variant and number.
    pub(super) fn changes(&self) -> BTreeMap<String, BTreeMap<u32, String>> {
        let told = self.results.iter().zip(&self.parts).filter(|(_, parts)| !parts.changes.is_empty());
        told.map(|(result, parts)| (result.name.clone(), parts.changes.clone())).collect()
    }

    /// Returns the page of the op.
    pub(super) fn page(&'a self, calibration: &'a Found<Calibration>, lane: Lane) -> OpPage<'a> {
        let variants = self.results.iter().zip(&self.parts).map(|(result, parts)| VariantPage {
            result,
            file: parts.file,
            docstring: parts.docstring,
            evidence: parts.evidence.document(),
            launches: parts.launches.document(),
            resources: &parts.resources,
            tune: parts.tune.document(),
            failures: parts.failures.iter().filter_map(|(phase, found)| Some((*phase, found.document()?))).collect(),
            attempts: &parts.attempts,
            no_attempt: None,
            rounds: &[],
        });
        OpPage {
            op: &self.op.name,
            kwargs: &self.op.kwargs,
            precision: self.op.precision.name(),
            calibration,
            analysis: &self.analysis,
            analysis_failure: self.analysis_failure.document(),
            baseline: &self.baseline,
            lane,
            selection: &self.selection,
            variants: variants.collect(),
        }
    }
}

impl<'a> Parts<'a> {
    /// Returns the documents of a variant, whose action of a phase `of` tells.
    fn of(documents: &Documents<'_>, of: &dyn Fn(Phase) -> Target, file: &'a str, docstring: Option<&'a str>) -> Self {
        let evidence: Found<Evidence> = documents.found(&of(Phase::Check), "evidence");
        // A failure that the evidence has is told once.
        let is_told = evidence.document().is_some_and(|evidence| evidence.failure.is_some());
        let phases = [Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench].into_iter();
        let phases = phases.filter(|phase| !(is_told && *phase == Phase::Check));
        let last = of(Phase::Generate);
        let attempts = (1..=last.attempt).map(|attempt| documents.found(&last.of_attempt(attempt), "attempt"));
        Self {
            file,
            docstring,
            failures: phases.map(|phase| (phase, documents.found(&of(phase), "failure"))).collect(),
            attempts: attempts.filter_map(|attempt| attempt.document().cloned()).collect(),
            changes: (2..=last.attempt).filter_map(|attempt| change(documents, &last.of_attempt(attempt))).collect(),
            launches: documents.found(&of(Phase::Compile), "launches"),
            resources: documents.found(&of(Phase::Compile), "resources"),
            tune: documents.found(&of(Phase::Tune), "tune"),
            evidence,
        }
    }
}

/// Returns the number of an attempt and how its kernel differs from that of the one before, where both are kept.
fn change(documents: &Documents<'_>, target: &Target) -> Option<(u32, String)> {
    let before = target.of_attempt(target.attempt - 1);
    let [earlier, text] = [&before, target].map(|target| documents.kernel_text(target));
    Some((target.attempt, difference((&before, &earlier?), (target, &text?))))
}
