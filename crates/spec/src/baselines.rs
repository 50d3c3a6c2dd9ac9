//! What kernels are compared with on a device: torch, torch.compile in its modes, and functions of the workspace and of installed modules.
//!
//! It does not know whether a function is there, nor what it computes.

use serde::Serialize;
use t2t_model::problem::Position;

use super::layers::Layers;
use super::names::OWN;
use super::node::Node;
use super::reader::Reader;

/// Those whose figures every document of a baseline has a place for.
const FIRST: [&str; 2] = ["torch", "torch.compile"];

/// What kernels are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Baseline {
    /// Torch itself, in one of the ways that the table of names names.
    Own(String),
    /// A function that stands in torch's place.
    Function(BaselineFunction),
}

/// A function that is called as torch's is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BaselineFunction {
    /// What it is called in tables and documents.
    pub name: String,
    /// The Python file that has it, relative to the workspace; none of a function of an installed module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its name in the file, or its dotted name with that of its module.
    pub function: String,
    /// Where ops.yaml names it.
    #[serde(skip)]
    pub place: Position,
}

impl Baseline {
    /// Returns what it is called in tables and documents.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Own(name) => name,
            Self::Function(function) => &function.name,
        }
    }

    /// Returns the function, if it is one.
    #[must_use]
    pub fn function(&self) -> Option<&BaselineFunction> {
        match self {
            Self::Own(_) => None,
            Self::Function(function) => Some(function),
        }
    }

    /// Returns whether a result of it is judged before it is timed. Eager torch is what is right, and torch.compile in its default mode is taken for it.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        !FIRST.contains(&self.name())
    }
}

impl BaselineFunction {
    /// Returns the topmost package or module of a function of an installed module.
    #[must_use]
    pub fn package(&self) -> Option<&str> {
        self.file.is_none().then(|| self.function.split('.').next().unwrap_or_default())
    }
}

impl Reader<'_, '_> {
    /// Returns the baselines that count in these layers. None where one could not be read.
    pub(crate) fn baselines(&mut self, layers: &Layers) -> Option<Vec<Baseline>> {
        let node = layers.get(&["bench", "baselines"])?;
        if !node.items().iter().any(|item| item.text() == Some("torch")) {
            self.fault(node.place, "the baselines lack `torch`", "add `torch`: a speedup is measured against it");
        }
        let variants = layers.get(&["variants"]).map_or(&[][..], Node::items).iter();
        let variants: Vec<&str> =
            variants.filter_map(|item| item.text().or_else(|| item.get("name").and_then(Node::text))).collect();
        let mut found: Vec<Baseline> = Vec::new();
        for item in node.items() {
            let one = baseline(item)?;
            if let Some(function) = one.function() {
                let name = function.name.as_str();
                let other = if OWN.contains(&name) || found.iter().any(|other| other.name() == name) {
                    Some("another baseline")
                } else {
                    variants.contains(&name).then_some("a variant")
                };
                if let Some(other) = other {
                    let message = format!("baseline `{name}` has the name of {other}");
                    self.fault(item.place, &message, "name it: `{name: NAME, function: …}`");
                }
            }
            found.push(one);
        }
        Some(found)
    }
}

fn baseline(node: &Node) -> Option<Baseline> {
    let place = node.place;
    let (name, function) = match node.text() {
        Some(own) if OWN.contains(&own) => return Some(Baseline::Own(own.to_owned())),
        Some(text) => (text.split_once("::")?.1, text),
        None => (node.get("name")?.text()?, node.get("function")?.text()?),
    };
    let (file, function) = match function.split_once("::") {
        Some((file, function)) => (Some(file.to_owned()), function),
        None => (None, function),
    };
    Some(Baseline::Function(BaselineFunction { name: name.to_owned(), file, function: function.to_owned(), place }))
}
