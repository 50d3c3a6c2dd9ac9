//! The benchmark of an op: its table, each size with all that was measured there, and what the device did meanwhile.
//!
//! It compares nothing: a speedup is the bench's own, or a baseline's figure against torch's in the same document; a share is against a ceiling.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use t2t_protocol::{
    Analysis, AnalyzedSize, Baseline, BaselineSize, Bench, BenchSize, Binding, Calibration, Figure, MeasuredDevice,
    Protocol, StopReason, Stopped,
};

use crate::figures;
use crate::rank::{
    AgainstFirst, Found, Gain, STEADY, Selection, Status, VariantResult, is_unstable, is_unstable_at, standing,
    why_unstable,
};
use crate::render::ceilings::{self, Ceiling, Rates, Work};
use crate::render::sizes;
use crate::render::telemetry::{self, TelemetryRow};

/// The documents that a benchmark is told from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Documents<'s, 'a> {
    /// The variants, in declared order.
    pub(crate) variants: &'s [&'a VariantResult],
    /// The document `baseline`.
    pub(crate) baseline: Option<&'a Baseline>,
    /// The document `analysis`.
    pub(crate) analysis: Option<&'a Analysis>,
    /// The document `calibration`.
    pub(crate) calibration: &'a Found<Calibration>,
    /// `ieee` or `tf32`, as declared.
    pub(crate) precision: &'a str,
    /// The document `selection`.
    pub(crate) selection: Option<&'a Selection>,
}

/// What a template sees of an op's benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Benchmark<'a> {
    /// Sizes in reading order.
    columns: Vec<Column>,
    /// Torch, other baselines, then the variants in declared order.
    rows: Vec<Row>,
    /// Size by size, what was measured there.
    pub(crate) sizes: Vec<SizeTable<'a>>,
    against: Option<Against<'a>>,
    telemetry: Vec<TelemetryRow>,
    pub(crate) ceilings: Option<Rates>,
    no_ceilings: Option<String>,
    device: Option<&'a MeasuredDevice>,
    protocol: Option<&'a Protocol>,
    /// Whether the number of runs was not fixed.
    ends_early: bool,
    /// What was timed, in words, where that is not the forward pass alone.
    passes: Option<&'static str>,
    unstable: bool,
    baseline_unstable: Option<String>,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    title: String,
}

#[derive(Debug, Serialize)]
struct Row {
    kernel: String,
    kind: &'static str,
    times: Vec<Option<f64>>,
    /// How long Triton's interpreter took for one call, a size each; null on a device.
    interpreter_ms: Vec<Option<f64>>,
    final_ms: Option<f64>,
    speedup: Option<f64>,
    geomean_speedup: Option<f64>,
    host_us: Option<f64>,
    mark: &'static str,
    unstable: bool,
    why_unstable: Option<String>,
    remeasured: bool,
    /// Why measuring ended, a size each, where the number of runs was not fixed; of torch that of the baselines.
    stopped: Vec<Ended>,
    not_measured: Option<String>,
}

/// The end of a size.
#[derive(Debug, Serialize)]
struct Ended {
    title: String,
    runs: u64,
    most: u64,
    why: StopReason,
}

impl Ended {
    fn of((name, stopped): (&String, Option<&Stopped>)) -> Option<Self> {
        let Stopped { runs, most, why } = *stopped?;
        Some(Self { title: sizes::title(name), runs, most, why })
    }
}

/// One size: what it comes to, and the figures of all that was measured there.
#[derive(Debug, Serialize)]
pub(crate) struct SizeTable<'a> {
    name: String,
    title: String,
    binding: Option<&'a Binding>,
    dtype: Option<&'a str>,
    pub(crate) bytes: Option<f64>,
    flops: Option<f64>,
    /// FLOP for each byte.
    pub(crate) intensity: Option<f64>,
    /// The name of the matrix product that computes in its dtype.
    pub(crate) product: &'a str,
    ceiling: Option<Ceiling>,
    copy_ms: Option<f64>,
    pub(crate) rows: Vec<Detail<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Detail<'a> {
    pub(crate) kernel: String,
    kind: &'static str,
    pub(crate) config: Option<&'a BTreeMap<String, Value>>,
    mean: f64,
    median: f64,
    p20: f64,
    p80: f64,
    cv: f64,
    pub(crate) unstable: bool,
    speedup: Option<f64>,
    gb_per_s: Option<f64>,
    pub(crate) tflop_per_s: Option<f64>,
    of_ceiling: Option<f64>,
    of_copy: Option<f64>,
}

/// Each variant against the first declared one: ratios with their intervals, as the selection tells them.
#[derive(Debug, Serialize)]
struct Against<'a> {
    base: &'a str,
    rows: Vec<AgainstRow<'a>>,
}

#[derive(Debug, Serialize)]
struct AgainstRow<'a> {
    kernel: &'a str,
    /// One a column.
    gains: Vec<Option<&'a Gain>>,
    whole: &'a Gain,
}

impl<'a> Against<'a> {
    fn of(against: &'a AgainstFirst, names: &[String]) -> Self {
        let rows = against.variants.iter().map(|variant| AgainstRow {
            kernel: &variant.name,
            gains: names.iter().map(|name| variant.sizes.get(name)).collect(),
            whole: &variant.whole,
        });
        Self { base: &against.base, rows: rows.collect() }
    }
}

impl Benchmark<'_> {
    /// Returns whether at least one variant was measured.
    #[must_use]
    pub(crate) fn has_variant(&self) -> bool {
        self.rows.iter().any(|row| row.kind == "variant" && row.not_measured.is_none())
    }
}

/// Returns the benchmark of an op. Rates are told where the analysis counted the very size that was measured on a device, in the dtype that was.
#[must_use]
pub(crate) fn of<'a>(found: Documents<'_, 'a>) -> Benchmark<'a> {
    let Documents { variants, baseline, calibration, .. } = found;
    let of_baseline = found.baseline_sizes().map(|(name, size)| (name, &size.binding));
    let of_benches = found.benches().flat_map(|bench| &bench.sizes).map(|(name, size)| (name, &size.binding));
    let names = sizes::ordered(of_baseline.chain(of_benches));
    let mut rows: Vec<Row> = baseline.map(|baseline| baseline_rows(baseline, &names)).unwrap_or_default();
    rows.extend(variants.iter().map(|variant| variant_row(variant, &names)));
    let measured = baseline.map(|baseline| (&baseline.device, &baseline.protocol));
    let mut measured = measured.into_iter().chain(found.benches().map(|bench| (&bench.device, &bench.protocol)));
    let (device, protocol) = measured.find(|(device, _)| !device.model.is_empty()).unzip();
    let against = found.selection.and_then(|selection| selection.against.as_ref());
    Benchmark {
        unstable: rows.iter().any(|row| row.unstable),
        baseline_unstable: baseline.and_then(|baseline| baseline.why_unstable.clone()),
        rows,
        sizes: names.iter().map(|name| found.size(name)).filter(|size| !size.rows.is_empty()).collect(),
        against: against.map(|against| Against::of(against, &names)),
        telemetry: telemetry::rows(variants, baseline, calibration.document()),
        ceilings: calibration.document().and_then(ceilings::rates),
        no_ceilings: calibration.reason(),
        device,
        ends_early: protocol.is_some_and(|protocol| protocol.stop.is_some()),
        passes: protocol.and_then(|protocol| protocol.passes).map(figures::passes),
        protocol,
        columns: names.into_iter().map(|name| Column { title: sizes::title(&name), name }).collect(),
    }
}

fn baseline_rows(baseline: &Baseline, names: &[String]) -> Vec<Row> {
    let torch = baseline.finals.get("torch").copied().flatten();
    let mut kernels: Vec<(&String, Option<f64>)> = baseline.finals.iter().map(|(name, ms)| (name, *ms)).collect();
    kernels.sort_by_key(|(kernel, _)| (*kernel != "torch", *kernel));
    let time = |name: &String, kernel: &str| Some(baseline.sizes.get(name)?.figure(kernel)?.mean);
    let stopped = || {
        let ends = names.iter().map(|name| (name, baseline.sizes.get(name).and_then(|size| size.stopped.as_ref())));
        ends.filter_map(Ended::of).collect()
    };
    let rows = kernels.into_iter().map(|(kernel, final_ms)| Row {
        kernel: kernel.clone(),
        kind: kind(kernel),
        times: names.iter().map(|name| time(name, kernel)).collect(),
        interpreter_ms: Vec::new(),
        final_ms,
        speedup: torch.zip(final_ms).map(|(torch, own)| torch / own),
        geomean_speedup: None,
        host_us: None,
        mark: "",
        unstable: false,
        why_unstable: None,
        remeasured: false,
        stopped: if kernel == "torch" { stopped() } else { Vec::new() },
        not_measured: baseline.reasons.get(kernel).cloned(),
    });
    rows.collect()
}

/// Returns what a baseline is called.
fn kind(baseline: &str) -> &'static str {
    if baseline == "torch" { "torch" } else { "baseline" }
}

fn variant_row(variant: &VariantResult, names: &[String]) -> Row {
    let bench = variant.bench.document();
    let sizes: Vec<Option<&BenchSize>> = names.iter().map(|name| bench?.sizes.get(name)).collect();
    let interpreter_ms: Vec<Option<f64>> = sizes.iter().map(|size| size.and_then(|size| size.interpreter_ms)).collect();
    let final_ms = bench.and_then(|bench| bench.final_ms);
    let is_measured = final_ms.is_some() || interpreter_ms.iter().any(Option::is_some);
    Row {
        kernel: variant.name.clone(),
        kind: "variant",
        times: sizes.iter().map(|size| Some(size.as_ref()?.variant.as_ref()?.mean)).collect(),
        interpreter_ms,
        final_ms,
        speedup: bench.and_then(|bench| bench.speedup),
        geomean_speedup: bench.and_then(|bench| bench.geomean_speedup),
        host_us: bench.and_then(|bench| bench.host_us.flatten()),
        mark: standing(variant).status.mark(),
        unstable: bench.is_some_and(is_unstable),
        why_unstable: bench.and_then(why_unstable),
        remeasured: bench.is_some_and(|bench| bench.remeasured == Some(true)),
        stopped: names
            .iter()
            .zip(&sizes)
            .filter_map(|(name, size)| Ended::of((name, size.and_then(|size| size.stopped.as_ref()))))
            .collect(),
        not_measured: (!is_measured).then(|| why_not_measured(variant)),
    }
}

fn why_not_measured(variant: &VariantResult) -> String {
    let told = standing(variant);
    match (told.status, &variant.bench) {
        (Status::Passed, Found::Skipped { reason }) => reason.clone(),
        (Status::Passed, Found::Lost) => "the machine failed".to_owned(),
        (Status::Passed, _) => "its bench made no figures".to_owned(),
        (status, _) => told.reason.or(told.class).unwrap_or_else(|| status.name().to_owned()),
    }
}

impl<'a> Documents<'_, 'a> {
    fn benches(self) -> impl Iterator<Item = &'a Bench> {
        self.variants.iter().copied().filter_map(|variant| variant.bench.document())
    }

    fn baseline_sizes(self) -> impl Iterator<Item = (&'a String, &'a BaselineSize)> {
        self.baseline.into_iter().flat_map(|baseline| &baseline.sizes)
    }

    /// Returns the lengths and the dtype of the first measurement of a size.
    fn first(self, name: &str) -> Option<(&'a Binding, &'a str)> {
        let baseline = self.baseline.and_then(|baseline| baseline.sizes.get(name));
        let baseline = baseline.map(|size| (&size.binding, size.dtype.as_str()));
        let of_bench = |bench: &'a Bench| bench.sizes.get(name).map(|size| (&size.binding, size.dtype.as_str()));
        baseline.or_else(|| self.benches().find_map(of_bench))
    }

    fn size(self, name: &str) -> SizeTable<'a> {
        let first = self.first(name);
        let (binding, dtype) = first.unzip();
        let work = first.and_then(|(binding, dtype)| self.work(name, binding, dtype));
        let calibration = self.calibration.document();
        let product = self.product(dtype.unwrap_or_default());
        let size = SizeTable {
            name: name.to_owned(),
            title: sizes::title(name),
            binding,
            dtype,
            bytes: work.map(|work| work.bytes),
            flops: work.and_then(|work| work.flops),
            intensity: work.filter(|work| work.bytes > 0.0).and_then(|work| Some(work.flops? / work.bytes)),
            product,
            ceiling: calibration.zip(work).and_then(|(calibration, work)| ceilings::limit(calibration, work, product)),
            copy_ms: calibration.zip(work).and_then(|(calibration, work)| ceilings::copy_ms(calibration, work.bytes)),
            rows: Vec::new(),
        };
        let baselines = self.baseline.into_iter().flat_map(|baseline| baseline_details(&size, baseline));
        let variants = self.variants.iter().copied().filter_map(|variant| variant_detail(&size, variant));
        SizeTable { rows: baselines.chain(variants).collect(), ..size }
    }

    /// Returns what the op moves and computes at a size, if the analysis counted what a device ran: it counts a forward pass.
    fn work(self, name: &str, binding: &Binding, dtype: &str) -> Option<Work> {
        let mut protocols = self.baseline.map(|baseline| &baseline.protocol).into_iter();
        let is_forward = |protocol: &Protocol| protocol.passes.is_none();
        if !protocols.all(is_forward) || !self.benches().all(|bench| is_forward(&bench.protocol)) {
            return None;
        }
        let analysis = self.analysis?;
        let AnalyzedSize { dims, bytes, flops, .. } = analysis.sizes.get(name)?;
        let mut clocks = self.baseline.map(|baseline| &baseline.clock).into_iter();
        let on_device = clocks.all(|clock| clock != "host") && self.benches().all(|bench| bench.clock != "host");
        let bytes = bytes.as_ref()?.as_f64().filter(|_| on_device && dims == binding && analysis.dtype == dtype)?;
        Some(Work { bytes, flops: flops.as_ref().and_then(serde_json::Number::as_f64) })
    }

    /// Returns the name of the matrix product that computes in `dtype` as declared.
    fn product(self, dtype: &'a str) -> &'a str {
        if dtype == "float32" && self.precision == "tf32" { "tf32" } else { dtype }
    }
}

fn baseline_details<'a>(size: &SizeTable<'_>, baseline: &'a Baseline) -> Vec<Detail<'a>> {
    let Some(at) = baseline.sizes.get(&size.name) else { return Vec::new() };
    let torch = at.figure("torch").map(|figure| figure.mean);
    let details = at.figures().map(|(kernel, figure)| Detail {
        kind: kind(kernel),
        unstable: baseline.unstable && figure.cv > STEADY,
        speedup: torch.map(|torch| torch / figure.mean),
        ..Detail::of(size, kernel, figure)
    });
    details.collect()
}

fn variant_detail<'a>(size: &SizeTable<'_>, variant: &'a VariantResult) -> Option<Detail<'a>> {
    let bench = variant.bench.document()?;
    let at = bench.sizes.get(&size.name)?;
    let figure = at.variant.as_ref()?;
    Some(Detail {
        config: at.config.as_ref(),
        unstable: is_unstable_at(bench, &size.name),
        speedup: at.torch.as_ref().map(|torch| torch.mean / figure.mean),
        ..Detail::of(size, &variant.name, figure)
    })
}

impl Detail<'_> {
    /// Returns the figures of `kernel` at a size. Rates and shares are those of the median.
    fn of(size: &SizeTable<'_>, kernel: &str, figure: &Figure) -> Self {
        let Figure { mean, median, p20, p80, cv, .. } = *figure;
        let rate = |amount: Option<f64>, unit: f64| amount.map(|amount| amount / median / unit);
        Self {
            kernel: kernel.to_owned(),
            kind: "variant",
            config: None,
            mean,
            median,
            p20,
            p80,
            cv,
            unstable: false,
            speedup: None,
            gb_per_s: rate(size.bytes, 1e6),
            tflop_per_s: rate(size.flops, 1e9),
            of_ceiling: size.ceiling.as_ref().map(|ceiling| ceiling.share(median)),
            of_copy: rate(size.copy_ms, 1.0),
        }
    }
}
