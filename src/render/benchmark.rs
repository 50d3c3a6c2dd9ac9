//! The benchmark of an op: its table, and the details of each figure.
//!
//! It compares nothing: a speedup is the bench's own, or a baseline's figure against torch's in the same document.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::rank::{Found, Status, VariantResult, standing};
use crate::render::sizes;

/// What a template sees of an op's benchmark.
#[derive(Debug, Serialize)]
pub struct Benchmark {
    /// Sizes in reading order.
    columns: Vec<Column>,
    /// Torch, other baselines, then the variants in declared order.
    rows: Vec<Row>,
    /// Variant by variant and size by size.
    details: Vec<Detail>,
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

#[derive(Debug, Serialize)]
struct Detail {
    kernel: String,
    size: String,
    binding: Value,
    dtype: Value,
    config: Value,
    mean: Value,
    median: Value,
    p20: Value,
    p80: Value,
    cv: Value,
    speedup: Option<f64>,
    gb_per_s: Option<f64>,
    tflop_per_s: Option<f64>,
}

impl Benchmark {
    /// Returns whether at least one variant was measured.
    #[must_use]
    pub fn has_variant(&self) -> bool {
        self.rows.iter().any(|row| row.kind == "variant" && !row.final_ms.is_null())
    }
}

/// Returns the benchmark of an op. Rates are told where the analysis counted the very size that was measured on a device.
#[must_use]
pub fn of(variants: &[VariantResult], baseline: Option<&Value>, analysis: Option<&Value>) -> Benchmark {
    let benches: Vec<&Value> = variants.iter().filter_map(|variant| variant.bench.document()).collect();
    let documents = || baseline.into_iter().chain(benches.iter().copied());
    let names = sizes::ordered(documents().map(|document| (&document["sizes"], "binding")));
    let mut rows: Vec<Row> = baseline.map(|baseline| baseline_rows(baseline, &names)).unwrap_or_default();
    rows.extend(variants.iter().map(|variant| variant_row(variant, &names)));
    let first = |field: &str| documents().map(|document| &document[field]).find(|value| !value.is_null()).cloned();
    Benchmark {
        unstable: rows.iter().any(|row| row.unstable),
        baseline_unstable: baseline.and_then(|baseline| baseline["why_unstable"].as_str()).map(str::to_owned),
        rows,
        details: variants.iter().flat_map(|variant| details(variant, &names, analysis)).collect(),
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
    Row {
        kernel: variant.name.clone(),
        kind: "variant",
        times: names.iter().map(|name| bench["sizes"][name]["variant"]["mean"].clone()).collect(),
        final_ms: bench["final_ms"].clone(),
        speedup: bench["speedup"].as_f64(),
        geomean_speedup: bench["geomean_speedup"].clone(),
        host_us: bench["host_us"].clone(),
        mark: standing(variant).status.mark(),
        unstable: bench["unstable"] == true,
        why_unstable: bench["why_unstable"].clone(),
        remeasured: bench["remeasured"] == true,
        not_measured: bench["final_ms"].is_null().then(|| why_not_measured(variant)),
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

fn details(variant: &VariantResult, names: &[String], analysis: Option<&Value>) -> Vec<Detail> {
    let bench = variant.bench.document().unwrap_or(&Value::Null);
    let measured = names.iter().filter(|name| bench["sizes"][*name].is_object());
    measured.map(|name| detail(variant, bench, name, analysis)).collect()
}

fn detail(variant: &VariantResult, bench: &Value, name: &str, analysis: Option<&Value>) -> Detail {
    let size = &bench["sizes"][name];
    let figure = |field: &str| size["variant"][field].clone();
    let own = size["variant"]["mean"].as_f64();
    let counted = analysis.map(|analysis| &analysis["sizes"][name]);
    let counted = counted.filter(|counted| bench["clock"] != "host" && counted["dims"] == size["binding"]);
    let rate =
        |field: &str| counted.and_then(|counted| counted[field].as_f64()).zip(own).map(|(amount, ms)| amount / ms);
    Detail {
        kernel: variant.name.clone(),
        size: name.to_owned(),
        binding: size["binding"].clone(),
        dtype: size["dtype"].clone(),
        config: size["config"].clone(),
        mean: figure("mean"),
        median: figure("median"),
        p20: figure("p20"),
        p80: figure("p80"),
        cv: figure("cv"),
        speedup: size["torch"]["mean"].as_f64().zip(own).map(|(torch, own)| torch / own),
        gb_per_s: rate("bytes").map(|per_ms| per_ms / 1e6),
        tflop_per_s: rate("flops").map(|per_ms| per_ms / 1e9),
    }
}
