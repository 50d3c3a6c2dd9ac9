//! The dims of an op, and how a size gives each of them a length.
//!
//! It knows one op and one size at a time. Which size counts on which lane is decided beside it.

use std::collections::BTreeSet;

use super::Binding;
use super::layers::Owner;
use super::names::quoted;
use super::node::{Node, Value};

/// The dims of an op on one lane.
pub(super) struct Dims {
    /// Those without a length of their own, in the order in which the shapes name them.
    pub(crate) free: Vec<String>,
    pub(crate) fixed: Binding,
}

/// Why a size does not fit an op, as the rest of a sentence that begins with the size; and a remedy.
#[derive(Debug, PartialEq)]
pub(super) struct Misfit {
    pub(crate) reason: String,
    pub(crate) hint: String,
}

impl Dims {
    /// Sorts dims in their order of appearance into free ones and those that `fixed` gives a length.
    pub(crate) fn new(appearing: &[String], fixed: Binding) -> Dims {
        let mut seen = BTreeSet::new();
        let free = appearing.iter().filter(|dim| !fixed.contains_key(*dim) && seen.insert(*dim)).cloned().collect();
        Dims { free, fixed }
    }

    /// Gives every dim its length under a size of `owner`.
    ///
    /// # Errors
    /// The first reason why the size does not fit.
    pub(crate) fn bind(&self, size: &Node, owner: Owner) -> Result<Binding, Misfit> {
        let given = match &size.value {
            Value::Map(_) => self.by_name(size, owner)?,
            Value::List(items) => self.in_order(items, owner)?,
            _ => self.free.iter().cloned().zip(std::iter::repeat(length(size))).collect(),
        };
        Ok(self.fixed.iter().map(|(dim, length)| (dim.clone(), *length)).chain(given).collect())
    }

    fn in_order(&self, items: &[Node], owner: Owner) -> Result<Binding, Misfit> {
        // A size that is there for all ops does not have to fit an op that needs none.
        if self.free.is_empty() && owner == Owner::All {
            return Ok(Binding::new());
        }
        if items.len() != self.free.len() {
            return Err(self.wrong_arity(items.len()));
        }
        Ok(self.free.iter().cloned().zip(items.iter().map(length)).collect())
    }

    fn by_name(&self, size: &Node, owner: Owner) -> Result<Binding, Misfit> {
        let mut given = Binding::new();
        for entry in size.entries() {
            if self.free.contains(&entry.key) {
                given.insert(entry.key.clone(), length(&entry.node));
            } else if owner == Owner::Op {
                return Err(self.not_free(&entry.key));
            }
        }
        let unbound: Vec<&str> = self.free.iter().filter(|dim| !given.contains_key(*dim)).map(String::as_str).collect();
        if unbound.is_empty() { Ok(given) } else { Err(left_unbound(&unbound)) }
    }

    /// Returns a size that would fit, as it is written.
    pub(crate) fn example(&self) -> String {
        let lengths: Vec<String> = self.free.iter().map(|dim| format!("{dim}: 256")).collect();
        format!("{{{}}}", lengths.join(", "))
    }

    fn wrong_arity(&self, given: usize) -> Misfit {
        let numbers = if given == 1 { "number" } else { "numbers" };
        Misfit {
            reason: format!("has {given} {numbers} for {}", self.free_in_words()),
            hint: format!("give each free dim a length, as in `{}`", self.example()),
        }
    }

    fn not_free(&self, dim: &str) -> Misfit {
        match self.fixed.get(dim) {
            Some(length) => Misfit {
                reason: format!("binds dim `{dim}`, which `dims` fixes to {length}"),
                hint: format!("remove `{dim}` here or under `dims`"),
            },
            None => Misfit {
                reason: format!("binds `{dim}`, but there are {}", self.free_in_words()),
                hint: super::names::suggestion(dim, self.free.iter().map(String::as_str)),
            },
        }
    }

    fn free_in_words(&self) -> String {
        let dims = quoted(self.free.iter().map(String::as_str));
        match self.free.len() {
            0 => "no free dims".to_owned(),
            1 => format!("1 free dim ({dims})"),
            count => format!("{count} free dims ({dims})"),
        }
    }
}

fn left_unbound(dims: &[&str]) -> Misfit {
    let (what, example) = (if dims.len() == 1 { "dim" } else { "dims" }, format!("`{}: 256`", dims[0]));
    Misfit {
        reason: format!("leaves {what} {} unbound", quoted(dims.iter().copied())),
        hint: format!("add {example} to the size, or to `dims`"),
    }
}

fn length(node: &Node) -> u64 {
    node.whole().unwrap_or_default()
}
