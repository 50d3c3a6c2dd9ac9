//! The benchmark of an op: its table, each size with all that was measured there, and what the device did meanwhile.
//!
//! It compares nothing: a speedup is the bench's own, or a baseline's figure against torch's in the same document; a share is against a ceiling.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::rank::{Found, STEADY, Status, VariantResult, is_unstable, is_unstable_at, standing, why_unstable};
use crate::render::ceilings::{self, Ceiling, Rates, Work};
use crate::render::sizes;
use crate::render::telemetry::{self, TelemetryRow};

/// The documents that a benchmark is told from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Documents<'a> {
    /// The variants, in declared order.
    pub(crate) variants: &'a [VariantResult],
    /// The document `baseline`.
    pub(crate) baseline: Option<&'a Value>,
    /// The document `analysis`.
    pub(crate) analysis: Option<&'a Value>,
    /// The document `calibration`.
    pub(crate) calibration: &'a Found,
    /// `ieee` or `tf32`, as declared.
    pub(crate) precision: &'a str,
    /// The document `selection`.
    pub(crate) selection: Option<&'a Value>,
}

/// What a template sees of an op's benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Benchmark {
    /// Sizes in reading order.
    columns: Vec<Column>,
    /// Torch, other baselines, then the variants in declared order.
    rows: Vec<Row>,
    /// Size by size, what was measured there.
    sizes: Vec<SizeTable>,
    against: Option<Against>,
    telemetry: Vec<TelemetryRow>,
    ceilings: Option<Rates>,
    no_ceilings: Option<String>,
    device: Value,
    protocol: Value,
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
    times: Vec<Value>,
    /// How long Triton's interpreter took for one call, a size each; null on a device.
    interpreter_ms: Vec<Value>,
    final_ms: Value,
    speedup: Option<f64>,
    geomean_speedup: Value,
    host_us: Value,
    mark: &'static str,
    unstable: bool,
    why_unstable: Value,
    remeasured: bool,
    not_measured: Option<String>,
}

/// One size: what it comes to, and the figures of all that was measured there.
#[derive(Debug, Serialize)]
struct SizeTable {
    name: String,
    title: String,
    binding: Value,
    dtype: Value,
    bytes: Option<f64>,
    flops: Option<f64>,
    ceiling: Option<Ceiling>,
    copy_ms: Option<f64>,
    rows: Vec<Detail>,
}

#[derive(Debug, Serialize)]
struct Detail {
    kernel: String,
    kind: &'static str,
    config: Value,
    mean: Value,
    median: Value,
    p20: Value,
    p80: Value,
    cv: Value,
    unstable: bool,
    speedup: Option<f64>,
    gb_per_s: Option<f64>,
    tflop_per_s: Option<f64>,
    of_ceiling: Option<f64>,
    of_copy: Option<f64>,
}

/// Each variant against the first declared one: ratios with their intervals, as the selection tells them.
#[derive(Debug, Serialize)]
struct Against {
    base: Value,
    rows: Vec<AgainstRow>,
}

#[derive(Debug, Serialize)]
struct AgainstRow {
    kernel: Value,
    /// One a column.
    gains: Vec<Value>,
    whole: Value,
}

impl Against {
    fn of(against: &Value, names: &[String]) -> Option<Self> {
        let row = |variant: &Value| AgainstRow {
            kernel: variant["name"].clone(),
            gains: names.iter().map(|name| variant["sizes"][name].clone()).collect(),
            whole: variant["final"].clone(),
        };
        let rows = against["variants"].as_array()?.iter().map(row).collect();
        Some(Self { base: against["base"].clone(), rows })
    }
}

impl Benchmark {
    /// Returns whether at least one variant was measured.
    #[must_use]
    pub(crate) fn has_variant(&self) -> bool {
        self.rows.iter().any(|row| row.kind == "variant" && row.not_measured.is_none())
    }
}

/// Returns the benchmark of an op. Rates are told where the analysis counted the very size that was measured on a device, in the dtype that was.
#[must_use]
pub(crate) fn of(found: Documents<'_>) -> Benchmark {
    let Documents { variants, baseline, calibration, .. } = found;
    let names = sizes::ordered(found.measurements().map(|document| (&document["sizes"], "binding")));
    let mut rows: Vec<Row> = baseline.map(|baseline| baseline_rows(baseline, &names)).unwrap_or_default();
    rows.extend(variants.iter().map(|variant| variant_row(variant, &names)));
    let first =
        |field: &str| found.measurements().map(|document| &document[field]).find(|value| !value.is_null()).cloned();
    Benchmark {
        unstable: rows.iter().any(|row| row.unstable),
        baseline_unstable: baseline.and_then(|baseline| baseline["why_unstable"].as_str()).map(str::to_owned),
        rows,
        sizes: names.iter().map(|name| found.size(name)).filter(|size| !size.rows.is_empty()).collect(),
        against: found.selection.and_then(|selection| Against::of(&selection["against"], &names)),
        telemetry: telemetry::rows(variants, baseline, calibration.document()),
        ceilings: calibration.document().and_then(ceilings::rates),
        no_ceilings: calibration.reason(),
        device: first("device").unwrap_or_default(),
        protocol: first("protocol").unwrap_or_default(),
        columns: names.into_iter().map(|name| Column { title: sizes::title(&name), name }).collect(),
    }
}

fn baseline_rows(baseline: &Value, names: &[String]) -> Vec<Row> {
    let finals: BTreeMap<&String, &Value> = baseline["finals"].as_object().into_iter().flatten().collect();
    let torch = baseline["finals"]["torch"].as_f64();
    let mut kernels: Vec<&String> = finals.keys().copied().collect();
    kernels.sort_by_key(|kernel| (*kernel != "torch", *kernel));
    let rows = kernels.into_iter().map(|kernel| Row {
        kernel: kernel.clone(),
        kind: if kernel == "torch" { "torch" } else { "baseline" },
        times: names.iter().map(|name| baseline["sizes"][name][kernel]["mean"].clone()).collect(),
        interpreter_ms: Vec::new(),
        final_ms: finals[kernel].clone(),
        speedup: torch.zip(finals[kernel].as_f64()).map(|(torch, own)| torch / own),
        geomean_speedup: Value::Null,
        host_us: Value::Null,
        mark: "",
        unstable: false,
        why_unstable: Value::Null,
        remeasured: false,
        not_measured: baseline["reasons"][kernel].as_str().map(str::to_owned),
    });
    rows.collect()
}

fn variant_row(variant: &VariantResult, names: &[String]) -> Row {
    let bench = variant.bench.document().unwrap_or(&Value::Null);
    let interpreter_ms: Vec<Value> = names.iter().map(|name| bench["sizes"][name]["interpreter_ms"].clone()).collect();
    let is_measured = !bench["final_ms"].is_null() || interpreter_ms.iter().any(Value::is_number);
    Row {
        kernel: variant.name.clone(),
        kind: "variant",
        times: names.iter().map(|name| bench["sizes"][name]["variant"]["mean"].clone()).collect(),
        interpreter_ms,
        final_ms: bench["final_ms"].clone(),
        speedup: bench["speedup"].as_f64(),
        geomean_speedup: bench["geomean_speedup"].clone(),
        host_us: bench["host_us"].clone(),
        mark: standing(variant).status.mark(),
        unstable: is_unstable(bench),
        why_unstable: why_unstable(bench).into(),
        remeasured: bench["remeasured"] == true,
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

impl<'a> Documents<'a> {
    fn measurements(self) -> impl Iterator<Item = &'a Value> {
        self.baseline.into_iter().chain(self.variants.iter().filter_map(|variant| variant.bench.document()))
    }

    fn size(self, name: &str) -> SizeTable {
        let first = self.measurements().map(|document| &document["sizes"][name]).find(|size| size.is_object());
        let first = first.unwrap_or(&Value::Null);
        let work = self.work(name, first);
        let calibration = self.calibration.document().unwrap_or(&Value::Null);
        let size = SizeTable {
            name: name.to_owned(),
            title: sizes::title(name),
            binding: first["binding"].clone(),
            dtype: first["dtype"].clone(),
            bytes: work.map(|work| work.bytes),
            flops: work.and_then(|work| work.flops),
            ceiling: work.and_then(|work| ceilings::limit(calibration, work, self.product(&first["dtype"]))),
            copy_ms: work.and_then(|work| ceilings::copy_ms(calibration, work.bytes)),
            rows: Vec::new(),
        };
        let baselines = self.baseline.into_iter().flat_map(|baseline| baseline_details(&size, baseline));
        let variants = self.variants.iter().filter_map(|variant| variant_detail(&size, variant));
        SizeTable { rows: baselines.chain(variants).collect(), ..size }
    }

    /// Returns what the op moves and computes at a size, if the analysis counted what a device ran.
    fn work(self, name: &str, measured: &Value) -> Option<Work> {
        let analysis = self.analysis?;
        let counted = &analysis["sizes"][name];
        let on_device = self.measurements().all(|document| document["clock"] != "host");
        let same = counted["dims"] == measured["binding"] && analysis["dtype"] == measured["dtype"];
        let bytes = counted["bytes"].as_f64().filter(|_| on_device && same)?;
        Some(Work { bytes, flops: counted["flops"].as_f64() })
    }

    /// Returns the name of the matrix product that computes in `dtype` as declared.
    fn product(self, dtype: &'a Value) -> &'a str {
        match dtype.as_str() {
            Some("float32") if self.precision == "tf32" => "tf32",
            dtype => dtype.unwrap_or_default(),
        }
    }
}

fn baseline_details(size: &SizeTable, baseline: &Value) -> Vec<Detail> {
    let figures = &baseline["sizes"][&size.name];
    let torch = figures["torch"]["mean"].as_f64();
    let measured = figures.as_object().into_iter().flatten().filter(|(_, figure)| figure["median"].is_number());
    let mut kernels: Vec<(&String, &Value)> = measured.collect();
    kernels.sort_by_key(|(kernel, _)| (*kernel != "torch", *kernel));
    let details = kernels.into_iter().map(|(kernel, figure)| Detail {
        kind: if kernel == "torch" { "torch" } else { "baseline" },
        unstable: baseline["unstable"] == true && figure["cv"].as_f64().is_some_and(|cv| cv > STEADY),
        speedup: torch.zip(figure["mean"].as_f64()).map(|(torch, own)| torch / own),
        ..Detail::of(size, kernel, figure)
    });
    details.collect()
}

fn variant_detail(size: &SizeTable, variant: &VariantResult) -> Option<Detail> {
    let bench = variant.bench.document()?;
    let figures = &bench["sizes"][&size.name];
    let figure = Some(&figures["variant"]).filter(|figure| figure["median"].is_number())?;
    let (torch, own) = (figures["torch"]["mean"].as_f64(), figure["mean"].as_f64());
    Some(Detail {
        config: figures["config"].clone(),
        unstable: is_unstable_at(bench, &size.name),
        speedup: torch.zip(own).map(|(torch, own)| torch / own),
        ..Detail::of(size, &variant.name, figure)
    })
}

impl Detail {
    /// Returns the figures of `kernel` at a size. Rates and shares are those of the median.
    fn of(size: &SizeTable, kernel: &str, figure: &Value) -> Self {
        let value = |field: &str| figure[field].clone();
        let median = figure["median"].as_f64();
        let rate = |amount: Option<f64>, unit: f64| amount.zip(median).map(|(amount, ms)| amount / ms / unit);
        Self {
            kernel: kernel.to_owned(),
            kind: "variant",
            config: Value::Null,
            mean: value("mean"),
            median: value("median"),
            p20: value("p20"),
            p80: value("p80"),
            cv: value("cv"),
            unstable: false,
            speedup: None,
            gb_per_s: rate(size.bytes, 1e6),
            tflop_per_s: rate(size.flops, 1e9),
            of_ceiling: size.ceiling.as_ref().zip(median).map(|(ceiling, ms)| ceiling.share(ms)),
            of_copy: rate(size.copy_ms, 1.0),
        }
    }
}
