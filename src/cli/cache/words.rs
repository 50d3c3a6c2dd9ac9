//! Counts, lengths and ages as people write and read them.

/// A second in nanoseconds.
pub(super) const SECOND: i64 = 1_000_000_000;

pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Returns a length in bytes for people.
pub(crate) fn bytes(number: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fitting = units.into_iter().find(|(unit, _)| number >= *unit);
    fitting.map_or(format!("{number} B"), |(unit, name)| {
        let tenths = u128::from(number) * 10 / u128::from(unit);
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    })
}

pub(super) fn ago(seconds: i64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let fitting = units.into_iter().find(|(unit, _)| seconds >= *unit);
    fitting.map_or(format!("{} s", seconds.max(0)), |(unit, name)| format!("{} {name}", seconds / unit))
}

/// Parts `2GiB` into the number and its unit.
fn parted(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = parted(text);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "t" | "tib" => Some(1 << 40),
        "kb" => Some(1000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "tb" => Some(1_000_000_000_000),
        _ => None,
    };
    let size = number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    size.ok_or_else(|| "it is a whole number with a unit, as in 500MB, 2GiB".to_owned())
}

pub(super) fn age(text: &str) -> Result<i64, String> {
    let (number, unit) = parted(text);
    let seconds = match unit {
        "s" => Some(1),
        "min" | "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        "w" => Some(7 * 86_400),
        _ => None,
    };
    let age = number
        .parse::<i64>()
        .ok()
        .zip(seconds)
        .and_then(|(number, unit)| number.checked_mul(unit)?.checked_mul(SECOND));
    age.ok_or_else(|| "it is a whole number with a unit (s, min, h, d, w), as in 12h, 30d".to_owned())
}
