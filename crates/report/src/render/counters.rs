//! The device's counters of the kernels of a call, read from what Nsight Compute writes, as rows and as a table.
//!
//! It does not know who started the profiler.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures;
use crate::render::table::{Align, Table};

/// The sections of Nsight Compute that are asked for: it knows which metrics of them a device has.
pub const SECTIONS: [&str; 6] = [
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "ComputeWorkloadAnalysis",
    "Occupancy",
    "SchedulerStats",
    "WarpStateStats",
];

/// Returns the metrics that are asked for beside the sections, of a device of a compute capability: a metric that it lacks would end the count.
#[must_use]
pub fn metrics(capability: [u64; 2]) -> Vec<&'static str> {
    let tensor: &[&str] = if capability[0] == HOPPER { &[PRODUCTS, DOUBLES] } else { &[TENSOR] };
    [&[READ, WRITTEN], tensor].concat()
}

/// The major part of Hopper's capability.
const HOPPER: u64 = 9;

const TIME: &str = "gpu__time_duration.sum";
const READ: &str = "dram__bytes_read.sum";
const WRITTEN: &str = "dram__bytes_write.sum";
const MEMORY: &str = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
const L2: &str = "lts__t_sector_hit_rate.pct";
const ISSUE: &str = "smsp__issue_active.avg.pct_of_peak_sustained_active";
const TENSOR: &str = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
/// The same on Hopper without HFMA2.MMA, by which the compiler loads constants: of an addition the tensor pipe is busy for a cycle in a hundred.
const PRODUCTS: &str = concat!(
    "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
    ".avg.pct_of_peak_sustained_active"
);
/// On Hopper, products of float64, which [`PRODUCTS`] leaves out.
const DOUBLES: &str = "sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_active";
const WARPS: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";

/// What surrounds the reason in the name of a metric that says how many warps wait for it, for each cycle in which an instruction is issued.
const WAITS: (&str, &str) = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio");

/// The state of a warp that issues: it waits for nothing.
const SELECTED: &str = "selected";

/// Why warps wait, as Nsight Compute calls it and in words. A reason that is not listed keeps its name.
const REASONS: [(&str, &str); 16] = [
    ("barrier", "other warps at a barrier"),
    ("branch_resolving", "a branch"),
    ("dispatch_stall", "dispatch"),
    ("drain", "stores at the end"),
    ("gmma", "tensor cores"),
    ("imc_miss", "constants"),
    ("lg_throttle", "the queue of loads and stores"),
    ("long_scoreboard", "loads"),
    ("math_pipe_throttle", "arithmetic units"),
    ("membar", "memory fences"),
    ("mio_throttle", "the queue of shared memory"),
    ("no_instruction", "instructions to be fetched"),
    ("not_selected", "their turn"),
    ("short_scoreboard", "shared memory"),
    ("tex_throttle", "the texture unit"),
    ("wait", "the instruction before"),
];

/// What Nsight Compute counted of a kernel in a call. Percentages are of 100; what is None is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelCounters {
    /// Its name.
    pub kernel: String,
    /// How often a call launches it: the mean.
    pub launches: f64,
    /// How long the device works for it in a call, in ms, while it is counted: caches are flushed before each launch.
    pub ms: f64,
    /// Bytes that its launches of a call read from the device's memory.
    pub read: Option<f64>,
    /// Bytes that they write to it.
    pub written: Option<f64>,
    /// How much of its peak the memory's traffic reaches.
    pub memory: Option<f64>,
    /// How many of the requests to the L2 cache are answered by it.
    pub l2_hits: Option<f64>,
    /// In how many of the cycles with warps a scheduler issues an instruction.
    pub issue: Option<f64>,
    /// In how many of them the tensor cores work.
    pub tensor: Option<f64>,
    /// How many of the warps that a multiprocessor can hold are there.
    pub warps: Option<f64>,
    /// What its warps wait for, in Nsight Compute's words: of 100 the share of all cycles of warps, for each reason that has one.
    pub waits: BTreeMap<String, f64>,
}

/// Returns the kernels of a call, longest first, from the page `raw` of Nsight Compute as CSV in base units, in which `calls` calls were watched.
///
/// # Errors
/// A sentence, where the text is no such table, or a figure in it no number.
pub fn counted(text: &str, calls: u32) -> Result<Vec<KernelCounters>, String> {
    // Lines of the profiler's own come before the table.
    let table = text.find("\"ID\"").map(|start| &text[start..]).ok_or("Nsight Compute told of no kernel")?;
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let names: Vec<String> = reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
    let mut launches: BTreeMap<String, Vec<Launch>> = BTreeMap::new();
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let told: BTreeMap<&str, &str> = names.iter().map(String::as_str).zip(row.iter()).collect();
        // The row of units has no number.
        if told.get("ID").is_none_or(|id| id.is_empty()) {
            continue;
        }
        let name = told.get("Kernel Name").copied().unwrap_or_default();
        launches.entry(name.to_owned()).or_default().push(launch(&told)?);
    }
    let mut found: Vec<KernelCounters> =
        launches.into_iter().map(|(kernel, launches)| of_call(kernel, &launches, f64::from(calls.max(1)))).collect();
    found.sort_by(|one, other| other.ms.total_cmp(&one.ms).then_with(|| one.kernel.cmp(&other.kernel)));
    Ok(found)
}

/// The figures of one launch, by metric.
struct Launch {
    ns: f64,
    figures: BTreeMap<&'static str, f64>,
    waits: BTreeMap<String, f64>,
}

fn launch(told: &BTreeMap<&str, &str>) -> Result<Launch, String> {
    let figure = |name: &str| -> Result<Option<f64>, String> {
        let Some(text) = told.get(name).filter(|text| !text.is_empty() && **text != "n/a") else { return Ok(None) };
        let value = text.replace(',', "").parse().map_err(|_| format!("`{name}` of Nsight Compute is `{text}`"))?;
        Ok(Some(value))
    };
    let mut figures = BTreeMap::new();
    for name in [READ, WRITTEN, MEMORY, L2, ISSUE, TENSOR, PRODUCTS, DOUBLES, WARPS] {
        figures.extend(figure(name)?.map(|value| (name, value)));
    }
    let mut waits = BTreeMap::new();
    for name in told.keys() {
        let reason = name.strip_prefix(WAITS.0).and_then(|rest| rest.strip_suffix(WAITS.1));
        let Some(reason) = reason else { continue };
        waits.extend(figure(name)?.map(|value| (reason.to_owned(), value)));
    }
    let ns = figure(TIME)?.ok_or_else(|| format!("Nsight Compute did not tell `{TIME}`"))?;
    Ok(Launch { ns, figures, waits })
}

/// Returns what the launches of a kernel come to in one of `calls` calls: sums of times and bytes, and means of shares that weigh a launch by its time.
#[expect(clippy::cast_precision_loss, reason = "a call has few launches")]
fn of_call(kernel: String, launches: &[Launch], calls: f64) -> KernelCounters {
    let whole: f64 = launches.iter().map(|one| one.ns).sum();
    let sum = |name: &str| -> Option<f64> {
        let known: Option<Vec<f64>> = launches.iter().map(|one| one.figures.get(name).copied()).collect();
        known.map(|values| values.iter().sum::<f64>() / calls)
    };
    let mean = |of: &dyn Fn(&Launch) -> Option<f64>| -> Option<f64> {
        let known: Option<Vec<f64>> = launches.iter().map(|one| Some(of(one)? * one.ns)).collect();
        known.filter(|_| whole > 0.0).map(|values| values.iter().sum::<f64>() / whole)
    };
    let share = |name: &'static str| mean(&|one| one.figures.get(name).copied());
    let reasons: BTreeMap<&String, f64> = launches
        .iter()
        .flat_map(|one| one.waits.keys())
        .filter_map(|reason| Some((reason, mean(&|one| one.waits.get(reason).copied())?)))
        .collect();
    let all: f64 = reasons.values().sum();
    let waits = reasons.iter().filter(|(reason, value)| **reason != SELECTED && **value > 0.0);
    let tensor = share(PRODUCTS).zip(share(DOUBLES)).map(|(products, doubles)| products + doubles);
    KernelCounters {
        kernel,
        launches: launches.len() as f64 / calls,
        ms: whole / calls / 1e6,
        read: sum(READ),
        written: sum(WRITTEN),
        memory: share(MEMORY),
        l2_hits: share(L2),
        issue: share(ISSUE),
        tensor: tensor.or_else(|| share(TENSOR)),
        warps: share(WARPS),
        waits: waits.map(|(reason, value)| ((*reason).clone(), value / all * 100.0)).collect(),
    }
}

/// Returns the table of the counters, a row a kernel, and for each a line of what its warps wait for most.
#[must_use]
pub fn text(found: &[KernelCounters], version: &str, width: Option<usize>) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("Kernel", Align::Left),
        right("Counted (ms)"),
        right("Read (MB)"),
        right("Written (MB)"),
        right("Memory"),
        right("L2 hits"),
        right("Issue"),
        right("Tensor"),
        right("Warps"),
    ]);
    let percent = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| figures::percent(value / 100.0));
    let mega = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| figures::figure(value / 1e6));
    for one in found {
        table.push(vec![
            one.kernel.clone(),
            figures::milliseconds(one.ms),
            mega(one.read),
            mega(one.written),
            percent(one.memory),
            percent(one.l2_hits),
            percent(one.issue),
            percent(one.tensor),
            percent(one.warps),
        ]);
    }
    let lines: String = found.iter().filter_map(|one| Some(format!("{}\n", waits_of(one)?))).collect();
    format!("counters, by Nsight Compute {version}\n{}\n{lines}", table.text(width))
}

/// Returns what the warps of a kernel wait for most, as a sentence; None where it is not known.
fn waits_of(one: &KernelCounters) -> Option<String> {
    let mut waits: Vec<(&String, f64)> = one.waits.iter().map(|(reason, share)| (reason, *share)).collect();
    waits.sort_by(|one, other| other.1.total_cmp(&one.1));
    let words = |reason: &str| {
        let known = REASONS.iter().find(|(name, _)| *name == reason);
        known.map_or_else(|| reason.to_owned(), |(_, words)| (*words).to_owned())
    };
    let told: Vec<String> = waits
        .iter()
        .take(3)
        .map(|(reason, share)| format!("{} {}", words(reason), figures::percent(share / 100.0)))
        .collect();
    (!told.is_empty()).then(|| format!("warps of {} wait for {}", one.kernel, told.join(", ")))
}

#[cfg(test)]
mod tests;
