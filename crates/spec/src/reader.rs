//! What the readers of an op's parts have in common: the op they read, and how they say what is wrong with it.
//!
//! It does not know what an op consists of.

use std::collections::{BTreeMap, BTreeSet};

use t2t_model::problem::Position;

use super::fault::Fault;
use super::layers::Layers;
use super::node::{Entry, Node};

/// Reads one op. Its methods are in `inputs`, `variants`, `settings` and `check`, each for its part.
pub(super) struct Reader<'tree, 'faults> {
    pub(crate) root: &'tree Node,
    pub(crate) entry: &'tree Entry,
    pub(crate) faults: &'faults mut Vec<Fault>,
    /// Where the file's values are not of their types.
    pub(crate) nonconforming: &'tree BTreeSet<Position>,
}

impl Reader<'_, '_> {
    /// Returns whether all that `layers` have under `keys` is of its type. What is not is read as if it were absent, and what then does not fit is no second mistake.
    pub(crate) fn conforms(&self, layers: &Layers, keys: &[&str]) -> bool {
        let has_fault = |node: &Node| node.has_any(self.nonconforming);
        self.nonconforming.is_empty()
            || !layers.upward().any(|layer| keys.iter().filter_map(|key| layer.node.get(key)).any(has_fault))
    }

    /// Notes a fault of this op at a place.
    pub(crate) fn fault(&mut self, place: Position, message: &str, hint: impl Into<String>) {
        self.faults.push(Fault::new(place, format!("op `{}`: {message}", self.entry.key)).hint(hint));
    }
}

/// Notes names that a file system without upper and lower case takes for one.
pub(super) fn same_but_for_case<'names>(
    names: impl Iterator<Item = (&'names str, Position)>,
    what: &str,
    faults: &mut Vec<Fault>,
) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (name, place) in names {
        match seen.get(&name.to_lowercase()) {
            Some(first) if *first != name => {
                let fault = Fault::new(place, format!("{what} `{name}` differs from {what} `{first}` only in case"));
                faults.push(fault.hint("some file systems cannot hold both: choose another name"));
            }
            _ => _ = seen.insert(name.to_lowercase(), name),
        }
    }
}
