//! Actions that need no child: what is chosen, rendered, or already clear from what other actions made.
//!
//! Documents are read from the store; what is made of them is for pure crates to say.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::manifest::canonical_json;
use t2t_model::record::Outcome;
use t2t_plan::attempts::count;
use t2t_plan::graph::Index;
use t2t_plan::schedule::Settled;
use t2t_protocol::{Baseline, Cost, Evidence, Failure, Launches, Resources, Tune, read};
use t2t_report::rank::{self, Found, VariantResult};
use t2t_report::render::attempts::Attempt;
use t2t_report::render::build_page::{BuildPage, OpSummary};
use t2t_report::render::op_page::{OpPage, VariantPage};
use t2t_report::render::rounds::Rounds;
use t2t_report::render::{self, Template};
use t2t_spec::Op;
use t2t_store::{assets, fs};

use super::{EngineError, Run, Stop, evidence};
use crate::engine::perform::Performed;
use crate::session::{self, Session};

/// The artifact of a log and of the summary.
pub(crate) const PAGE: &str = "page";

impl Run<'_, '_> {
    /// Performs the action at `index` if it needs no child; None where it does.
    pub(super) fn performed_here(&mut self, index: Index) -> Result<Option<Performed>, Stop> {
        let target = self.session.graph.action(index).target().clone();
        match target.phase {
            Phase::Select => self.select(&target).map(Some),
            Phase::Log => self.log(&target).map(Some),
            Phase::Summary => self.summary().map(Some),
            Phase::Generate => self.made_here(index, &target),
            Phase::Compile | Phase::Check => {
                let made = || self.unusable.get(&index).map(evidence::unusable);
                Ok(unusable(self.session, &target).or_else(made))
            }
            Phase::Tune => self.not_tuned(&target),
            Phase::Calibrate | Phase::Analyze | Phase::Baseline | Phase::Bench => Ok(None),
        }
    }

    fn not_tuned(&self, target: &Target) -> Result<Option<Performed>, Stop> {
        let launches: Found<Launches> = self.sibling(target, Phase::Compile, "launches")?;
        let autotuned = launches.document().is_none_or(|launches| launches.autotuned);
        let tune = Tune { device: self.session.inventory.device.class.to_string(), ..Tune::default() };
        Ok((!autotuned).then(|| passed(&[("tune", canonical_json(&json!(tune)))])))
    }

    fn select(&self, target: &Target) -> Result<Performed, Stop> {
        let results = self.results(target)?;
        let baseline: Found<Baseline> = self.found(&Target::of_op(&target.op, Phase::Baseline), "baseline")?;
        let selection = rank::select(&results, baseline.document(), self.lane());
        let op = self.op(target).expect("an action of an op");
        let selection = selection.beside(self.published_elsewhere(op)?);
        Ok(passed(&[("selection", canonical_json(&json!(selection)))]))
    }

    fn lane(&self) -> rank::Lane {
        match self.session.inventory.device.class {
            DeviceClass::Interpreter => rank::Lane::Interpreter,
            DeviceClass::Cuda(_) => rank::Lane::Device,
        }
    }

    fn results(&self, target: &Target) -> Result<Vec<VariantResult>, Stop> {
        let op = self.op(target).expect("an action of an op");
        let results = op.variants.iter().map(|variant| {
            let of = |phase| self.standing(&Target::of_variant(&target.op, &variant.name, phase));
            Ok(VariantResult {
                name: variant.name.clone(),
                verdict: self.found(&of(Phase::Check), "verdict")?,
                bench: self.found(&of(Phase::Bench), "bench")?,
            })
        });
        results.collect()
    }

    fn log(&self, target: &Target) -> Result<Performed, Stop> {
        let op = self.op(target).expect("an action of an op");
        let of_op = |phase| Target::of_op(&target.op, phase);
        let analysis = self.found(&of_op(Phase::Analyze), "analysis")?;
        let calibration = self.found(&Target::calibrate(), "calibration")?;
        let analysis_failure: Found<Failure> = self.found(&of_op(Phase::Analyze), "failure")?;
        let baseline = self.found(&of_op(Phase::Baseline), "baseline")?;
        let selection = self.found(&of_op(Phase::Select), "selection")?;
        let results = self.results(target)?;
        let parts: Vec<Parts> =
            op.variants.iter().map(|variant| self.parts(target, &variant.name)).collect::<Result<_, _>>()?;
        let rounds = self.rounds(&op.name)?;
        let rounds = |variant: &str| rounds.variants.get(variant).map(Vec::as_slice).unwrap_or_default();
        let variants = op.variants.iter().zip(&results).zip(&parts).map(|((variant, result), parts)| VariantPage {
            result,
            rounds: rounds(&variant.name),
            file: &variant.file,
            docstring: parts
                .docstring
                .as_deref()
                .or_else(|| self.session.inventory.files.get(&variant.file).and_then(|file| file.docstring.as_deref())),
            evidence: parts.evidence.document(),
            launches: parts.launches.document(),
            resources: &parts.resources,
            tune: parts.tune.document(),
            attempts: &parts.attempts,
            no_attempt: parts.no_attempt.as_deref(),
            failures: parts.failures.iter().filter_map(|(phase, found)| Some((*phase, found.document()?))).collect(),
        });
        let page = OpPage {
            op: &op.name,
            kwargs: &op.kwargs,
            precision: op.precision.name(),
            calibration: &calibration,
            analysis: &analysis,
            analysis_failure: analysis_failure.document(),
            baseline: &baseline,
            lane: self.lane(),
            selection: &selection,
            variants: variants.collect(),
        };
        let text = self.template(&op.template)?;
        let page = render::log(Template { path: &op.template, text: &text }, &page).map_err(EngineError::from)?;
        Ok(passed(&[(PAGE, page)]))
    }

    /// Returns the rounds of improvement of an op. A page is kept under the digest of their file, so one that has changed since makes none.
    fn rounds(&self, op: &str) -> Result<Rounds, Stop> {
        let Some(known) = self.session.inventory.rounds.get(op) else { return Ok(Rounds::default()) };
        let path = session::rounds_path(op);
        let bytes = fs::read(&self.session.root.join(&path)).unwrap_or_default();
        if *known != Digest::of(&bytes) {
            return Err(Stop::Outdated(path));
        }
        // One that is damaged tells of no rounds.
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn parts(&self, target: &Target, variant: &str) -> Result<Parts, Stop> {
        let of = |phase| self.standing(&Target::of_variant(&target.op, variant, phase));
        let mut failures = BTreeMap::new();
        for phase in [Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench] {
            failures.insert(phase, self.found(&of(phase), "failure")?);
        }
        let evidence: Found<Evidence> = self.found(&of(Phase::Check), "evidence")?;
        if evidence.document().is_some_and(|evidence| evidence.failure.is_some()) {
            failures.remove(&Phase::Check);
        }
        let (attempts, no_attempt) = self.attempts(&of(Phase::Generate))?;
        let kernel = self.kernel_of(&of(Phase::Generate)).map(|kernel| self.bytes(kernel.digest)).transpose()?;
        Ok(Parts {
            attempts,
            no_attempt,
            docstring: kernel.and_then(|kernel| t2t_python::read(&kernel).docstring),
            evidence,
            launches: self.found(&of(Phase::Compile), "launches")?,
            resources: self.found(&of(Phase::Compile), "resources")?,
            tune: self.found(&of(Phase::Tune), "tune")?,
            failures,
        })
    }

    /// Makes the summary of the workspace, of which the session may be a part.
    pub(super) fn summary(&self) -> Result<Performed, Stop> {
        let known = self.session.ops();
        let told = known.iter().map(|(op, known)| match known {
            Some(known) => Ok(Cow::Borrowed(*known)),
            None => self.summary_of(op).map(Cow::Owned),
        });
        let told: Vec<Cow<'_, OpSummary>> = told.collect::<Result<_, Stop>>()?;
        let (mut wall, mut device) = self.costs()?;
        if let Some(rest) = self.session.rest() {
            wall += rest.wall;
            device += rest.device;
        }
        let mut files: Vec<String> = known.iter().map(|(op, _)| log_path(op)).collect();
        files.push(SUMMARY.to_owned());
        files.sort();
        let calibration = self.found(&Target::calibrate(), "calibration")?;
        let ops = told.iter().map(AsRef::as_ref).collect();
        let page = BuildPage { ops, files, calibration: &calibration, wall, device };
        let text = self.template(assets::SUMMARY_TEMPLATE)?;
        let template = Template { path: assets::SUMMARY_TEMPLATE, text: &text };
        Ok(passed(&[(PAGE, render::summary(template, &page).map_err(EngineError::from)?)]))
    }

    fn summary_of(&self, op: &str) -> Result<OpSummary, Stop> {
        let selection = self.found(&Target::of_op(op, Phase::Select), "selection")?;
        let attempts = count(&self.session.graph, &|index| self.schedule.settled(index), op);
        Ok(OpSummary::of(op, &selection).with_attempts(attempts))
    }

    /// Returns the sums of how long the actions behind the summary ran and held a device.
    fn costs(&self) -> Result<(Duration, Duration), Stop> {
        let (mut wall, mut device) = (0, 0);
        for index in self.session.graph.indices() {
            let target = self.session.graph.action(index).target();
            if let Found::Document(Cost { wall_ms, device_ms, .. }) = self.found(target, "cost")? {
                wall += wall_ms;
                device += device_ms;
            }
        }
        Ok((Duration::from_millis(wall), Duration::from_millis(device)))
    }

    /// Returns the text of a template. A page is kept under the template's digest, so one that has changed since makes none.
    fn template(&self, path: &str) -> Result<String, Stop> {
        let bytes = assets::read(&self.session.root, path);
        let wrong = |message: &str| EngineError::NoTemplate { path: path.to_owned(), message: message.to_owned() };
        let bytes = bytes.ok_or_else(|| wrong("no such file"))?;
        let inventory = &self.session.inventory;
        let known = match path {
            assets::SUMMARY_TEMPLATE => Some(&inventory.summary_template),
            path => inventory.templates.get(path),
        };
        if known.is_some_and(|known| *known != Digest::of(&bytes)) {
            return Err(Stop::Outdated(path.to_owned()));
        }
        String::from_utf8(bytes).map_err(|_| wrong("not UTF-8").into())
    }

    fn op(&self, target: &Target) -> Option<&Op> {
        self.session.spec.op(&target.op)
    }

    fn sibling<T: DeserializeOwned>(&self, target: &Target, phase: Phase, name: &str) -> Result<Found<T>, Stop> {
        self.found(&Target { phase, ..target.clone() }, name)
    }

    /// Returns the artifact `name` of `target`, or why there is none.
    pub(super) fn found<T: DeserializeOwned>(&self, target: &Target, name: &str) -> Result<Found<T>, Stop> {
        let settled = self.session.graph.find(target).and_then(|index| self.schedule.settled(index));
        let record = match settled {
            None => return Ok(Found::Skipped { reason: "it is no part of this build".to_owned() }),
            Some(Settled::NotNeeded) => return Ok(Found::Skipped { reason: self.why_not_needed(target) }),
            Some(Settled::Skipped(on)) => return Ok(Found::Skipped { reason: self.why_skipped(on) }),
            Some(Settled::Withheld(reason)) => return Ok(Found::Skipped { reason: reason.clone() }),
            Some(Settled::Lost(_) | Settled::Planned | Settled::Missing) => return Ok(Found::Lost),
            Some(Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record)) => record,
        };
        match (record.outputs.get(name), &record.outcome) {
            // Figures of a variant that was wrong when it was measured are none. What a rejected check says of its cases is wanted.
            (Some(_), Outcome::Rejected { class }) if target.phase == Phase::Bench => {
                Ok(Found::Rejected { class: class.clone() })
            }
            (Some(blob), _) => Ok(match read::document(&self.bytes(blob.digest)?) {
                Ok(document) => Found::Document(document),
                Err(misfit) => Found::Skipped { reason: format!("`{name}` of `{target}` cannot be read: {misfit}") },
            }),
            (None, Outcome::Rejected { class }) => Ok(Found::Rejected { class: class.clone() }),
            (None, _) => Ok(Found::Skipped { reason: format!("`{target}` made no `{name}`") }),
        }
    }

    fn why_not_needed(&self, target: &Target) -> String {
        let attempts = (1..).map(|attempt| Target { phase: Phase::Generate, attempt, ..target.clone() });
        let ends = attempts.map_while(|generate| self.session.graph.find(&generate)).filter_map(|index| {
            let record = self.schedule.settled(index).and_then(Settled::record)?;
            Some((&self.session.graph.action(index).identity.target, record.outcome.is_pass()))
        });
        let ends: Vec<(&Target, bool)> = ends.collect();
        match ends.last() {
            Some((last, false)) if !ends.iter().any(|(_, is_pass)| *is_pass) => self.why_skipped(last),
            _ => "another attempt was to be made".to_owned(),
        }
    }

    fn why_skipped(&self, on: &Target) -> String {
        let settled = self.session.graph.find(on).and_then(|index| self.schedule.settled(index));
        if let Some(Settled::Withheld(reason)) = settled {
            return reason.clone();
        }
        match settled.and_then(Settled::record).map(|record| &record.outcome) {
            Some(Outcome::Rejected { class }) => format!("`{on}` was rejected ({class})"),
            Some(Outcome::NotJudged { reason }) => format!("`{on}` was not judged: {reason}"),
            _ => format!("`{on}` did not pass"),
        }
    }
}

/// Returns what a compile or a check comes to without a child: its file, or the file of its cases, cannot be used. None where it takes one to tell.
pub(crate) fn unusable(session: &Session, target: &Target) -> Option<Performed> {
    let op = session.spec.op(&target.op)?;
    let variant = op.variant(target.variant.as_deref()?)?;
    let cases = op.cases.as_ref().filter(|_| target.phase == Phase::Check);
    let unfit = || session.inventory.files.get(cases?)?.fault.clone();
    session.inventory.fault(variant).or_else(unfit).as_ref().map(evidence::unusable)
}

/// What the log tells of a variant, as found.
struct Parts {
    evidence: Found<Evidence>,
    launches: Found<Launches>,
    resources: Found<Resources>,
    tune: Found<Tune>,
    failures: BTreeMap<Phase, Found<Failure>>,
    attempts: Vec<Attempt>,
    no_attempt: Option<String>,
    /// Of a kernel file that a generator wrote.
    docstring: Option<String>,
}

/// The summary's place in the workspace.
pub(crate) const SUMMARY: &str = "logs/summary.md";

/// The folder of all logs.
pub(crate) const LOGS: &str = "logs";

/// Returns the op whose log has this name in the folder of logs, if it is a log's.
#[must_use]
pub(crate) fn op_of_log(name: &str) -> Option<&str> {
    name.strip_suffix("_log.md")
}

/// Returns where in the workspace the edit of the log `name` in `logs/` is kept, whose digest begins so.
#[must_use]
pub(crate) fn kept_edit(name: &str, digest: &str) -> String {
    format!("cache/replaced/{digest}-{name}")
}

/// Returns the place of an op's log in the workspace.
#[must_use]
pub(crate) fn log_path(op: &str) -> String {
    format!("logs/{op}_log.md")
}

/// Returns the end of an action that passed with these documents.
pub(super) fn passed(artifacts: &[(&str, String)]) -> Performed {
    let documents = artifacts.iter().map(|(name, text)| ((*name).to_owned(), text.clone().into_bytes())).collect();
    Performed { outcome: Some(Outcome::Passed), documents, ..Performed::default() }
}
