//! A profile made readable: what each kernel of a call takes and reaches, and what bounds the call, by the rules of docs/reference/profile.md.
//!
//! It does not know how the device's work was recorded.

use std::collections::BTreeMap;

use serde::Serialize;
use t2t_protocol::{Analysis, Calibration, Profile, ProfileLimits, ProfiledLaunch, Resources};

use crate::figures;
use crate::render::ceilings::{self, Work};
use crate::render::table::{Align, Table};

/// The share of a ceiling from which on it bounds a call.
const BOUND: f64 = 0.6;

/// Bytes of shared memory that each program takes beside its own, from compute capability 8.0 on.
const RESERVED: u64 = 1024;

/// Threads of a warp, and registers that a warp gets at once.
const WARP: u64 = 32;
const REGISTERS_AT_ONCE: u64 = 256;

/// What a profile is held against. What is None is not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// What the op moves and computes.
    pub analysis: Option<&'a Analysis>,
    /// What the device does at most.
    pub calibration: Option<&'a Calibration>,
    /// What the compiled kernels use.
    pub resources: Option<&'a Resources>,
    /// `ieee` or `tf32`: how float32 is multiplied.
    pub precision: &'a str,
}

/// What bounds a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The host takes longer to make a call than the device works for it.
    Host,
    /// The longest kernel has fewer programs than the device has multiprocessors.
    FewPrograms,
    /// The bytes move at most of the rate of a copy.
    Memory,
    /// The operations are made at most of the rate of a product.
    Compute,
    /// Neither: programs wait.
    Latency,
    /// Bytes or ceilings are not known.
    Unknown,
}

/// A kernel of a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelRow {
    /// Its name.
    pub kernel: String,
    /// How often a call launches it: the mean.
    pub launches: f64,
    /// How long the device works for it in a call, in ms: the median over the calls.
    pub ms: f64,
    /// Its share of the work of all kernels.
    pub share: f64,
    /// Programs of its longest launch.
    pub programs: Option<u64>,
    /// Warps of a program.
    pub warps: Option<u64>,
    /// Registers of a thread.
    pub registers: Option<u64>,
    /// Bytes that a thread spills: of its compilations the least and the most.
    pub spills: Option<(u64, u64)>,
    /// Bytes of shared memory of a program.
    pub shared: Option<u64>,
    /// The share of the warps of a multiprocessor that its resources let run at once.
    pub occupancy: Option<f64>,
}

/// What a profile comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profiled {
    /// How many calls were recorded.
    pub calls: usize,
    /// Its kernels, longest first.
    pub kernels: Vec<KernelRow>,
    /// How long the device works for a call, in ms: the median over the calls.
    pub device_ms: f64,
    /// The host's time of a call, in ms.
    pub host_ms: f64,
    /// Bytes that the op reads and writes at least.
    pub bytes: Option<f64>,
    /// Its floating-point operations.
    pub flops: Option<f64>,
    /// What the bytes come to.
    pub gb_per_s: Option<f64>,
    /// What the operations come to.
    pub tflop_per_s: Option<f64>,
    /// The share of the rate of the largest copy.
    pub of_copy: Option<f64>,
    /// The share of the rate of a product in its dtype.
    pub of_product: Option<f64>,
    /// What bounds it.
    pub bound: Bound,
    /// The same as a sentence.
    pub sentence: String,
}

/// Returns what a profile comes to; None where nothing was recorded.
#[must_use]
pub fn profiled(profile: &Profile, beside: &Beside<'_>) -> Option<Profiled> {
    let sums = profile.calls.iter().map(|call| call.iter().map(|one| one.us).sum::<f64>() / 1e3).collect();
    let device_ms = median(sums).filter(|ms| *ms > 0.0)?;
    let kernels = kernels(profile, beside.resources, device_ms);
    let size = beside
        .analysis
        .filter(|analysis| analysis.dtype == profile.dtype)
        .and_then(|analysis| analysis.sizes.values().find(|size| size.dims == profile.binding));
    let bytes = size.and_then(|size| size.bytes.as_ref()?.as_f64());
    let flops = size.and_then(|size| size.flops.as_ref()?.as_f64());
    let gb_per_s = bytes.map(|bytes| bytes / device_ms / 1e6);
    let tflop_per_s = flops.map(|flops| flops / device_ms / 1e9);
    let rate = beside.calibration.and_then(ceilings::rates);
    let name = if profile.dtype == "float32" && beside.precision == "tf32" { "tf32" } else { &profile.dtype };
    let product = rate.as_ref().and_then(|rate| rate.products.iter().find(|one| one.name == name)?.tflop_per_s);
    let mut found = Profiled {
        calls: profile.calls.len(),
        kernels,
        device_ms,
        host_ms: profile.host_us / 1e3,
        bytes,
        flops,
        gb_per_s,
        tflop_per_s,
        of_copy: gb_per_s.zip(rate.as_ref()).map(|(own, rate)| own / rate.copy_gb_per_s),
        of_product: tflop_per_s.zip(product).map(|(own, rate)| own / rate),
        bound: Bound::Unknown,
        sentence: String::new(),
    };
    // The roofline's side: below the ridge the operations of an op bound nothing, however few they are.
    let by_product = match (beside.calibration, bytes) {
        (Some(calibration), Some(bytes)) => {
            let limit = ceilings::limit(calibration, Work { bytes, flops }, name);
            limit.is_some_and(|limit| limit.is_product())
        }
        _ => false,
    };
    found.bound = bound(&found, by_product, profile.limits.multiprocessors);
    found.sentence = sentence(&found, profile.limits.multiprocessors, name);
    Some(found)
}

/// Returns what bounds a call: the first rule that holds.
fn bound(found: &Profiled, by_product: bool, multiprocessors: u64) -> Bound {
    let programs = found.kernels.first().and_then(|kernel| kernel.programs);
    let side = if by_product { found.of_product } else { found.of_copy };
    if found.host_ms > found.device_ms {
        Bound::Host
    } else if programs.is_some_and(|programs| programs < multiprocessors) {
        Bound::FewPrograms
    } else {
        match side {
            None => Bound::Unknown,
            Some(share) if share < BOUND => Bound::Latency,
            Some(_) if by_product => Bound::Compute,
            Some(_) => Bound::Memory,
        }
    }
}

fn sentence(found: &Profiled, multiprocessors: u64, product: &str) -> String {
    let percent = |share: Option<f64>| share.map_or_else(|| "an unknown share".to_owned(), figures::percent);
    let first = found.kernels.first();
    match found.bound {
        Bound::Host => format!(
            "The host bounds it: a call takes the host {} ms and the device {} ms.",
            figures::milliseconds(found.host_ms),
            figures::milliseconds(found.device_ms)
        ),
        Bound::FewPrograms => format!(
            "Few programs bound it: `{}` has {}, and the device {multiprocessors} multiprocessors.",
            first.map_or("", |kernel| &kernel.kernel),
            first.and_then(|kernel| kernel.programs).unwrap_or_default()
        ),
        Bound::Memory => {
            format!("Memory bounds it: the op's bytes move at {} of the rate of a copy.", percent(found.of_copy))
        }
        Bound::Compute => format!(
            "Compute bounds it: the op's operations are made at {} of the rate of a product in {product}.",
            percent(found.of_product)
        ),
        Bound::Latency => format!(
            "Latency bounds it: it reaches {} of the rate of a copy{}, below {} of either.",
            percent(found.of_copy),
            found
                .of_product
                .map(|share| format!(" and {} of that of a product", figures::percent(share)))
                .unwrap_or_default(),
            figures::percent(BOUND)
        ),
        Bound::Unknown => {
            "What bounds it is not known: the op's bytes were not counted, or the device's ceilings not measured."
                .to_owned()
        }
    }
}

/// Returns the kernels of a call, longest first.
fn kernels(profile: &Profile, resources: Option<&Resources>, device_ms: f64) -> Vec<KernelRow> {
    let mut launches: BTreeMap<&str, Vec<&ProfiledLaunch>> = BTreeMap::new();
    for one in profile.calls.iter().flatten() {
        launches.entry(&one.kernel).or_default().push(one);
    }
    let mut rows: Vec<KernelRow> =
        launches.iter().filter_map(|(name, of)| row(name, of, profile, resources, device_ms)).collect();
    rows.sort_by(|one, other| other.ms.total_cmp(&one.ms).then_with(|| one.kernel.cmp(&other.kernel)));
    rows
}

#[expect(clippy::cast_precision_loss, reason = "a profile has few launches")]
fn row(
    name: &str,
    launches: &[&ProfiledLaunch],
    profile: &Profile,
    resources: Option<&Resources>,
    device_ms: f64,
) -> Option<KernelRow> {
    let of_call =
        |call: &Vec<ProfiledLaunch>| call.iter().filter(|one| one.kernel == name).map(|one| one.us).sum::<f64>() / 1e3;
    let ms = median(profile.calls.iter().map(of_call).collect())?;
    let longest = launches.iter().max_by(|one, other| one.us.total_cmp(&other.us))?;
    let compiled = resources.into_iter().flat_map(|resources| &resources.kernels);
    let spills: Vec<u64> =
        compiled.filter(|one| one.kernel == name && one.target == profile.model).filter_map(|one| one.spills).collect();
    Some(KernelRow {
        kernel: name.to_owned(),
        launches: launches.len() as f64 / profile.calls.len() as f64,
        ms,
        share: ms / device_ms,
        programs: longest.grid.map(|grid| grid.iter().product()),
        warps: longest.block.map(|block| block.iter().product::<u64>().div_ceil(WARP)),
        registers: longest.registers,
        spills: spills.iter().min().copied().zip(spills.iter().max().copied()),
        shared: longest.shared,
        occupancy: occupancy(longest, &profile.limits),
    })
}

/// Returns the share of a multiprocessor's warps that can run at once, by the registers, the shared memory and the warps of a program; None where one of them is not known. The number of
/// programs that a multiprocessor takes at most is that of the capability, where it is known.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "warps of a multiprocessor are few")]
pub fn occupancy(launch: &ProfiledLaunch, limits: &ProfileLimits) -> Option<f64> {
    let warps = launch.block?.iter().product::<u64>().div_ceil(WARP).max(1);
    let most = limits.threads / WARP;
    let registers = (launch.registers? * WARP).next_multiple_of(REGISTERS_AT_ONCE).max(REGISTERS_AT_ONCE) * warps;
    let reserved = if limits.capability[0] >= 8 { RESERVED } else { 0 };
    let by_shared = limits.shared.checked_div(launch.shared? + reserved).unwrap_or(u64::MAX);
    let by_programs = match limits.capability {
        [8, 6 | 7] => 16,
        [8, 9] | [12, _] => 24,
        [8..=10, 0] => 32,
        _ => u64::MAX,
    };
    let programs = (most / warps).min(limits.registers / registers).min(by_shared).min(by_programs);
    (most > 0).then(|| (programs * warps) as f64 / most as f64)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let high = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { high } else { f64::midpoint(values[middle - 1], high) })
}

/// Returns the table of a profile of the variant at `place`, a row a kernel, then the whole call and the sentence.
#[must_use]
pub fn text(place: &str, profile: &Profile, found: &Profiled, width: Option<usize>) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("Kernel", Align::Left),
        right("Launches"),
        right("Device (ms)"),
        right("Share"),
        right("Programs"),
        right("Warps"),
        right("Registers"),
        right("Spills (B)"),
        right("Shared (B)"),
        right("Occupancy"),
    ]);
    let whole = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    for kernel in &found.kernels {
        let spills = match kernel.spills {
            None => "-".to_owned(),
            Some((least, most)) if least == most => most.to_string(),
            Some((least, most)) => format!("{least}–{most}"),
        };
        table.push(vec![
            kernel.kernel.clone(),
            figures::figure(kernel.launches),
            figures::milliseconds(kernel.ms),
            figures::percent(kernel.share),
            whole(kernel.programs),
            whole(kernel.warps),
            whole(kernel.registers),
            spills,
            whole(kernel.shared),
            kernel.occupancy.map_or_else(|| "-".to_owned(), figures::percent),
        ]);
    }
    let rate = |value: Option<f64>, unit: &str, share: Option<f64>, of: &str| {
        let value = value.map_or_else(|| "not known".to_owned(), |value| format!("{} {unit}", figures::figure(value)));
        share.map_or_else(|| value.clone(), |share| format!("{value}, {} of {of}", figures::percent(share)))
    };
    let count = |value: Option<f64>, unit: &str| {
        value.map_or_else(|| format!("{unit} not counted"), |value| quantity(value, unit))
    };
    format!(
        "{place} at {} in {} on {}: {} calls, recorded by {}\n{}\ncall: device {} ms, host {} ms\nexpected: {}, {}\nreached: {}; {}\n{}\n",
        profile.size,
        profile.dtype,
        profile.model,
        found.calls,
        profile.profiler.to_uppercase(),
        table.text(width),
        figures::milliseconds(found.device_ms),
        figures::milliseconds(found.host_ms),
        count(found.bytes, "B"),
        count(found.flops, "FLOP"),
        rate(found.gb_per_s, "GB/s", found.of_copy, "a copy"),
        rate(found.tflop_per_s, "TFLOP/s", found.of_product, "a product"),
        found.sentence
    )
}

/// Returns a count with its unit, as in `134 MB` and `768 B`.
fn quantity(value: f64, unit: &str) -> String {
    let scaled = figures::scaled(value);
    let gap = if scaled.contains(' ') { "" } else { " " };
    format!("{scaled}{gap}{unit}")
}

#[cfg(test)]
mod tests;
