//! The reference of an op in Python: the file and the function or class that is right by definition.
//!
//! It does not know whether the file exists, nor what it defines.

use std::collections::BTreeMap;

use serde::Serialize;

use super::fault::Fault;
use super::json::json;
use super::names::{Form, nearest};
use super::node::{Node, Value};
use super::reader::Reader;
use super::torch::{TorchName, TorchNames, resolve};

/// What stands in the place of a torch function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// Relative to the workspace, with `/`.
    pub file: String,
    /// A function, or a class that is constructed and then called.
    pub name: String,
    /// The keyword arguments of the class's constructor. A text that is a dim's name means its length.
    pub init: BTreeMap<String, serde_json::Value>,
}

impl Reader<'_, '_> {
    /// Returns what the op is: either its torch function or its reference. None where it could not be read.
    pub(crate) fn operation(&mut self, names: Option<&TorchNames>) -> Option<(Option<TorchName>, Option<Reference>)> {
        let node = &self.entry.node;
        match (node.get("torch"), node.get("reference")) {
            (Some(torch), None) => self.torch(torch, names).map(|name| (Some(name), None)),
            (None, Some(found)) => reference(found).map(|reference| (None, Some(reference))),
            (Some(_), Some(second)) => {
                self.fault(second.place, "it has a torch function and a reference", "remove one of the two");
                None
            }
            (None, None) => {
                self.has_neither();
                None
            }
        }
    }

    fn torch(&mut self, node: &Node, names: Option<&TorchNames>) -> Option<TorchName> {
        let written = node.text().filter(|text| Form::Torch.fits(text))?;
        let nearest = match resolve(written, names) {
            Ok(name) => return Some(name),
            Err(nearest) => nearest,
        };
        let hint = match nearest {
            Some(near) => format!("did you mean `{near}`?"),
            None => Form::Torch.hint(written),
        };
        self.fault(node.place, &format!("torch has no function `{written}`"), hint);
        None
    }

    /// A misspelt `torch` or `reference` is one mistake, which is reported already.
    fn has_neither(&mut self) {
        let node = &self.entry.node;
        let is_misspelt = |key: &str| nearest(key, ["torch", "reference"]).is_some();
        if matches!(node.value, Value::Map(_)) && !node.entries().iter().any(|entry| is_misspelt(&entry.key)) {
            let fault =
                Fault::new(self.entry.place, format!("op `{}` has neither torch nor reference", self.entry.key));
            let hint = "add `torch: torch.nn.functional.softmax`, or `reference: FILE.py::FUNCTION`";
            self.faults.push(fault.hint(hint));
        }
    }
}

fn reference(node: &Node) -> Option<Reference> {
    let (file, name) = match node.text() {
        Some(text) => text.split_once("::").map(|(file, name)| (file.to_owned(), name.to_owned()))?,
        None => (node.get("file")?.text()?.to_owned(), node.get("name")?.text()?.to_owned()),
    };
    let entries = node.get("init").map_or(&[][..], Node::entries);
    let init = entries.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect();
    Some(Reference { file, name, init })
}
