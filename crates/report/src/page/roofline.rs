//! The roofline of an op as SVG: what each kernel computes in a second at each size, below what the device was measured to do at most.
//!
//! It knows the rates that a log tells, and no document. Both axes are logarithmic.

use super::drawing::{Anchor, Axis, Drawing, HEIGHT, Plot, WIDTH};
use super::subjects::{Subject, TORCH};
use crate::figures::figure;
use crate::render::benchmark::Benchmark;

/// How large the marks of the first size are, and how large they get: those of a larger size are larger, as far as that goes.
const SMALLEST: usize = 3;
const LARGEST: usize = 6;

/// A kernel at a size.
struct Mark {
    kernel: usize,
    radius: i32,
    /// FLOP for each byte that the op has to move.
    intensity: f64,
    tflop_per_s: f64,
    unstable: bool,
}

/// The roofline of an op.
struct Roofline<'a> {
    kernels: Vec<&'a str>,
    marks: Vec<Mark>,
    /// TB/s of a copy: by as many FLOP a byte, these are TFLOP/s.
    copy: f64,
    /// The products in the dtypes that were measured, with their TFLOP/s.
    products: Vec<(&'a str, f64)>,
}

/// Returns the roofline of an op, None where no operations were counted, or nothing is known of the device.
pub(crate) fn roofline(op: &str, benchmark: &Benchmark<'_>, subjects: &[Subject]) -> Option<String> {
    let roofline = Roofline::of(benchmark, subjects)?;
    let label =
        format!("Roofline of {op}: TFLOP/s by FLOP per byte, on logarithmic scales, below the device's ceilings");
    Some(roofline.drawn().svg(&label))
}

/// Returns why an op that was measured has no roofline, in words.
pub(crate) fn why_none(benchmark: &Benchmark<'_>) -> &'static str {
    if benchmark.ceilings.is_none() {
        "the device's ceilings are not known"
    } else if benchmark.sizes.iter().any(|size| size.bytes.is_some()) {
        "the analysis counted no floating-point operations"
    } else {
        "the analysis counted nothing of what was measured"
    }
}

impl<'a> Roofline<'a> {
    fn of(benchmark: &'a Benchmark<'_>, subjects: &'a [Subject]) -> Option<Self> {
        let ceilings = benchmark.ceilings.as_ref()?;
        // Those of the other charts have the same marks here.
        let kernels: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).chain([TORCH]).collect();
        let mut marks = Vec::new();
        let mut tested = Vec::new();
        for (place, size) in benchmark.sizes.iter().enumerate() {
            let Some(intensity) = size.intensity.filter(|intensity| *intensity > 0.0) else { continue };
            tested.push(size.product);
            let radius = i32::try_from((SMALLEST + place).min(LARGEST)).unwrap_or_default();
            marks.extend(size.rows.iter().filter_map(|row| {
                let kernel = kernels.iter().position(|kernel| *kernel == row.kernel)?;
                let tflop_per_s = row.tflop_per_s.filter(|rate| rate.is_finite() && *rate > 0.0)?;
                Some(Mark { kernel, radius, intensity, tflop_per_s, unstable: row.unstable })
            }));
        }
        let products = ceilings.products.iter().filter(|product| tested.contains(&product.name.as_str()));
        let products = products.filter_map(|product| Some((product.name.as_str(), product.tflop_per_s?)));
        let products = products.filter(|(_, rate)| *rate > 0.0).collect();
        (!marks.is_empty()).then(|| Self { kernels, marks, copy: ceilings.copy_gb_per_s / 1000.0, products })
    }

    /// Returns whole decades that hold all marks and each place where two ceilings meet, across and up.
    fn bounds(&self) -> ([f64; 2], [f64; 2]) {
        let ridges = self.products.iter().map(|(_, rate)| rate / self.copy);
        // There is room for the name of the slope.
        let ridges = ridges.flat_map(|ridge| [ridge / 10.0, ridge * 2.0]);
        let across = decades(self.marks.iter().map(|mark| mark.intensity).chain(ridges));
        let tops = self.products.iter().map(|(_, rate)| rate * 1.5);
        let slope = self.marks.iter().map(|mark| mark.intensity * self.copy).filter(|_| self.products.is_empty());
        let up = decades(self.marks.iter().map(|mark| mark.tflop_per_s).chain(tops).chain(slope));
        (across, up)
    }

    fn drawn(&self) -> Drawing {
        let mut drawing = Drawing::default();
        let top = drawing.legend(&self.kernels);
        let ([left, right], [low, high]) = self.bounds();
        let (across, up) = (Axis::logarithmic(left..right), Axis::logarithmic(low..high));
        let plot = Plot { across, up, left: 58, right: WIDTH - 24, top, bottom: HEIGHT - 36 };
        drawing.rows(&plot, 5, "TFLOP/s");
        drawing.columns(&plot, 6, "FLOP per byte");
        for (product, rate) in &self.products {
            let (end, height) = plot.at(right, *rate);
            drawing.line(plot.at(rate / self.copy, *rate), (end, height));
            drawing.words((end - 4, height - 8), &format!("{product}: {} TFLOP/s", figure(*rate)), Anchor::End);
        }
        let highest = self.products.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let highest = if highest > 0.0 { highest } else { high };
        let begin = left.max(low / self.copy);
        let end = right.min(highest / self.copy);
        drawing.line(plot.at(begin, begin * self.copy), plot.at(end, end * self.copy));
        let middle = (begin * end).sqrt();
        let (x, y) = plot.at(middle, middle * self.copy);
        drawing.words((x - 8, y - 8), &format!("copy: {} GB/s", figure(self.copy * 1000.0)), Anchor::End);
        for mark in &self.marks {
            drawing.mark(mark.kernel, plot.at(mark.intensity, mark.tflop_per_s), mark.radius, mark.unstable);
        }
        drawing
    }
}

/// Returns the powers of ten about the values, which are positive.
fn decades(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let (least, most) =
        values.fold((f64::INFINITY, 0.0), |(least, most), value| (f64::min(least, value), f64::max(most, value)));
    let (low, high) = (least.log10().floor(), most.log10().ceil());
    // A power of ten at the end of an axis has its label only where it lies within.
    [low - 0.001, high.max(low + 1.0) + 0.001].map(|power| 10_f64.powf(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_hold_all_values_and_are_never_empty() {
        for (values, wanted) in [(vec![0.3, 40.0], [0.1, 100.0]), (vec![10.0], [10.0, 100.0]), (vec![5.0], [1.0, 10.0])]
        {
            let [low, high] = decades(values.into_iter());
            assert!((low / wanted[0] - 1.0).abs() < 0.01 && (high / wanted[1] - 1.0).abs() < 0.01, "{low} {high}");
            assert!(low < wanted[0] && high > wanted[1], "{low} {high}");
        }
    }
}
