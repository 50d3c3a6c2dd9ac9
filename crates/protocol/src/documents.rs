//! Which documents a reply may hold, by name.
//!
//! It does not know which function leaves which.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AdoptedEntry, AnalysisFailure, Failure, Signatures, ToldModules, Unclear};
use crate::{
    Against, Analysis, Baseline, Bench, Calibration, Evidence, Launches, Profile, Progress, Resources, Screen, Sweep,
    Taken, TritonCache, Tune, Verdict,
};

/// What was written of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Repro {
    /// The case; null where there is none of the name.
    pub case: Option<String>,
    /// The names of all cases.
    pub cases: Vec<String>,
    /// Why torch refuses it.
    pub refused: Option<String>,
}

/// The failure of an analysis, or that of anything else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum AnyFailure {
    /// A kernel's.
    Kernel(Box<Failure>),
    /// An op's.
    Analysis(AnalysisFailure),
}

/// What an action cost, which t2t itself writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// How long it ran, in milliseconds.
    pub wall_ms: u64,
    /// How long a device worked for it.
    pub device_ms: u64,
    /// How much of that was timed.
    pub timing_ms: u64,
}

/// The documents of a reply: each function leaves some of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Documents {
    /// The document `against`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Against"))]
    pub against: Option<Against>,
    /// The document `analysis`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Analysis"))]
    pub analysis: Option<Analysis>,
    /// The document `baseline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Baseline"))]
    pub baseline: Option<Baseline>,
    /// The document `bench`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Bench"))]
    pub bench: Option<Bench>,
    /// The document `calibration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Calibration"))]
    pub calibration: Option<Calibration>,
    /// The document `entry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "AdoptedEntry"))]
    pub entry: Option<AdoptedEntry>,
    /// The document `evidence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Evidence"))]
    pub evidence: Option<Evidence>,
    /// The document `failure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "AnyFailure"))]
    pub failure: Option<AnyFailure>,
    /// The document `launches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Launches"))]
    pub launches: Option<Launches>,
    /// The document `lengths`: dim → the lengths that torch takes, of the dims of which it refuses some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Taken>"))]
    pub lengths: Option<BTreeMap<String, Taken>>,
    /// The document `modules`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "ToldModules"))]
    pub modules: Option<ToldModules>,
    /// The document `names`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub names: Option<Vec<String>>,
    /// The document `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Profile"))]
    pub profile: Option<Profile>,
    /// The document `ran`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Progress"))]
    pub ran: Option<Progress>,
    /// The document `repro`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Repro"))]
    pub repro: Option<Repro>,
    /// The document `resources`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Resources"))]
    pub resources: Option<Resources>,
    /// The document `screen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Screen"))]
    pub screen: Option<Screen>,
    /// The document `signatures`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Signatures"))]
    pub signatures: Option<Signatures>,
    /// The document `sweep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Sweep"))]
    pub sweep: Option<Sweep>,
    /// The document `toolchain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Option<String>>"))]
    pub toolchain: Option<BTreeMap<String, Option<String>>>,
    /// The document `triton_cache`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "TritonCache"))]
    pub triton_cache: Option<TritonCache>,
    /// The document `tune`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Tune"))]
    pub tune: Option<Tune>,
    /// The document `unclear`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Unclear"))]
    pub unclear: Option<Unclear>,
    /// The document `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Verdict"))]
    pub verdict: Option<Verdict>,
}
