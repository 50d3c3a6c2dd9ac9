//! The types of values in ops.yaml, and their names for people.
//!
//! It does not know which field has which.

use std::fmt;

use super::names::{Form, quoted};
use super::sections::Section;

/// The type of a value. `Display` gives it in words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// An integer that is not less.
    Whole(i64),
    /// An integer or a finite float.
    Number,
    /// A number that is not below zero.
    Amount,
    /// A text of this form.
    Form(Form),
    /// One of a closed set of words, with what such a word is called.
    OneOf(&'static str, &'static [&'static str]),
    /// A list.
    List {
        /// What its items are.
        of: &'static Kind,
        /// How many items there are at least.
        least: usize,
        /// How many items there are at most.
        most: usize,
    },
    /// A list without repetitions.
    Set {
        /// What its items are.
        of: &'static Kind,
        /// How many items there are at least.
        least: usize,
    },
    /// A mapping with names that the user chooses; `what` says what they name.
    Map {
        /// What its names are called.
        what: &'static str,
        /// What its names are.
        key: &'static Kind,
        /// What its values are.
        of: &'static Kind,
        /// How many names there are at least.
        least: usize,
    },
    /// A mapping with a closed set of keys.
    Section(Section),
    /// Any one of these.
    Either(&'static [Kind]),
    /// Whatever JSON can hold.
    Any,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Flag => out.write_str("true or false"),
            Kind::Whole(least) => write!(out, "integer ≥ {least}"),
            Kind::Number => out.write_str("number"),
            Kind::Amount => out.write_str("number ≥ 0"),
            Kind::Form(form) => out.write_str(form.words()),
            Kind::OneOf(_, words) if words.len() <= 4 => {
                out.write_str(&quoted(words.iter().copied()).replace(", ", " or "))
            }
            Kind::OneOf(what, _) => out.write_str(what),
            Kind::List { of, least, most } if least == most => write!(out, "list of {least} ({of})"),
            Kind::List { of, .. } => write!(out, "list of ({of})"),
            Kind::Set { of, .. } => write!(out, "set of ({of})"),
            Kind::Map { what, of, .. } => write!(out, "mapping of {what} to ({of})"),
            Kind::Section(section) => write!(out, "{} mapping", section.name()),
            Kind::Either(kinds) => {
                let words: Vec<String> = kinds.iter().map(Kind::to_string).collect();
                out.write_str(&words.join(" or "))
            }
            Kind::Any => out.write_str("any value"),
        }
    }
}
