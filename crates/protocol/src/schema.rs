//! The schema of all that t2t and the harness tell each other, made from the types, and the Python types made from the schema.
//!
//! It does not know where either lies, nor that they are written to files.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    Against, Analysis, AnalysisFailure, Baseline, Bench, Calibration, Common, Declaration, Evidence, Failure, Launches,
    OfAnalyze, OfBaseline, OfBench, OfCheck, OfCompile, OfCompileCuda, OfRepro, OfScreen, OfSweep, OfTiming, OfVariant,
    Profile, Progress, Protocol, Reply, Resources, Screen, Sweep, ToCandidate, ToFollow, ToJudge, ToRehearse, ToRepro,
    ToSample, TritonCache, Tune, Variant, Verdict,
};

mod python;

/// Declares the request of a function: the parts that it is put together from.
macro_rules! request {
    ($name:ident, $doc:literal: $($field:ident: $part:ty),*) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $(#[doc = "A part."] #[serde(flatten)] pub $field: $part,)*
        }
    };
}

request!(ProbeRequest, "What `probe.probe` is told.": alone: crate::Alone);
request!(AdoptRequest, "What `adopt.adopt` is told.": alone: crate::Alone, part: crate::OfAdopt);
request!(CalibrateRequest, "What `calibrate.calibrate` is told.": common: Common);
request!(OpRequest, "What every child of an op's action is told.": common: Common, of_op: crate::OfOp);
request!(AnalyzeRequest, "What `analyze.analyze` is told.": common: Common, of_op: crate::OfOp, part: OfAnalyze);
request!(VariantRequest, "What every child of a variant's action is told.": common: Common, of_op: crate::OfOp, variant: OfVariant);
request!(CompileRequest, "What `compile.compile_variant` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfCompile);
request!(CompileCudaRequest, "What `compile_cuda.compile_cuda` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfCompileCuda);
request!(CheckRequest, "What every child of a check is told, and `prepare.prepare`.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfCheck);
request!(CandidateRequest, "What `candidate.run` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfCheck, more: ToCandidate);
request!(RehearsalRequest, "What `ready.rehearse` is told of the check that is likely to come.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfCheck, more: ToRehearse);
request!(JudgeRequest, "What `judge.judge` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfCheck, more: ToJudge);
request!(FollowRequest, "What `judge.follow` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfCheck, more: ToFollow);
request!(TimingRequest, "What whatever times an op is told.": common: Common, of_op: crate::OfOp, part: OfTiming);
request!(TuneRequest, "What `tune.tune` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfTiming);
request!(BenchRequest, "What `bench.bench` and `profile.profile` are told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfBench);
request!(SampleRequest, "What `sample.judge_sample` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfBench, more: ToSample);
request!(BaselineRequest, "What `baseline.baseline` is told.": common: Common, of_op: crate::OfOp, part: OfBaseline);
request!(SweepRequest, "What `sweep.sweep` is told.": common: Common, of_op: crate::OfOp, part: OfSweep);
request!(ScreenRequest, "What `screen.screen` and `against.against` are told.": common: Common, of_op: crate::OfOp, part: OfScreen);
request!(ReproRequest, "What `repro.write` is told.": common: Common, of_op: crate::OfOp, variant: OfVariant, part: OfRepro, more: ToRepro);

/// Returns the schema: one JSON Schema whose definitions are the types.
#[must_use]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    macro_rules! roots {
        ($($root:ty),* $(,)?) => { $(generator.subschema_for::<$root>();)* };
    }
    roots!(
        Common,
        Declaration,
        Variant,
        Protocol,
        ProbeRequest,
        AdoptRequest,
        CalibrateRequest,
        OpRequest,
        AnalyzeRequest,
        VariantRequest,
        CompileRequest,
        CompileCudaRequest,
        CheckRequest,
        CandidateRequest,
        RehearsalRequest,
        JudgeRequest,
        FollowRequest,
        TimingRequest,
        TuneRequest,
        BenchRequest,
        SampleRequest,
        BaselineRequest,
        SweepRequest,
        ScreenRequest,
        ReproRequest,
        Reply,
        Verdict,
        Evidence,
        Failure,
        AnalysisFailure,
        Progress,
        Launches,
        Resources,
        TritonCache,
        Bench,
        Baseline,
        Tune,
        Calibration,
        Sweep,
        Screen,
        Against,
        Profile,
        Analysis,
    );
    let mut definitions: Map<String, Value> = generator.take_definitions(true);
    definitions.values_mut().for_each(without_defaults);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What t2t and its harness tell each other",
        "$defs": definitions,
    })
}

/// Takes defaults away: they are what is read of documents that others wrote. Whoever writes one says everything.
fn without_defaults(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // No field of a type is called so.
            fields.remove("default");
            fields.values_mut().for_each(without_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(without_defaults),
        _ => {}
    }
}

/// Returns [`schema`] as the text of a file.
#[must_use]
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

/// Returns the Python file with a type for each definition of the schema.
#[must_use]
pub fn python_text() -> String {
    python::module(&schema())
}
