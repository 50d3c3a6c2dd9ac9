//! Figures: numbers as people read them, the same on a screen and in a log.
//!
//! It does not know what a number measures.

use std::time::Duration;

use jiff::Timestamp;
use t2t_protocol::Passes;

/// Returns in words which passes of a call were timed, where that is not the forward pass alone.
#[must_use]
pub(crate) fn passes(passes: Passes) -> &'static str {
    match passes {
        Passes::Backward => "the backward pass alone",
        Passes::Both => "the forward pass and the backward pass",
    }
}

/// Returns milliseconds with four significant digits, as in `0.01235` and `123.5`, in plain notation where that is readable.
#[must_use]
pub(crate) fn milliseconds(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value.abs() < 1e-5 {
        return scientific(value, 3);
    }
    format!("{value:.*}", decimals(value, 4).max(1))
}

/// Returns a ratio as in `1.23x`; two significant digits below 0.1.
#[must_use]
pub(crate) fn ratio(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || value.abs() >= 0.1 {
        return format!("{value:.2}x");
    }
    if value.abs() < 1e-5 {
        return format!("{}x", scientific(value, 1));
    }
    format!("{value:.*}x", decimals(value, 2))
}

/// Returns a number with three significant digits, as in `1.19e-7` and `0.625`; whole numbers below a million whole.
#[must_use]
pub(crate) fn figure(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e6 {
        return format!("{value:.0}");
    }
    if !value.is_finite() || value.abs() < 1e-3 || value.abs() >= 1e6 {
        return scientific(value, 2);
    }
    format!("{value:.*}", decimals(value, 3))
}

/// Returns a large count in steps of a thousand, as in `83.9 M`; below 10,000 in full.
#[must_use]
pub(crate) fn scaled(value: f64) -> String {
    const STEPS: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if value.abs() < 1e4 {
        return figure(value);
    }
    let (step, name) = STEPS.into_iter().find(|(step, _)| value.abs() >= *step).unwrap_or((1.0, ""));
    let scaled = value / step;
    format!("{scaled:.*} {name}", decimals(scaled, 3))
}

/// Returns a moment, in nanoseconds since 1970, as in `2026-11-21T23:30:00Z`.
#[must_use]
pub fn moment(nanoseconds: i64) -> String {
    let seconds = Timestamp::from_second(nanoseconds.div_euclid(1_000_000_000));
    seconds.expect("what nanoseconds count lies between the years 1677 and 2262").to_string()
}

/// Returns a share of a whole, as in `95.8 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let tenths = format!("{:.1}", share * 100.0);
    format!("{} %", tenths.strip_suffix(".0").unwrap_or(&tenths))
}

/// Returns a time as in `85 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`.
#[must_use]
pub fn time(value: Duration) -> String {
    let seconds = value.as_secs();
    match seconds {
        0 => format!("{} ms", value.as_millis()),
        1..10 => format!("{:.1} s", value.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Returns how many decimals show `digits` significant digits of a number that is neither 0 nor infinite.
#[expect(clippy::cast_possible_truncation, reason = "the power of ten of an f64 lies between -324 and 308")]
fn decimals(value: f64, digits: i32) -> usize {
    let magnitude = value.abs().log10().floor() as i32;
    usize::try_from(digits - 1 - magnitude).unwrap_or(0)
}

fn scientific(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_four_significant_digits() {
        let told = [0.0, 0.000_000_12, 0.012_345_6, 0.25, 1.234_56, 12.345_6, 123.456, 12_345.67].map(milliseconds);
        assert_eq!(told, ["0", "1.200e-7", "0.01235", "0.2500", "1.235", "12.35", "123.5", "12345.7"]);
    }

    #[test]
    fn ratios_have_two_decimals_and_small_ones_two_digits() {
        assert_eq!(
            [1.0, 1.234, 123.456, 0.1, 0.0123, 0.000_45].map(ratio),
            ["1.00x", "1.23x", "123.46x", "0.10x", "0.012x", "0.00045x"]
        );
    }

    #[test]
    fn figures_have_three_significant_digits() {
        assert_eq!(
            [0.0, 1.192_092_9e-7, 0.624_9, 31.25, 4096.0, 83_877_888.0].map(figure),
            ["0", "1.19e-7", "0.625", "31.2", "4096", "8.39e7"]
        );
    }

    #[test]
    fn large_counts_are_scaled() {
        assert_eq!(
            [0.0, 9_999.0, 327_168.0, 83_877_888.0, 137_438_953_472.0].map(scaled),
            ["0", "9999", "327 k", "83.9 M", "137 G"]
        );
    }

    #[test]
    fn shares_drop_a_decimal_that_says_nothing() {
        assert_eq!([1.0, 23.0 / 24.0, 0.0].map(percent), ["100 %", "95.8 %", "0 %"]);
    }

    #[test]
    fn times_are_told_in_two_units_at_most() {
        let told = [0, 85, 1_234, 59_999, 200_000, 7_500_000].map(|ms| time(Duration::from_millis(ms)));
        assert_eq!(told, ["0 ms", "85 ms", "1.2 s", "59 s", "3 min 20 s", "2 h 5 min"]);
    }

    #[test]
    fn moments_are_in_the_calendar() {
        let of = |seconds: i64| moment(seconds * 1_000_000_000);
        assert_eq!(of(0), "1970-01-01T00:00:00Z");
        assert_eq!(of(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(of(1_795_303_805), "2026-11-21T23:30:05Z");
        assert_eq!(of(-1), "1969-12-31T23:59:59Z");
        assert_eq!(moment(i64::MAX), "2262-04-11T23:47:16Z");
        assert_eq!(moment(i64::MIN), "1677-09-21T00:12:43Z");
        assert_eq!(of(1_735_689_599), "2024-12-31T23:59:59Z");
    }
}
