//! What an author is asked in a round: the prompt of an attempt, and the kernel to beat with its figures.
//!
//! It does not know how an author is asked, nor what becomes of the answer.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_protocol::{Analysis, Bench, Calibration, Resources};
use t2t_report::rank::{Found, Lane};
use t2t_report::render::Template;
use t2t_report::render::attempts::Attempt;
use t2t_report::render::improving::{self, Improving};
use t2t_report::render::prompt::{Before, Neighbour, Prompt};
use t2t_report::render::rounds::Round;
use t2t_spec::Profile;
use t2t_store::assets;

use super::subject::Subject;
use crate::cli::error::CliError;
use crate::cli::trial::{Built, Refused};
use crate::engine::{Asked, Asking, LONGEST_NEIGHBOUR, NEIGHBOURS, question, text};

/// The kernel to beat, as an author is told of it.
pub(super) struct Told<'a> {
    /// Its text.
    pub(super) source: &'a str,
    /// Its document `bench`.
    pub(super) bench: &'a Bench,
    /// What its compiled kernels use.
    pub(super) resources: Option<&'a Resources>,
    /// The document `analysis`.
    pub(super) analysis: Option<&'a Analysis>,
    /// The document `calibration`.
    pub(super) calibration: &'a Found<Calibration>,
}

/// What came of the last round of this command.
#[derive(Default)]
pub(super) struct Last {
    /// The candidate's text, where there was one that is not the kernel to beat.
    pub(super) source: Option<String>,
    /// Why it was refused, where it was.
    pub(super) refused: Option<Refused>,
    /// What its compiled kernels use.
    pub(super) resources: Option<Resources>,
}

/// Returns what the author of `subject` is asked in this round, for at most so long. Fails where a template is wrong.
pub(super) fn asking(
    subject: &Subject<'_>,
    told: &Told<'_>,
    (round, rounds): (u32, &[Round]),
    last: &Last,
    longest: Option<Duration>,
) -> Result<Asking, CliError> {
    let Subject { session, op, variant, .. } = subject;
    let file = Path::new(&variant.file).file_name().map(|name| name.to_string_lossy().into_owned());
    let file = file.unwrap_or_else(|| format!("{}.py", variant.name));
    let reference = op.reference.as_ref().and_then(|reference| text(&session.root.join(&reference.file)));
    let neighbours = neighbours(subject);
    let before = last.refused.as_ref().map(|refused| Before {
        attempt: round.saturating_sub(1).max(1),
        source: last.source.as_deref(),
        phase: refused.phase,
        failure: &refused.failure,
        resources: last.resources.as_ref(),
    });
    let is_refused = before.is_some();
    let prompt = Prompt {
        op: &op.name,
        variant: &variant.name,
        attempt: round,
        file: &file,
        declaration: &op.declaration(Profile::Cuda).asked(),
        declared: &variant.asked(),
        reference: reference.as_deref(),
        analysis: told.analysis,
        devices: &session.inventory.targets,
        neighbours: &neighbours,
        before,
    };
    let improving = Improving {
        prompt: &prompt,
        round,
        source: told.source,
        bench: told.bench,
        lane: match session.inventory.device.class {
            DeviceClass::Interpreter => Lane::Interpreter,
            DeviceClass::Cuda(_) => Lane::Device,
        },
        analysis: told.analysis,
        calibration: told.calibration,
        precision: op.precision.name(),
        resources: told.resources,
        rounds,
        last: last.source.as_deref().filter(|_| !is_refused),
    };
    let [contract, figures] = [assets::PROMPT, assets::IMPROVE].map(|path| template(subject, path));
    let (contract, figures) = (contract?, figures?);
    let contract = Template { path: assets::PROMPT, text: &contract };
    let asked = improving::text(contract, Template { path: assets::IMPROVE, text: &figures }, &improving);
    let prompt = asked
        .map_err(|fault| CliError::misuse(fault.to_string(), "docs/reference/improve.md says what it may name"))?;
    let request = improving::request(&improving);
    let mut question = question(subject.author, Asked { root: session.root.clone(), file, prompt, request });
    question.timeout = longest.map_or(question.timeout, |longest| question.timeout.min(longest));
    let attempt = Attempt { attempt: round, generator: subject.generator.clone(), ..Attempt::default() };
    Ok(Asking { question, attempt, before: Some(told.source.to_owned()) })
}

/// Returns the text of a template: the workspace's, else the one that the binary carries.
fn template(subject: &Subject<'_>, path: &str) -> Result<String, CliError> {
    let bytes = assets::read(&subject.session.root, path).unwrap_or_default();
    Ok(String::from_utf8(bytes).with_context(|| format!("{path}: not UTF-8"))?)
}

/// Returns other kernels of the op, as they lie in the workspace.
fn neighbours(subject: &Subject<'_>) -> Vec<Neighbour> {
    let Subject { session, op, variant, .. } = subject;
    let others = op.variants.iter().filter(|other| other.name != variant.name && other.module.is_none());
    let source = |other: &t2t_spec::Variant| {
        let source = text(&session.root.join(&other.file)).filter(|source| source.len() <= LONGEST_NEIGHBOUR)?;
        Some(Neighbour { variant: other.name.clone(), source })
    };
    others.filter_map(source).take(NEIGHBOURS).collect()
}

/// Returns the analysis of an op, and the calibration of its device, as they were built.
pub(super) fn facts(subject: &Subject<'_>, built: &Built) -> (Option<Analysis>, Found<Calibration>) {
    let analysis = built.document_of(&Target::of_op(&subject.op.name, Phase::Analyze), "analysis");
    let calibration = built.document_of(&Target::calibrate(), "calibration");
    let none = || Found::Skipped { reason: "there is none".to_owned() };
    (analysis, calibration.map_or_else(none, Found::Document))
}
