//! Reading: what somebody else wrote, as a type, and which part of it does not fit.
//!
//! What is stored stays the bytes that came; a type is a view of them. It does not know documents, nor where they are kept.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// How many parts that do not fit are left out before a document as a whole counts as one that does not.
const MOST: usize = 64;

/// What does not fit its type: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The field, as in `sizes.small.variant`; `.` where it is the whole.
    pub field: String,
    /// What is wrong there, as in ``invalid type: string "1", expected u64``.
    pub message: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "." => f.write_str(&self.message),
            field => write!(f, "`{field}`: {}", self.message),
        }
    }
}

/// Returns a value as a `T`. Fails, naming the field, where one does not fit.
pub fn exactly<T: DeserializeOwned>(value: &Value) -> Result<T, Misfit> {
    fit(value).map_err(|(_, misfit)| misfit)
}

/// Returns a value as a `T`: a part that does not fit counts as absent, as one does that an earlier t2t did not write. Fails where something without which there is
/// no `T` is absent, or where hardly anything fits.
pub fn leniently<T: DeserializeOwned>(value: &Value) -> Result<T, Misfit> {
    let (mut path, first) = match fit(value) {
        Ok(found) => return Ok(found),
        Err(misfit) => misfit,
    };
    let mut rest = value.clone();
    for _ in 0..MOST {
        if !leave_out(&mut rest, &path) {
            break;
        }
        match fit(&rest) {
            Ok(found) => return Ok(found),
            Err((next, _)) => path = next,
        }
    }
    Err(first)
}

/// Returns the `T` that a stored document is, read [`leniently`].
pub fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Misfit> {
    // What fits, as nearly all does, is read without a tree in between.
    serde_json::from_slice(bytes).or_else(|_| {
        let whole = |error: serde_json::Error| Misfit { field: ".".to_owned(), message: error.to_string() };
        leniently(&serde_json::from_slice(bytes).map_err(whole)?)
    })
}

/// Reads a field that may be absent, where null says something else than that.
pub(crate) fn told<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

fn fit<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, (Path, Misfit)> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let misfit = Misfit { field: error.path().to_string(), message: error.inner().to_string() };
        (error.path().clone(), misfit)
    })
}

/// Takes the part at `path` away. Returns whether it was there: the whole is not taken away.
fn leave_out(value: &mut Value, path: &Path) -> bool {
    let mut steps: Vec<&Segment> = Vec::new();
    for step in path {
        match step {
            Segment::Seq { .. } | Segment::Map { .. } => steps.push(step),
            // Inside of what is told from others by its content nothing has a place of its own.
            Segment::Enum { .. } | Segment::Unknown => break,
        }
    }
    let Some((last, way)) = steps.split_last() else { return false };
    let mut place = value;
    for step in way {
        let inner = match step {
            Segment::Seq { index } => place.get_mut(index),
            Segment::Map { key } => place.get_mut(key),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        match inner {
            Some(inner) => place = inner,
            None => return false,
        }
    }
    match (place, last) {
        (Value::Object(fields), Segment::Map { key }) => fields.remove(key).is_some(),
        (Value::Array(items), Segment::Seq { index }) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Told {
        word: String,
        sizes: BTreeMap<String, Size>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Size {
        ms: f64,
        runs: Vec<u64>,
    }

    fn size(ms: f64, runs: &[u64]) -> Size {
        Size { ms, runs: runs.to_vec() }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let told = json!({"word": "a", "sizes": {"small": {"ms": 1.0, "runs": [1, "two"]}}});
        let misfit = exactly::<Told>(&told).unwrap_err();
        assert_eq!(misfit.to_string(), "`sizes.small.runs[1]`: invalid type: string \"two\", expected u64");
        assert_eq!(exactly::<Told>(&json!(3)).unwrap_err().field, ".");
    }

    #[test]
    fn a_part_that_does_not_fit_counts_as_absent_and_one_that_nothing_is_without_takes_the_rest_along() {
        let told = json!({
            "word": 7, "more": {"nobody": "reads it"},
            "sizes": {"small": {"ms": 1.0, "runs": [1, "two", 3]}, "large": {"ms": null, "runs": []}, "huge": 4},
        });
        let found: Told = leniently(&told).unwrap();
        assert_eq!(
            found,
            Told { word: String::new(), sizes: BTreeMap::from([("small".to_owned(), size(1.0, &[1, 3]))]) }
        );
        assert!(leniently::<Size>(&json!({"ms": 1.0})).is_err(), "a size without runs is none");
    }

    #[test]
    fn where_hardly_anything_fits_nothing_is_read() {
        let runs = vec![json!("no"); MOST + 1];
        assert_eq!(leniently::<Size>(&json!({"ms": 1.0, "runs": runs})).unwrap_err().field, "runs[0]");
        assert!(leniently::<Size>(&json!({"ms": 1.0, "runs": runs[1..]})).is_ok());
    }

    #[test]
    fn bytes_that_are_no_document_are_none() {
        assert_eq!(document::<Told>(br#"{"word": "a"}"#).unwrap().word, "a");
        assert_eq!(document::<Told>(br#"{"word": 1}"#).unwrap().word, "");
        assert!(document::<Told>(b"{").is_err() && document::<Told>(b"null").is_err());
    }
}
