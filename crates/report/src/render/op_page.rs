//! The page of an op: the documents of its actions, and what a log template sees of them.
//!
//! It judges nothing: status is ranking's word, and every figure is one document's.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use t2t_model::action::Phase;
use t2t_protocol::{
    Analysis, Baseline, Calibration, CaseVerdict, Choice, Coverage, DroppedConfig, Evidence, Failure, Launches,
    PrintedOutput, Resources, Tune, Verdict,
};

use crate::rank::{Found, Lane, Published, Selection, Standing, VariantResult, attempts, standing};
use crate::render::attempts::{Attempt, Row, rows};
use crate::render::benchmark::{self, Benchmark};
use crate::render::defects::{self, Defect};
use crate::render::missed::missed;
use crate::render::problem::Problem;
use crate::render::resources::{self, KernelRow};
use crate::render::rounds::{self, Round};
use crate::render::sizes::{self, SizeRow};

/// All that the log of an op is made from.
#[derive(Clone, Debug)]
pub struct OpPage<'a> {
    /// The op's name.
    pub op: &'a str,
    /// Its declared keyword arguments.
    pub kwargs: &'a BTreeMap<String, Value>,
    /// `ieee` or `tf32`: how exact its float32 products are declared to be.
    pub precision: &'a str,
    /// The document `calibration`.
    pub calibration: &'a Found<Calibration>,
    /// The document `analysis`.
    pub analysis: &'a Found<Analysis>,
    /// Why there is no analysis: its `failure`.
    pub analysis_failure: Option<&'a Failure>,
    /// The document `baseline`.
    pub baseline: &'a Found<Baseline>,
    /// Where the kernels were called.
    pub lane: Lane,
    /// The document `selection`.
    pub selection: &'a Found<Selection>,
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
    pub evidence: Option<&'a Evidence>,
    /// The document `launches` of its compile.
    pub launches: Option<&'a Launches>,
    /// The document `resources` of its compile.
    pub resources: &'a Found<Resources>,
    /// The document `tune`.
    pub tune: Option<&'a Tune>,
    /// The documents `failure` of phases other than check.
    pub failures: BTreeMap<Phase, &'a Failure>,
    /// The attempts at its file, where a generator writes that: the documents `attempt`.
    pub attempts: &'a [Attempt],
    /// Why no further attempt was made, where the generator had none.
    pub no_attempt: Option<&'a str>,
    /// The rounds of `t2t improve`.
    pub rounds: &'a [Round],
}

impl<'a> OpPage<'a> {
    /// Returns what a template sees. docs/reference/log-templates.md describes it.
    #[must_use]
    pub(crate) fn context(&self) -> LogContext<'a> {
        let results: Vec<&'a VariantResult> = self.variants.iter().map(|variant| variant.result).collect();
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
            operation: analysis.map(|analysis| analysis.operation.as_str()),
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
            published: selection.and_then(|selection| selection.published.as_ref()),
        }
    }
}

/// What a log template sees.
#[derive(Debug, Serialize)]
pub(crate) struct LogContext<'a> {
    op: &'a str,
    operation: Option<&'a str>,
    kwargs: &'a BTreeMap<String, Value>,
    interpreter: bool,
    analysis: Option<&'a Analysis>,
    sizes: Vec<SizeRow>,
    growth: Vec<Growth>,
    analysis_problem: Option<Problem>,
    variants: Vec<VariantSection<'a>>,
    tolerances: Vec<Tolerance>,
    pub(crate) benchmark: Benchmark<'a>,
    defects: Vec<Defect>,
    selection: Option<&'a Selection>,
    /// What is published of the kernels by a device, where the interpreter ran them.
    published: Option<&'a Published>,
    checklist: Checklist,
}

/// How work and memory grow in a dim: exponents.
#[derive(Debug, Serialize)]
struct Growth {
    dim: String,
    work: Option<f64>,
    memory: Option<f64>,
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
    history: Vec<Row<'a>>,
    no_attempt: Option<&'a str>,
    rounds: Vec<rounds::Row<'a>>,
    kernels: Vec<KernelRow>,
    targets: BTreeSet<String>,
    /// What compiled it, where that is not Triton.
    compiler: Option<&'a str>,
    not_compiled: Option<String>,
    coverage: Option<Coverage>,
    coverage_reasons: &'a [String],
    dropped: &'a [DroppedConfig],
    choices: &'a [Choice],
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
    torch_max_abs: Option<&'a Value>,
}

/// The tolerances of a dtype.
#[derive(Debug, Serialize)]
struct Tolerance {
    dtype: String,
    atol: f64,
    rtol: f64,
}

/// What a rejected kernel printed.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Output<'a>(&'a PrintedOutput);

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
        let bench = self.result.bench.document();
        let caches = [
            self.evidence.and_then(|evidence| evidence.triton_cache.as_ref()),
            self.tune.and_then(|tune| tune.triton_cache.as_ref()),
            bench.and_then(|bench| bench.triton_cache.as_ref()),
        ];
        defects::of(&self.result.name, caches)
    }

    fn section(&self) -> VariantSection<'a> {
        let Standing { status, class, reason } = standing(self.result);
        let resources = self.resources.document();
        VariantSection {
            name: &self.result.name,
            file: self.file,
            docstring: self.docstring,
            status: status.name(),
            mark: status.mark(),
            class,
            reason,
            attempts: attempts(&self.result.verdict).max(self.attempts.len()),
            history: rows(self.attempts),
            no_attempt: self.no_attempt,
            rounds: rounds::rows(self.rounds),
            kernels: resources.map(resources::rows).unwrap_or_default(),
            targets: resources.map(resources::targets).unwrap_or_default(),
            compiler: resources.and_then(|resources| resources.compiler.as_deref()),
            not_compiled: self.resources.reason(),
            coverage: self.launches.map(|launches| launches.coverage),
            coverage_reasons: self.launches.map(|launches| launches.reasons.as_slice()).unwrap_or_default(),
            dropped: self.launches.map(|launches| launches.dropped.as_slice()).unwrap_or_default(),
            choices: self.tune.map(|tune| tune.choices.as_slice()).unwrap_or_default(),
            cases: Cases::of(&self.result.verdict),
            worst: self.evidence.and_then(worst),
            repeat: self.evidence.and_then(|evidence| evidence.repeat.as_deref()),
            notes: self.notes(),
            problems: self.problems(),
            output: self.output(),
        }
    }

    /// What else is to be said of its check: how the candidate ended, and what no case reached.
    fn notes(&self) -> Vec<String> {
        let told = self.evidence.into_iter().flat_map(|evidence| evidence.notes.clone());
        let verdict = self.result.verdict.document();
        told.chain(verdict.and_then(|verdict| verdict.missed.as_ref()).into_iter().flatten().map(missed)).collect()
    }

    /// Returns what a rejected kernel printed.
    fn output(&self) -> Option<Output<'a>> {
        let check = self.evidence.filter(|evidence| evidence.failure.is_some()).map(|evidence| &evidence.output);
        let others = self.failures.values().filter_map(|failure| failure.output.as_ref());
        check.into_iter().chain(others).find(|output| has_text(output)).map(Output)
    }

    /// Returns why phases rejected it, in the order of phases.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let check = self.evidence.and_then(|evidence| evidence.failure.as_ref());
        let check = check.map(|failure| (Phase::Check, failure));
        let mut all: Vec<(Phase, &Failure)> =
            self.failures.iter().map(|(phase, failure)| (*phase, *failure)).chain(check).collect();
        all.sort_by_key(|(phase, _)| *phase);
        // A file that cannot be used is every phase's problem, told once.
        all.dedup_by(|(_, later), (_, earlier)| later == earlier);
        all.into_iter().map(|(phase, failure)| Problem::of(phase.name(), failure)).collect()
    }
}

impl Cases {
    fn of(verdict: &Found<Verdict>) -> Self {
        let mut told = Self::default();
        for verdict in verdict.document().into_iter().flat_map(|verdict| verdict.cases.values()) {
            told.total += 1;
            match verdict {
                CaseVerdict::Passed => told.passed += 1,
                CaseVerdict::Rejected => told.rejected += 1,
                CaseVerdict::Dropped => told.dropped += 1,
                CaseVerdict::NotJudged => told.not_judged += 1,
            }
        }
        told
    }
}

impl Checklist {
    fn of(
        variants: &[VariantSection<'_>],
        analysis: Option<&Analysis>,
        benchmark: &Benchmark<'_>,
        selection: Option<&Selection>,
    ) -> Self {
        let every = |is: fn(&VariantSection<'_>) -> bool| !variants.is_empty() && variants.iter().all(is);
        Self {
            analyzed: analysis.is_some(),
            compiled: every(|variant| variant.not_compiled.is_none() && variant.coverage != Some(Coverage::Partial)),
            compiled_in_part: variants
                .iter()
                .filter(|variant| variant.coverage == Some(Coverage::Partial))
                .map(|variant| variant.name.to_owned())
                .collect(),
            judged: every(|variant| matches!(variant.status, "passed" | "rejected" | "not-judged")),
            correct: every(|variant| variant.status == "passed"),
            measured: benchmark.has_variant(),
            selected: selection.is_some_and(|selection| selection.chosen.is_some()),
        }
    }
}

fn growth(analysis: &Analysis) -> Vec<Growth> {
    let t2t_protocol::Growth { work, memory } = &analysis.growth;
    let exponents = |(dim, work): (&String, &Option<f64>)| Growth {
        dim: dim.clone(),
        work: *work,
        memory: memory.get(dim).copied().flatten(),
    };
    work.iter().map(exponents).collect()
}

fn worst(evidence: &Evidence) -> Option<Worst<'_>> {
    let worst = evidence.worst.as_ref()?;
    let found = evidence.cases.iter().find(|found| found.name == worst.case);
    Some(Worst {
        case: &worst.case,
        max_abs: &worst.max_abs,
        max_rel: &worst.max_rel,
        torch_max_abs: found.map(|found| &found.torch_max_abs),
    })
}

/// Returns the tolerances of the dtypes that were tested, None where none was.
fn tolerances(evidence: &Evidence) -> Option<Vec<Tolerance>> {
    let tested: BTreeSet<&String> = evidence.cases.iter().map(|case| &case.dtype).collect();
    let declared = tested.into_iter().filter_map(|dtype| Some((dtype, evidence.tolerances.get(dtype)?)));
    let told: Vec<Tolerance> =
        declared.map(|(dtype, [atol, rtol])| Tolerance { dtype: dtype.clone(), atol: *atol, rtol: *rtol }).collect();
    (!told.is_empty()).then_some(told)
}

fn has_text(output: &PrintedOutput) -> bool {
    !output.stdout.trim().is_empty() || !output.stderr.trim().is_empty()
}
