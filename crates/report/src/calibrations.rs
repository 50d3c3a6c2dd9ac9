//! Calibrations of several devices of one model, held against each other: which of them says that its device is slower or less steady than it should be.
//!
//! It does not know where devices are, nor which calibration ceilings are drawn from.

use std::collections::BTreeSet;
use std::iter;

use t2t_protocol::{Calibration, CopyFigure};

/// The share of the best rate that a copy reaches on a device that is alone. Copies repeat within a percent; figures of kernels are told apart from 5 % on.
const COPY: f64 = 0.95;

/// The same of a matrix product. Those in half precision run into the device's limit of power, and differ by several percent from one device to the next.
const PRODUCT: f64 = 0.85;

/// By which share of the median the largest copy may vary, from the 20th percentile to the 80th. It does by a few thousandths.
const SPREAD: f64 = 0.05;

/// Of how many rates it is told that they are lower.
const TOLD: usize = 2;

/// A calibration, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Calibrated<'a> {
    /// Whose, for people.
    pub name: &'a str,
    /// What it says.
    pub calibration: &'a Calibration,
}

/// A rate, as it was measured on each device.
struct Rate {
    /// What ran, as in `copies` and `matrix products in float16`.
    what: String,
    unit: &'static str,
    /// Which share of the best is enough.
    enough: f64,
    values: Vec<Option<f64>>,
}

/// Returns why each of them is noisy, in words; nothing of one that is not. A rate is held against the best that one of them has.
#[must_use]
pub fn noise(all: &[Calibrated<'_>]) -> Vec<Vec<String>> {
    let names: BTreeSet<&String> = all.iter().flat_map(|one| one.calibration.products.keys()).collect();
    let values = |of: &dyn Fn(&Calibration) -> Option<f64>| all.iter().map(|one| of(one.calibration)).collect();
    let copies = Rate { what: "copies".to_owned(), unit: "GB/s", enough: COPY, values: values(&copy_rate) };
    let products = names.into_iter().map(|name| Rate {
        what: format!("matrix products in {name}"),
        unit: "TFLOP/s",
        enough: PRODUCT,
        values: values(&|calibration| product_rate(calibration, name)),
    });
    let rates: Vec<Rate> = iter::once(copies).chain(products).collect();
    let of_one = |(number, one): (usize, &Calibrated<'_>)| {
        let unsteady = one.calibration.copies.last().and_then(unsteady);
        let disturbed = one.calibration.why_unstable.clone();
        let slower: Vec<String> = rates.iter().filter_map(|rate| slower(number, rate, all)).collect();
        let more = slower.len().saturating_sub(TOLD);
        let more = (more > 0).then(|| format!("{more} more rates are lower, too"));
        disturbed.into_iter().chain(unsteady).chain(slower.into_iter().take(TOLD)).chain(more).collect()
    };
    all.iter().enumerate().map(of_one).collect()
}

/// Says by how much a copy varies, where that is too much.
fn unsteady(copy: &CopyFigure) -> Option<String> {
    let spread = (copy.p80 - copy.p20) / copy.median;
    (spread > SPREAD).then(|| format!("copies vary by {:.0} %", spread * 100.0))
}

/// Says that a rate of the one with this `number` is below what another one of `all` reaches, where it is.
fn slower(number: usize, rate: &Rate, all: &[Calibrated<'_>]) -> Option<String> {
    let Rate { what, unit, enough, values } = rate;
    let value = values[number]?;
    let known = all.iter().zip(values).filter_map(|(one, value)| Some((one.name, (*value)?)));
    let (best, most) = known.max_by(|one, next| one.1.total_cmp(&next.1))?;
    (value < enough * most).then(|| format!("{what} reach {value:.0} {unit}, where {best} has {most:.0}"))
}

fn copy_rate(calibration: &Calibration) -> Option<f64> {
    Some(calibration.copy_gb_per_s).filter(|rate| *rate > 0.0)
}

fn product_rate(calibration: &Calibration, name: &str) -> Option<f64> {
    Some(calibration.products.get(name)?.as_ref()?.tflop_per_s)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use t2t_protocol::ProductFigure;

    use super::*;

    fn calibration(copies: f64, float16: Option<f64>) -> Calibration {
        let times = CopyFigure { bytes: 1 << 31, mean: 0.5, median: 0.5, p20: 0.499, p80: 0.501, gb_per_s: copies };
        let product = float16.map(|rate| ProductFigure {
            side: 8192,
            mean: 1.0,
            median: 1.0,
            p20: 0.9,
            p80: 1.1,
            tflop_per_s: rate,
        });
        Calibration {
            copy_gb_per_s: copies,
            copies: vec![times],
            products: BTreeMap::from([("float16".to_owned(), product)]),
            ..Calibration::default()
        }
    }

    fn told(all: &[(&str, &Calibration)]) -> Vec<Vec<String>> {
        noise(&all.iter().map(|(name, calibration)| Calibrated { name, calibration }).collect::<Vec<_>>())
    }

    #[test]
    fn a_device_that_is_slower_than_another_is_told_with_what_that_reaches() {
        let [fast, slow] = [calibration(4200.0, Some(650.0)), calibration(3900.0, Some(500.0))];
        let why = [
            "copies reach 3900 GB/s, where node two has 4200",
            "matrix products in float16 reach 500 TFLOP/s, where node two has 650",
        ];
        assert_eq!(told(&[("node one", &slow), ("node two", &fast)]), [why.as_slice(), &[]]);
        // What a device like any other differs by is no noise, and a rate that is not known says nothing.
        let like = calibration(4050.0, Some(580.0));
        assert_eq!(told(&[("node one", &like), ("node two", &fast)]), [[""; 0], []]);
        let unknown = calibration(4200.0, None);
        assert_eq!(
            told(&[("node one", &unknown), ("node two", &fast), ("here", &Calibration::default())]),
            [[""; 0], [], []]
        );
    }

    #[test]
    fn where_everything_is_slower_two_rates_are_told() {
        let of = |rate: f64| {
            let mut found = calibration(10.0 * rate, Some(rate));
            for name in ["float32", "tf32"] {
                found.products.insert(name.to_owned(), found.products["float16"].clone());
            }
            found
        };
        let [slow, fast] = [of(100.0), of(400.0)];
        let why = &told(&[("node one", &slow), ("node two", &fast)])[0];
        assert_eq!((why.len(), why[2].as_str()), (3, "2 more rates are lower, too"));
    }

    #[test]
    fn one_that_is_alone_is_noisy_by_what_it_says_of_itself() {
        let mut own = calibration(4200.0, Some(650.0));
        assert_eq!(told(&[("node one", &own)]), [[""; 0]]);
        own.copies[0].p80 = 0.56;
        own.why_unstable = Some("other processes on the GPU: 2".to_owned());
        assert_eq!(told(&[("node one", &own)]), [["other processes on the GPU: 2", "copies vary by 12 %"]]);
    }
}
