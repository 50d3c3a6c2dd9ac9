//! Resolves the text after `torch:` to a torch function.
//!
//! It does not know how the names torch has are found out; without them it can only complete prefixes.

use std::collections::BTreeSet;

pub use t2t_protocol::{Signature, Signatures};

use super::names::nearest;

/// Where a name without a dot is looked for, in this order.
const HOMES: [&str; 5] = ["torch.nn.functional", "torch", "torch.special", "torch.linalg", "torch.fft"];

/// What people import under a short name.
const SHORT: [(&str, &str); 3] =
    [("F", "torch.nn.functional"), ("aten", "torch.ops.aten"), ("functional", "torch.nn.functional")];

/// What stands before the names of aten.
const ATEN: &str = "torch.ops.aten.";

/// The functions that the installed torch has, by their full dotted names, and what they take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TorchNames {
    names: BTreeSet<String>,
    signatures: Signatures,
}

impl FromIterator<String> for TorchNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> TorchNames {
        TorchNames { names: names.into_iter().collect(), signatures: Signatures::default() }
    }
}

impl TorchNames {
    /// Finds the aten operation called `name`, without an overload. If these names have none of aten, every operation counts as found.
    ///
    /// # Errors
    /// Where torch has none: the nearest one, if any is near.
    pub(crate) fn aten(&self, name: &str) -> Result<(), Option<String>> {
        let full = format!("{ATEN}{name}");
        if !self.cover(&full) || self.names.contains(&full) {
            return Ok(());
        }
        Err(nearest(name, self.names.iter().filter_map(|known| known.strip_prefix(ATEN))).map(str::to_owned))
    }

    /// Returns whether these names can tell that torch lacks `name`: a list without any aten overload says nothing about aten.
    fn cover(&self, name: &str) -> bool {
        let is_aten = |name: &str| name.starts_with("torch.ops.");
        !is_aten(name) || self.names.iter().any(|known| is_aten(known))
    }

    /// Returns the names with what is known of the functions' arguments.
    #[must_use]
    pub fn with(self, signatures: Signatures) -> TorchNames {
        TorchNames { signatures, ..self }
    }

    /// Returns what a function takes, where that is known.
    #[must_use]
    pub(crate) fn signature(&self, name: &TorchName) -> Option<&Signature> {
        self.signatures.functions.get(name.as_str())
    }

    /// Returns whether any function may take an argument of this name.
    #[must_use]
    pub(crate) fn is_common(&self, parameter: &str) -> bool {
        self.signatures.common.contains(parameter)
    }
}

/// The torch function of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TorchName {
    /// A full dotted name, such as `torch.nn.functional.softmax`.
    Full(String),
    /// A name without a dot, as written, because the names torch has were not known.
    Bare(String),
}

impl TorchName {
    /// Returns the name, full or as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            TorchName::Full(name) | TorchName::Bare(name) => name,
        }
    }
}

/// Finds what `written` names, without asking whether torch has it where `names` is none.
///
/// # Errors
/// Where torch has no such function: the full name of the nearest one, if any is near.
pub(crate) fn resolve(written: &str, names: Option<&TorchNames>) -> Result<TorchName, Option<String>> {
    let candidates = candidates(written);
    let Some(TorchNames { names: known, .. }) = names.filter(|names| names.cover(&candidates[0])) else {
        let is_full = candidates.len() == 1;
        return Ok(if is_full { TorchName::Full(candidates[0].clone()) } else { TorchName::Bare(written.to_owned()) });
    };
    match candidates.iter().find(|name| known.contains(*name)) {
        Some(name) => Ok(TorchName::Full(name.clone())),
        None => Err(nearest_name(&candidates, known)),
    }
}

/// Returns the full names that `written` may stand for: several for a name without a dot, else one.
fn candidates(written: &str) -> Vec<String> {
    let Some((first, rest)) = written.split_once('.') else {
        return HOMES.iter().map(|home| format!("{home}.{written}")).collect();
    };
    let short = SHORT.iter().find(|(short, _)| *short == first);
    match (first, short) {
        ("torch", _) => vec![written.to_owned()],
        (_, Some((_, home))) => vec![format!("{home}.{rest}")],
        _ => vec![format!("torch.{written}")],
    }
}

/// Compares last parts, which is where people err. Of equally near names, one in a home that was meant wins.
fn nearest_name(candidates: &[String], known: &BTreeSet<String>) -> Option<String> {
    let word = last(&candidates[0]);
    let homes = candidates.iter().map(|name| home(name)).chain(HOMES);
    let near = homes.filter_map(|wanted| {
        let here = || known.iter().filter(|name| home(name) == wanted);
        let found = nearest(word, here().map(|name| last(name)))?;
        here().find(|name| last(name) == found)
    });
    near.min_by_key(|name| strsim::damerau_levenshtein(word, last(name))).cloned()
}

fn home(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(home, _)| home)
}

fn last(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> TorchNames {
        let names = [
            "torch.add",
            "torch.softmax",
            "torch.special.softmax",
            "torch.nn.functional.softmax",
            "torch.linalg.norm",
            "torch.erf",
            "torch.special.erf",
        ];
        names.into_iter().map(str::to_owned).collect()
    }

    fn full(written: &str) -> String {
        match resolve(written, Some(&names())) {
            Ok(TorchName::Full(name)) => name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_way_of_writing_a_name_finds_it() {
        for written in
            ["softmax", "F.softmax", "nn.functional.softmax", "torch.nn.functional.softmax", "functional.softmax"]
        {
            assert_eq!(full(written), "torch.nn.functional.softmax", "{written}");
        }
        assert_eq!(full("add"), "torch.add");
        assert_eq!(full("erf"), "torch.erf");
        assert_eq!(full("torch.softmax"), "torch.softmax");
        assert_eq!(full("linalg.norm"), "torch.linalg.norm");
    }

    #[test]
    fn a_misspelt_name_is_told_the_nearest() {
        assert_eq!(resolve("F.sofmax", Some(&names())), Err(Some("torch.nn.functional.softmax".to_owned())));
        assert_eq!(resolve("torch.ad", Some(&names())), Err(Some("torch.add".to_owned())));
        assert_eq!(resolve("F.add", Some(&names())), Err(Some("torch.add".to_owned())));
        assert_eq!(resolve("frobnicate", Some(&names())), Err(None));
    }

    #[test]
    fn without_torch_only_prefixes_are_completed() {
        assert_eq!(resolve("F.softmax", None), Ok(TorchName::Full("torch.nn.functional.softmax".to_owned())));
        assert_eq!(resolve("aten.add", None), Ok(TorchName::Full("torch.ops.aten.add".to_owned())));
        assert_eq!(resolve("softmax", None), Ok(TorchName::Bare("softmax".to_owned())));
    }

    #[test]
    fn aten_is_believed_where_the_names_do_not_cover_it() {
        assert_eq!(resolve("aten.add", Some(&names())), Ok(TorchName::Full("torch.ops.aten.add".to_owned())));
    }
}
