//! Ceilings: what the device was measured to do at most, and what that comes to for the work of one size.
//!
//! It does not know whose figures are held against them.

use serde::Serialize;
use t2t_protocol::Calibration;

/// The rates of a document `calibration`.
#[derive(Debug, Serialize)]
pub(crate) struct Rates {
    pub(crate) copy_gb_per_s: f64,
    pub(crate) products: Vec<ProductRate>,
    unstable: bool,
    why_unstable: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ProductRate {
    pub(crate) name: String,
    pub(crate) tflop_per_s: Option<f64>,
}

/// What limits an op at a size, and how long that takes at best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ceiling {
    /// `copy` or `product`.
    kind: &'static str,
    /// Whose product: a dtype, or `tf32`.
    product: Option<String>,
    /// GB/s of a copy, or TFLOP/s of a product.
    rate: f64,
    /// How long the op takes at this rate.
    ms: f64,
}

impl Ceiling {
    /// Tells whether it is the rate of a product that limits.
    #[must_use]
    pub(crate) fn is_product(&self) -> bool {
        self.kind == "product"
    }

    /// Returns the share of the ceiling that work of `ms` milliseconds reaches.
    #[must_use]
    pub(crate) fn share(&self, ms: f64) -> f64 {
        self.ms / ms
    }
}

/// What an op moves and computes at a size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Bytes read and written.
    pub(crate) bytes: f64,
    /// Floating-point operations, where they were counted.
    pub(crate) flops: Option<f64>,
}

/// Returns the rates of a calibration, None where it has none.
#[must_use]
pub(crate) fn rates(calibration: &Calibration) -> Option<Rates> {
    let rate = |name: &String| Some(calibration.products.get(name)?.as_ref()?.tflop_per_s);
    let product = |name: &String| ProductRate { name: name.clone(), tflop_per_s: rate(name) };
    Some(Rates {
        copy_gb_per_s: copy_rate(calibration)?,
        products: calibration.products.keys().map(product).collect(),
        unstable: calibration.unstable,
        why_unstable: calibration.why_unstable.clone(),
    })
}

/// Returns GB/s of the largest copy, None where none was measured.
fn copy_rate(calibration: &Calibration) -> Option<f64> {
    Some(calibration.copy_gb_per_s).filter(|rate| *rate > 0.0)
}

/// Returns what limits `work` by the roofline: whichever takes longer at the measured rates, a copy of its bytes or, for its operations, the product
/// named `product`. A product that was not measured limits nothing. None where the operations were not counted.
#[must_use]
pub(crate) fn limit(calibration: &Calibration, work: Work, product: &str) -> Option<Ceiling> {
    let copy = copy_rate(calibration)?;
    let moving = Ceiling { kind: "copy", product: None, rate: copy, ms: work.bytes / copy / 1e6 };
    let rate = calibration.products.get(product).and_then(Option::as_ref).map(|figure| figure.tflop_per_s);
    let flops = work.flops?;
    let computing =
        rate.map(|rate| Ceiling { kind: "product", product: Some(product.to_owned()), rate, ms: flops / rate / 1e9 });
    Some(computing.filter(|computing| computing.ms > moving.ms).unwrap_or(moving))
}

/// Returns how long, in milliseconds, a copy takes that moves `bytes`, read off the measured ones: between two in proportion on logarithmic scales,
/// below the first as long as that, above the last at its rate.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a copy moves fewer bytes than 2^52")]
pub(crate) fn copy_ms(calibration: &Calibration, bytes: f64) -> Option<f64> {
    let points: Vec<(f64, f64)> = calibration.copies.iter().map(|copy| (copy.bytes as f64, copy.median)).collect();
    let (&(first, shortest), &(last, longest)) = (points.first()?, points.last()?);
    if bytes <= first {
        return Some(shortest);
    }
    if bytes >= last {
        return Some(longest * bytes / last);
    }
    let pair = points.windows(2).find(|pair| bytes <= pair[1].0)?;
    let ((low, below), (high, above)) = (pair[0], pair[1]);
    let part = (bytes / low).ln() / (high / low).ln();
    Some(below * (above / below).powf(part))
}

#[cfg(test)]
mod tests {
    use t2t_protocol::{CopyFigure, ProductFigure};

    use super::*;

    fn calibration() -> Calibration {
        let copy = |bytes, median| CopyFigure { bytes, median, mean: median, p20: median, p80: median, gb_per_s: 1.0 };
        let product = ProductFigure { side: 8, mean: 1.0, median: 1.0, p20: 1.0, p80: 1.0, tflop_per_s: 50.0 };
        Calibration {
            copy_gb_per_s: 4000.0,
            copies: vec![copy(100, 1.0), copy(400, 2.0), copy(1600, 8.0)],
            products: [("float32".to_owned(), Some(product)), ("float64".to_owned(), None)].into(),
            ..Calibration::default()
        }
    }

    fn kind(flops: Option<f64>, product: &str) -> Option<(&'static str, f64)> {
        let work = Work { bytes: 4e9, flops };
        limit(&calibration(), work, product).map(|ceiling| (ceiling.kind, ceiling.ms))
    }

    #[test]
    fn what_takes_longer_limits() {
        assert_eq!(kind(Some(40e9), "float32"), Some(("copy", 1.0)));
        assert_eq!(kind(Some(100e9), "float32"), Some(("product", 2.0)));
    }

    #[test]
    fn a_product_that_was_not_measured_limits_nothing_and_work_that_was_not_counted_has_no_limit() {
        assert_eq!(kind(Some(1e15), "float64"), Some(("copy", 1.0)));
        assert_eq!(kind(Some(1e15), "int8"), Some(("copy", 1.0)));
        assert_eq!(kind(None, "float32"), None);
        assert_eq!(limit(&Calibration::default(), Work { bytes: 1.0, flops: Some(1.0) }, "float32"), None);
    }

    #[test]
    fn a_copy_of_as_many_bytes_is_read_off_the_measured_ones() {
        let ms = |bytes: f64| copy_ms(&calibration(), bytes).unwrap();
        for (bytes, wanted) in [(1.0, 1.0), (100.0, 1.0), (400.0, 2.0), (1600.0, 8.0), (3200.0, 16.0)] {
            assert!((ms(bytes) - wanted).abs() < 1e-12, "{bytes}: {}", ms(bytes));
        }
        // Halfway on logarithmic scales.
        assert!((ms(200.0) - 2.0_f64.sqrt()).abs() < 1e-12 && (ms(800.0) - 4.0).abs() < 1e-12);
        assert_eq!(copy_ms(&Calibration::default(), 1.0), None);
    }
}
