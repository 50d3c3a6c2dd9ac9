//! The layers of settings that lie over each other for one op on one lane, and what is seen from above.
//!
//! It knows the order of layers, and not what the settings mean.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use t2t_model::problem::Position;

use super::fields::{Absent, Kind, Merge, Section};
use super::node::{Entry, Node, Value};
use super::parse::parse;

/// The built-in values of everything an op can say, from the table of fields.
static BUILT_IN: LazyLock<Node> = LazyLock::new(|| defaults(Section::Op));

/// The built-in CPU profile, from the same table.
static BUILT_IN_CPU: LazyLock<Node> =
    LazyLock::new(|| defaults(Section::Profiles).get("cpu").cloned().unwrap_or_else(nothing));

/// Whose settings a layer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The op's own: all of it must fit the op.
    Op,
    /// What is said for all ops: what an op has no use for is no mistake.
    All,
}

/// What messages call the profile that is there without being written.
pub(super) const CPU_PROFILE: &str = "the built-in CPU profile";

/// One layer, with what messages call it.
#[derive(Clone, Copy)]
pub(super) struct Layer<'tree> {
    pub(crate) owner: Owner,
    pub(crate) name: &'static str,
    pub(crate) node: &'tree Node,
}

/// Layers from the top down.
#[derive(Clone)]
pub(super) struct Layers<'tree>(Vec<Layer<'tree>>);

impl<'tree> Layers<'tree> {
    /// Returns the layers of an op without a profile.
    pub(crate) fn of(root: &'tree Node, op: &'tree Node) -> Layers<'tree> {
        let layers = [
            (Owner::Op, "its own settings", Some(op)),
            (Owner::All, "`defaults`", root.get("defaults")),
            (Owner::All, "the built-in defaults", Some(&*BUILT_IN)),
        ];
        Layers(present(&layers))
    }

    /// Returns the layers of an op on the CPU: the profiles above everything else.
    pub(crate) fn on_cpu(root: &'tree Node, op: &'tree Node) -> Layers<'tree> {
        let profiles = [
            (Owner::Op, "its CPU profile", op.at(&["profiles", "cpu"])),
            (Owner::All, "`profiles.cpu`", root.at(&["profiles", "cpu"])),
            (Owner::All, CPU_PROFILE, Some(&*BUILT_IN_CPU)),
        ];
        Layers([present(&profiles), Layers::of(root, op).0].concat())
    }

    /// Returns the value at `path` that counts, and the layer that has it.
    pub(crate) fn find(&self, path: &[&str]) -> Option<(Layer<'tree>, &'tree Node)> {
        self.0.iter().find_map(|layer| Some((*layer, layer.node.at(path)?)))
    }

    /// Returns the value at `path` that counts.
    pub(crate) fn get(&self, path: &[&str]) -> Option<&'tree Node> {
        self.find(path).map(|(_, node)| node)
    }

    /// Returns the layers from the bottom up, for what is merged by key.
    pub(crate) fn upward(&self) -> impl Iterator<Item = Layer<'tree>> + '_ {
        self.0.iter().rev().copied()
    }
}

fn present<'tree>(layers: &[(Owner, &'static str, Option<&'tree Node>)]) -> Vec<Layer<'tree>> {
    layers.iter().filter_map(|&(owner, name, node)| node.map(|node| Layer { owner, name, node })).collect()
}

/// Returns the tree of a section's defaults. Sections that merge by key bring their own fields' defaults along.
fn defaults(section: Section) -> Node {
    let fields = section.fields().filter_map(|field| {
        let node = match (field.absent, field.kind, field.merge) {
            (Absent::Value("{}") | Absent::Words(_), Kind::Section(inner), Merge::ByKey)
                if inner != Section::Profiles =>
            {
                defaults(inner)
            }
            (Absent::Value(json), ..) => parse(json, &mut Vec::new()).expect("the table's defaults are YAML"),
            _ => return None,
        };
        Some((field.key.to_owned(), node))
    });
    let fields: BTreeMap<String, Node> = inherited(section).into_iter().chain(fields).collect();
    let entries = fields.into_iter().map(|(key, node)| Entry { key, place: BEGINNING, node }).collect();
    Node { place: BEGINNING, value: Value::Map(entries) }
}

/// An op inherits from `defaults` what it does not say itself.
fn inherited(section: Section) -> BTreeMap<String, Node> {
    match section {
        Section::Op => {
            defaults(Section::Defaults).entries().iter().map(|entry| (entry.key.clone(), entry.node.clone())).collect()
        }
        _ => BTreeMap::new(),
    }
}

const BEGINNING: Position = Position { line: 1, column: 1 };

fn nothing() -> Node {
    Node { place: BEGINNING, value: Value::Nothing }
}
