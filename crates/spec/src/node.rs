//! The tree of a YAML file: values, in which every key and every value knows its place.
//!
//! It does not know how it is read, nor what any key means.

use std::collections::BTreeSet;

use t2t_model::problem::Position;

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Position,
    pub(crate) value: Value,
}

/// A value as YAML 1.2's core schema resolves it: `no` is text, `1e-5` is a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Nothing,
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One key of a mapping with its value. A key written twice is two entries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Position,
    pub(crate) node: Node,
}

impl Node {
    /// Returns the value under `key`, if this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Returns the value at the end of a path of keys.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Returns the entries in the order of the file; none if this is no mapping.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items; none if this is no list.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the text, if this is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the flag, if this is one.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// Returns an integer that is not negative.
    pub(crate) fn whole(&self) -> Option<u64> {
        match self.value {
            Value::Whole(whole) => u64::try_from(whole).ok(),
            _ => None,
        }
    }

    /// Returns the number, if this is one or an integer.
    #[expect(clippy::cast_precision_loss, reason = "an integer where a number is wanted means the nearest float")]
    pub(crate) fn number(&self) -> Option<f64> {
        match self.value {
            Value::Whole(whole) => Some(whole as f64),
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn children(&self) -> Box<dyn Iterator<Item = &Node> + '_> {
        match &self.value {
            Value::List(items) => Box::new(items.iter()),
            Value::Map(entries) => Box::new(entries.iter().map(|entry| &entry.node)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Returns whether a key or value in it, or itself, stands at one of `places`.
    pub(crate) fn has_any(&self, places: &BTreeSet<Position>) -> bool {
        let has_key = self.entries().iter().any(|entry| places.contains(&entry.place));
        has_key || places.contains(&self.place) || self.children().any(|child| child.has_any(places))
    }

    /// Returns how many values there are, itself among them.
    pub(crate) fn count(&self) -> usize {
        1 + self.children().map(Node::count).sum::<usize>()
    }

    /// Returns how deep values nest here: 1 where there are none inside.
    pub(crate) fn height(&self) -> usize {
        1 + self.children().map(Node::height).max().unwrap_or(0)
    }
}
