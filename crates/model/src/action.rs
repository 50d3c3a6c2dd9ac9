//! What t2t does: phases, actions and what one asks of another.
//!
//! It does not know whether an action is stale, nor how it is performed.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::manifest::Fact;
use crate::path::RepoPath;

/// A kind of action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// What the device does at most.
    Calibrate,
    /// What torch says of the op.
    Analyze,
    /// A generator writes a kernel file.
    Generate,
    /// Kernels for the target devices, with no GPU.
    Compile,
    /// The kernel's outputs against torch.
    Check,
    /// The fastest configuration on this device.
    Tune,
    /// Torch itself, measured.
    Baseline,
    /// A variant, measured.
    Bench,
    /// The best variant of an op.
    Select,
    /// The op's log.
    Log,
    /// The log of the whole build.
    Summary,
}

impl Phase {
    /// All phases, in the order in which a build meets them.
    pub const ALL: [Self; 11] = [
        Self::Calibrate,
        Self::Analyze,
        Self::Generate,
        Self::Compile,
        Self::Check,
        Self::Tune,
        Self::Baseline,
        Self::Bench,
        Self::Select,
        Self::Log,
        Self::Summary,
    ];

    /// Returns the phase's name, as it stands in targets.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Calibrate => "calibrate",
            Self::Analyze => "analyze",
            Self::Generate => "generate",
            Self::Compile => "compile",
            Self::Check => "check",
            Self::Tune => "tune",
            Self::Baseline => "baseline",
            Self::Bench => "bench",
            Self::Select => "select",
            Self::Log => "log",
            Self::Summary => "summary",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Phase {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|phase| phase.name() == text).ok_or(())
    }
}

/// The name of an action: `op:phase`, `op/variant:phase`, of a later attempt `op/variant#2:phase`, or, of no op, `calibrate` and `summary`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    /// The op, or empty for a phase of the whole build.
    pub op: String,
    /// The variant, for the phases of one.
    pub variant: Option<String>,
    /// The phase.
    pub phase: Phase,
    /// Which attempt at the variant's kernel file it is of, from 1. What a person wrote has one.
    pub attempt: u32,
}

impl Target {
    /// Returns the name of a phase of an op.
    #[must_use]
    pub fn of_op(op: &str, phase: Phase) -> Self {
        Self { op: op.to_owned(), variant: None, phase, attempt: 1 }
    }

    /// Returns the name of a phase of a variant.
    #[must_use]
    pub fn of_variant(op: &str, variant: &str, phase: Phase) -> Self {
        Self { variant: Some(variant.to_owned()), ..Self::of_op(op, phase) }
    }

    /// Returns the name of the same phase of another attempt.
    #[must_use]
    pub fn of_attempt(&self, attempt: u32) -> Self {
        Self { attempt, ..self.clone() }
    }

    /// Returns the variant as it stands in targets, of a later attempt with its number: `v1`, `v1#2`. None for a phase of an op.
    #[must_use]
    pub fn variant_name(&self) -> Option<String> {
        let variant = self.variant.as_ref()?;
        Some(if self.attempt > 1 { format!("{variant}#{}", self.attempt) } else { variant.clone() })
    }

    /// Returns the target without its phase: `op`, `op/variant`, `op/variant#2`.
    #[must_use]
    pub fn place(&self) -> String {
        self.variant_name().map_or_else(|| self.op.clone(), |variant| format!("{}/{variant}", self.op))
    }

    /// Returns the name of the calibration.
    #[must_use]
    pub fn calibrate() -> Self {
        Self::of_op("", Phase::Calibrate)
    }

    /// Returns the name of the summary.
    #[must_use]
    pub fn summary() -> Self {
        Self::of_op("", Phase::Summary)
    }

    /// Returns the target of no op that is written `text`, if one is.
    #[must_use]
    pub fn of_build(text: &str) -> Option<Self> {
        [Self::calibrate(), Self::summary()].into_iter().find(|target| target.phase.name() == text)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phase {
            phase @ (Phase::Calibrate | Phase::Summary) => f.write_str(phase.name()),
            phase => write!(f, "{}:{phase}", self.place()),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(target) = Self::of_build(&text) {
            return Ok(target);
        }
        let refuse = || format!("`{text}` is not a target");
        let (place, phase) = text.rsplit_once(':').ok_or_else(refuse)?;
        let phase: Phase = phase.parse().map_err(|()| refuse())?;
        let target = match place.split_once('/') {
            Some((op, variant)) => {
                let (variant, attempt) = attempted(variant).ok_or_else(refuse)?;
                Self::of_variant(op, variant, phase).of_attempt(attempt)
            }
            None => Self::of_op(place, phase),
        };
        let is_nameless = target.op.is_empty() || target.variant.as_ref().is_some_and(String::is_empty);
        let is_of_no_op = Self::of_build(phase.name()).is_some();
        if is_nameless || is_of_no_op { Err(refuse()) } else { Ok(target) }
    }
}

/// Returns the variant and the attempt that `text` names: `v1` and `v1#1` are the first attempt, `v1#2` the second. None where the number is none from 1 on.
#[must_use]
pub fn attempted(text: &str) -> Option<(&str, u32)> {
    let Some((variant, number)) = text.split_once('#') else { return Some((text, 1)) };
    let is_written_so = number.starts_with(|digit: char| matches!(digit, '1'..='9'));
    let attempt = number.parse().ok().filter(|_| is_written_so)?;
    Some((variant, attempt))
}

/// What a device lane runs on, as far as results depend on it: `interpreter`, or `cuda` with a model.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum DeviceClass {
    /// Triton's interpreter, on the CPU.
    Interpreter,
    /// A CUDA device of this model, as in `nvidia-h200`.
    Cuda(String),
}

impl fmt::Display for DeviceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interpreter => f.write_str("interpreter"),
            Self::Cuda(model) => f.write_str(model),
        }
    }
}

impl From<DeviceClass> for String {
    fn from(class: DeviceClass) -> Self {
        class.to_string()
    }
}

impl From<String> for DeviceClass {
    fn from(text: String) -> Self {
        if text == "interpreter" { Self::Interpreter } else { Self::Cuda(text) }
    }
}

/// What makes an action the same action across builds: its target and, where the result depends on it, the device class.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The action's name.
    pub target: Target,
    /// The device class, for phases whose results depend on it.
    pub device: Option<DeviceClass>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => write!(f, "{} on {device}", self.target),
            None => write!(f, "{}", self.target),
        }
    }
}

/// What an edge asks of its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The source must pass; else the dependent is skipped.
    Pass,
    /// Any end of the source will do.
    Settle,
    /// The source must be rejected for what another attempt can help, or another source of which the dependent needs this: else it is not needed.
    Reject,
}

/// An edge: what an action needs of another, and which of its artifacts it reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// The source.
    pub on: Target,
    /// How the source must have ended.
    pub need: Need,
    /// The artifacts whose digests enter the manifest. None for an edge that only orders.
    pub reads: &'static [&'static str],
}

/// Where an action runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// One slot of the CPU lane.
    Cpu,
    /// All slots of the CPU lane: a measurement on the host.
    WholeCpu,
    /// A CUDA device.
    Device,
    /// One of the authors that may work at once: what waits for one takes no core.
    Author,
}

/// A workspace file in the closure of an action, as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The digest that the key holds: semantic for Python.
    pub meaning: Digest,
    /// The digest of the bytes.
    pub bytes: Digest,
}

/// One cacheable step, with everything of its manifest that is known before anything runs.
#[derive(Clone, Debug)]
pub struct Action {
    /// Its name and device class.
    pub identity: Identity,
    /// Where it runs.
    pub lane: Lane,
    /// Facts known beforehand: declaration, fingerprints, source digests.
    pub facts: BTreeMap<String, Fact>,
    /// The closure of its kernel file, for evidence that cites lines.
    pub sources: BTreeMap<RepoPath, Source>,
    /// The place of its kernel file, where a generator writes that: what it holds is known when the attempt is made, and is neither in the facts nor in the sources before.
    pub generated: Option<RepoPath>,
    /// What it needs of other actions.
    pub dependencies: Vec<Dependency>,
    /// How long it may take. In no key.
    pub deadline: Duration,
    /// Of a bench, the digest of what the results of its timed calls are judged by. In no key: a pass stands for any, since the check tells of them; a rejection stands for this one.
    pub judging: Option<Digest>,
}

impl Action {
    /// Returns the action's name.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.identity.target
    }
}
