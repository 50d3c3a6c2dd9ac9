//! The page of an op: the documents of its actions, and what a log template sees of them.
//!
//! It judges nothing: status is ranking's word, and every figure is one document's.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use t2t_model::action::Phase;

use crate::rank::{Found, Lane, Standing, VariantResult, attempts, standing};
use crate::render::benchmark::{self, Benchmark};
use crate::render::defects::{self, Defect};
use crate::render::missed::missed;
use crate::render::problem::Problem;
use crate::render::resources::{self, KernelRow};
use crate::render::sizes::{self, SizeRow};

/// All that the log of an op is made from.
#[derive(Clone, Debug)]
pub struct OpPage<'a> {
    /// The op's name.
    pub op: &'a str,
    /// Its declared keyword arguments.
    pub kwargs: &'a Value,
    /// `ieee` or `tf32`: how exact its float32 products are declared to be.
    pub precision: &'a str,
    /// The document `calibration`.
    pub calibration: &'a Found,
    /// The document `analysis`.
    pub analysis: &'a Found,
    /// Why there is no analysis: its `failure`.
    pub analysis_failure: Option<&'a Value>,
    /// The document `baseline`.
    pub baseline: &'a Found,
    /// Where the kernels were called.
    pub lane: Lane,
    /// The document `selection`.
    pub selection: &'a Found,
    /// The variants, in declared order.
    pub variants: Vec<VariantPage<'a>>,
}

/// What a log tells of one variant.
#[derive(Clone, Debug)]
pub struct VariantPage<'a> {
    /// The documents `verdict` and `bench`, with its name.
    pub result: &'a VariantResult,
    /// The workspace path of its file.
    pub file: &'a str,
    /// Its module docstring.
    pub docstring: Option<&'a str>,
    /// The document `evidence` of its check.
    pub evidence: Option<&'a Value>,
    /// The document `launches` of its compile.
    pub launches: Option<&'a Value>,
    /// The document `resources` of its compile.
    pub resources: &'a Found,
    /// The document `tune`.
    pub tune: Option<&'a Value>,
    /// The documents `failure` of phases other than check.
    pub failures: BTreeMap<Phase, &'a Value>,
}

impl<'a> OpPage<'a> {
    /// Returns what a template sees. docs/reference/log-templates.md describes it.
    #[must_use]
    pub(crate) fn context(&self) -> LogContext<'a> {
        let results: Vec<VariantResult> = self.variants.iter().map(|variant| variant.result.clone()).collect();
        let interpreter = self.lane == Lane::Interpreter;
        let analysis = self.analysis.document();
        let variants: Vec<VariantSection> = self.variants.iter().map(VariantPage::section).collect();
        let selection = self.selection.document();
        let benchmark = benchmark::of(benchmark::Documents {
            variants: &results,
            baseline: self.baseline.document(),
            analysis,
            calibration: self.calibration,
            precision: self.precision,
            selection,
        });
        LogContext {
            op: self.op,
            operation: analysis.and_then(|analysis| analysis["operation"].as_str()),
            kwargs: self.kwargs,
            interpreter,
            analysis,
            sizes: analysis.map(sizes::analyzed).unwrap_or_default(),
            growth: analysis.map(growth).unwrap_or_default(),
            analysis_problem: self.analysis_failure.map(|failure| Problem::of("analyze", failure)),
            checklist: Checklist::of(&variants, analysis, &benchmark, selection),
            variants,
            tolerances: self
                .variants
                .iter()
                .filter_map(|variant| variant.evidence)
                .find_map(tolerances)
                .unwrap_or_default(),
            benchmark,
            defects: self.variants.iter().flat_map(VariantPage::defects).collect(),
            selection,
        }
    }
}

/// What a log template sees.
#[derive(Debug, Serialize)]
pub(crate) struct LogContext<'a> {
    op: &'a str,
    operation: Option<&'a str>,
    kwargs: &'a Value,
    interpreter: bool,
    analysis: Option<&'a Value>,
    sizes: Vec<SizeRow>,
    growth: Vec<Growth>,
    analysis_problem: Option<Problem>,
    variants: Vec<VariantSection<'a>>,
    tolerances: Vec<Tolerance>,
    benchmark: Benchmark,
    defects: Vec<Defect>,
    selection: Option<&'a Value>,
    checklist: Checklist,
}

/// How work and memory grow in a dim: exponents.
#[derive(Debug, Serialize)]
struct Growth {
    dim: String,
    work: Value,
    memory: Value,
}

/// What there is to be told of a variant.
#[derive(Debug, Serialize)]
struct VariantSection<'a> {
    name: &'a str,
    file: &'a str,
    docstring: Option<&'a str>,
    status: &'static str,
    mark: &'static str,
    class: Option<String>,
    reason: Option<String>,
    attempts: usize,
    kernels: Vec<KernelRow>,
    targets: BTreeSet<String>,
    not_compiled: Option<String>,
    coverage: Option<&'a str>,
    coverage_reasons: Vec<&'a str>,
    dropped: Vec<&'a Value>,
    choices: Vec<&'a Value>,
    cases: Cases,
    worst: Option<Worst<'a>>,
    repeat: Option<&'a str>,
    notes: Vec<String>,
    problems: Vec<Problem>,
    output: Option<Output<'a>>,
}

/// How many cases ended how.
#[derive(Debug, Default, Serialize)]
struct Cases {
    total: usize,
    passed: usize,
    rejected: usize,
    not_judged: usize,
    dropped: usize,
}

/// The case with the largest error.
#[derive(Debug, Serialize)]
struct Worst<'a> {
    case: &'a str,
    max_abs: &'a Value,
    max_rel: &'a Value,
    torch_max_abs: &'a Value,
}

/// The tolerances of a dtype.
#[derive(Debug, Serialize)]
struct Tolerance {
    dtype: String,
    atol: Value,
    rtol: Value,
}

/// What a rejected kernel printed.
#[derive(Debug, Serialize)]
struct Output<'a> {
    stdout: &'a str,
    stderr: &'a str,
    truncated: bool,
}

/// What of the workflow is done.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "a checklist is a list of boxes")]
struct Checklist {
    analyzed: bool,
    compiled: bool,
    /// The variants with a launch that was not compiled.
    compiled_in_part: Vec<String>,
    judged: bool,
    correct: bool,
    measured: bool,
    selected: bool,
}

impl<'a> VariantPage<'a> {
    /// Returns what was compiled on a device's time.
    fn defects(&self) -> Vec<Defect> {
        defects::of(&self.result.name, [self.evidence, self.tune, self.result.bench.document()])
    }

    fn section(&self) -> VariantSection<'a> {
        let Standing { status, class, reason } = standing(self.result);
        let resources = self.resources.document();
        let launches = self.launches.unwrap_or(&Value::Null);
        let evidence = self.evidence.unwrap_or(&Value::Null);
        VariantSection {
            name: &self.result.name,
            file: self.file,
            docstring: self.docstring,
            status: status.name(),
            mark: status.mark(),
            class,
            reason,
            attempts: attempts(&self.result.verdict),
            kernels: resources.map(resources::rows).unwrap_or_default(),
            targets: resources.map(resources::targets).unwrap_or_default(),
            not_compiled: self.resources.reason(),
            coverage: launches["coverage"].as_str(),
            coverage_reasons: texts(&launches["reasons"]),
            dropped: list(&launches["dropped"]).collect(),
            choices: list(&self.tune.unwrap_or(&Value::Null)["choices"]).collect(),
            cases: Cases::of(&self.result.verdict),
            worst: worst(evidence),
            repeat: evidence["repeat"].as_str(),
            notes: self.notes(evidence),
            problems: self.problems(evidence),
            output: output(evidence)
                .filter(|_| !evidence["failure"].is_null())
                .or_else(|| self.failures.values().find_map(|failure| output(failure))),
        }
    }

    /// What else is to be said of its check: how the candidate ended, and what no case reached.
    fn notes(&self, evidence: &Value) -> Vec<String> {
        let verdict = self.result.verdict.document().unwrap_or(&Value::Null);
        let told = texts(&evidence["notes"]).into_iter().map(str::to_owned);
        told.chain(list(&verdict["missed"]).map(missed)).collect()
    }

    fn problems(&self, evidence: &Value) -> Vec<Problem> {
        let check = Some(&evidence["failure"]).filter(|failure| !failure.is_null());
        let check = check.map(|failure| (Phase::Check, failure));
        let mut all: Vec<(Phase, &Value)> =
            self.failures.iter().map(|(phase, failure)| (*phase, *failure)).chain(check).collect();
        all.sort_by_key(|(phase, _)| *phase);
        // A file that cannot be used is every phase's problem, told once.
        all.dedup_by(|(_, later), (_, earlier)| later == earlier);
        all.into_iter().map(|(phase, failure)| Problem::of(phase.name(), failure)).collect()
    }
}

impl Cases {
    fn of(verdict: &Found) -> Self {
        let cases = verdict.document().and_then(|verdict| verdict["cases"].as_object());
        let mut told = Self::default();
        for verdict in cases.into_iter().flat_map(serde_json::Map::values) {
            told.total += 1;
            match verdict.as_str() {
                Some("passed") => told.passed += 1,
                Some("rejected") => told.rejected += 1,
                Some("dropped") => told.dropped += 1,
                _ => told.not_judged += 1,
            }
        }
        told
    }
}

impl Checklist {
    fn of(
        variants: &[VariantSection<'_>],
        analysis: Option<&Value>,
        benchmark: &Benchmark,
        selection: Option<&Value>,
    ) -> Self {
        let every = |is: fn(&VariantSection<'_>) -> bool| !variants.is_empty() && variants.iter().all(is);
        Self {
            analyzed: analysis.is_some(),
            compiled: every(|variant| variant.not_compiled.is_none() && variant.coverage != Some("partial")),
            compiled_in_part: variants
                .iter()
                .filter(|variant| variant.coverage == Some("partial"))
                .map(|variant| variant.name.to_owned())
                .collect(),
            judged: every(|variant| matches!(variant.status, "passed" | "rejected" | "not-judged")),
            correct: every(|variant| variant.status == "passed"),
            measured: benchmark.has_variant(),
            selected: selection.is_some_and(|selection| !selection["chosen"].is_null()),
        }
    }
}

fn growth(analysis: &Value) -> Vec<Growth> {
    let work = &analysis["growth"]["work"];
    let dims = work.as_object().into_iter().flat_map(serde_json::Map::keys).collect::<BTreeSet<_>>();
    let memory = &analysis["growth"]["memory"];
    dims.into_iter()
        .map(|dim| Growth { dim: dim.clone(), work: work[dim].clone(), memory: memory[dim].clone() })
        .collect()
}

fn worst(evidence: &Value) -> Option<Worst<'_>> {
    let worst = &evidence["worst"];
    let case = worst["case"].as_str()?;
    let found = list(&evidence["cases"]).find(|found| found["name"] == case).unwrap_or(&Value::Null);
    Some(Worst { case, max_abs: &worst["max_abs"], max_rel: &worst["max_rel"], torch_max_abs: &found["torch_max_abs"] })
}

/// Returns the tolerances of the dtypes that were tested, None where none was.
fn tolerances(evidence: &Value) -> Option<Vec<Tolerance>> {
    let tested: BTreeSet<&str> = list(&evidence["cases"]).filter_map(|case| case["dtype"].as_str()).collect();
    let declared = tested.into_iter().map(|dtype| (dtype, &evidence["tolerances"][dtype]));
    let told: Vec<Tolerance> = declared
        .filter(|(_, pair)| pair.is_array())
        .map(|(dtype, pair)| Tolerance { dtype: dtype.to_owned(), atol: pair[0].clone(), rtol: pair[1].clone() })
        .collect();
    (!told.is_empty()).then_some(told)
}

fn output(evidence: &Value) -> Option<Output<'_>> {
    let output = &evidence["output"];
    let (stdout, stderr) = (output["stdout"].as_str().unwrap_or(""), output["stderr"].as_str().unwrap_or(""));
    let truncated = output["truncated"].as_bool().unwrap_or(false);
    (!stdout.trim().is_empty() || !stderr.trim().is_empty()).then_some(Output { stdout, stderr, truncated })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).filter_map(Value::as_str).collect()
}
