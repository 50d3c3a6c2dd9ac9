//! What counts for an op on one lane: dtypes, sizes, tolerances, protocol.
//!
//! It sees the layers from above and does not know the text they come from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::built_in::{self, LengthHints};
use super::expression::Expression;
use super::inits::quantities;
use super::inputs::texts;
use super::layers::{self, Layer, Layers, Owner};
use super::names::{self, suggestion};
use super::node::{Entry, Node};
use super::reader::Reader;
use super::sizes::{Dims, Misfit};
use super::{Binding, Dim, Input, Passes, Profile, Protocol, Quantity, Settings, StopRule};

/// The dims that an op uses.
pub(super) struct Uses {
    /// Those that need a length, in order of appearance: in shapes, then in inits.
    needed: Vec<String>,
    /// Strings in kwargs: dims where a length is declared for them, else just strings.
    possible: BTreeSet<String>,
    /// The lengths of shapes.
    shapes: Vec<Expression>,
    /// The whole numbers among the kwargs.
    numbers: Vec<u64>,
}

impl Uses {
    pub(crate) fn of(inputs: &[Input], kwargs: &BTreeMap<String, Value>) -> Uses {
        let tensors = || inputs.iter().filter_map(Input::tensor);
        let shapes = tensors().flat_map(|tensor| &tensor.shape).filter_map(|dim| match dim {
            Dim::Of(expression) => Some(expression.clone()),
            Dim::Length(_) => None,
        });
        let inits = tensors().flat_map(|tensor| quantities(&tensor.init)).filter_map(|quantity| match quantity {
            Quantity::Of(text) => Expression::parse(text),
            _ => None,
        });
        let dims = |expression: Expression| expression.dims().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let shapes: Vec<Expression> = shapes.collect();
        let needed = shapes.iter().cloned().chain(inits).flat_map(dims).collect();
        let mut possible = BTreeSet::new();
        for value in kwargs.values() {
            strings(value, &mut possible);
        }
        Uses { needed, possible, shapes, numbers: kwargs.values().filter_map(Value::as_u64).collect() }
    }

    /// Returns these dims and those kwargs strings that the op's own sizes name: a size is what makes such a string a dim.
    pub(crate) fn named_by(self, layers: &Layers) -> Uses {
        let paths = [["bench", "sizes"], ["check", "sizes"]];
        let own = layers.upward().filter(|layer| layer.owner == Owner::Op);
        let sizes = own.flat_map(|layer| paths.iter().filter_map(move |path| layer.node.at(path)));
        let named: Vec<String> = sizes
            .flat_map(Node::entries)
            .flat_map(|size| size.node.entries())
            .map(|entry| entry.key.clone())
            .filter(|dim| self.possible.contains(dim) && !self.needed.contains(dim))
            .collect();
        Uses { needed: self.needed.into_iter().chain(named).collect(), ..self }
    }

    /// Adds the uses in further arguments, where strings mean the same as in kwargs.
    pub(crate) fn also(mut self, arguments: &BTreeMap<String, Value>) -> Uses {
        for value in arguments.values() {
            strings(value, &mut self.possible);
        }
        self
    }

    fn contains(&self, dim: &String) -> bool {
        self.needed.contains(dim) || self.possible.contains(dim)
    }
}

impl Reader<'_, '_> {
    /// Returns the settings that count under `profile`, whose layers these are.
    pub(crate) fn settings(&mut self, layers: &Layers, uses: &Uses, profile: Profile) -> Option<Settings> {
        let dims = Dims::new(&uses.needed, self.fixed(layers, uses));
        let sizes = self.sizes(layers, &dims, ["bench", "sizes"])?;
        let is_built_in = layers.find(&["bench", "sizes"]).is_some_and(|(layer, _)| layer.name == layers::CPU_PROFILE);
        let sizes =
            if is_built_in { built_in::fitted(sizes, &dims.free, &length_hints(layers, &dims, uses)) } else { sizes };
        let check_sizes = match layers.get(&["check", "sizes"]) {
            Some(_) => self.sizes(layers, &dims, ["check", "sizes"])?,
            None => default_check_sizes(&sizes, profile),
        };
        let baselines = self.baselines(layers);
        self.pass_is_judged(layers);
        let fixed = dims.fixed.keys().cloned().collect();
        let time = |path: [&str; 2]| names::duration(layers.get(&path)?.text()?);
        let dtypes = layers.get(&["dtypes"]).map(texts)?;
        Some(Settings {
            tolerances: tolerances(layers, &dtypes),
            dtypes,
            sizes,
            check_sizes,
            edges: edges_off(layers),
            fixed,
            seeds: layers.get(&["check", "seeds"])?.whole()?,
            max_retries: layers.get(&["check", "max_retries"])?.whole()?,
            check_timeout: time(["check", "timeout"])?,
            protocol: protocol(layers)?,
            baselines: baselines?,
            bench_timeout: time(["bench", "timeout"])?,
        })
    }

    /// Returns the lengths that `dims` gives, layer over layer. Of what is said for all ops, an op takes the dims it uses.
    fn fixed(&mut self, layers: &Layers, uses: &Uses) -> Binding {
        let mut fixed = Binding::new();
        for layer in layers.upward() {
            for entry in layer.node.get("dims").map_or(&[][..], Node::entries) {
                // What `cases.py` does with a dim cannot be seen from here.
                let is_used = uses.contains(&entry.key) || self.entry.node.get("cases").is_some();
                match (layer.owner, is_used, entry.node.whole()) {
                    (_, true, Some(length)) => _ = fixed.insert(entry.key.clone(), length),
                    (Owner::Op, false, _) => {
                        let hint = suggestion(&entry.key, uses.needed.iter().map(String::as_str));
                        self.fault(entry.place, &format!("nothing uses dim `{}`", entry.key), hint);
                    }
                    _ => {}
                }
            }
        }
        fixed
    }

    /// Binds the size set at `path`. None where a size does not fit.
    fn sizes(&mut self, layers: &Layers, dims: &Dims, path: [&'static str; 2]) -> Option<BTreeMap<String, Binding>> {
        let (layer, node) = layers.find(&path)?;
        if !node.has_any(self.nonconforming) && node.entries().is_empty() {
            let hint = "give it a size, as in `{small: [256, 256]}`";
            self.fault(node.place, &format!("`{}.sizes` is empty", path[0]), hint);
        }
        let mut bound = BTreeMap::new();
        for entry in node.entries() {
            match dims.bind(&entry.node, layer.owner) {
                Ok(binding) => _ = bound.insert(entry.key.clone(), binding),
                Err(misfit) if layer.owner == Owner::Op => {
                    let message = format!("size `{}` {}", entry.key, misfit.reason);
                    self.fault(entry.node.place, &message, misfit.hint);
                }
                // A size that is there for all ops is no mistake where it stands; the op lacks one. Said once, not per size.
                Err(misfit) => {
                    self.lacks_sizes(layer, &entry.key, &misfit, dims, path[0]);
                    return None;
                }
            }
        }
        (bound.len() == node.entries().len()).then_some(bound)
    }

    fn lacks_sizes(&mut self, layer: Layer, size: &str, misfit: &Misfit, dims: &Dims, section: &str) {
        let message = format!("size `{size}` of {} {}", layer.name, misfit.reason);
        let example = format!("{section}: {{sizes: {{{size}: {}}}}}", dims.example());
        self.fault(
            self.entry.place,
            &message,
            format!("add `{example}` with the op's other sizes, or lengths under `dims`"),
        );
    }

    /// Only what a check judges is measured. Of random ops it judges no gradient but that of dropout, by the results of both passes.
    fn pass_is_judged(&mut self, layers: &Layers) {
        let Some((layer, node)) = layers.find(&["bench", "pass"]) else { return };
        let Some(pass) = node.text().filter(|pass| *pass != "forward") else { return };
        let place = if layer.owner == Owner::Op { node.place } else { self.entry.place };
        if layers.get(&["backward"]).and_then(Node::flag) != Some(true) {
            let message = format!("`pass: {pass}` would measure gradients that no check judges");
            self.fault(place, &message, "add `backward: true` to the op, or `bench: {pass: forward}`");
        } else if self.entry.node.get("random").is_some() {
            let message = format!("`pass: {pass}` would measure gradients of random results, which are not told apart");
            self.fault(place, &message, "a random op is measured with `pass: forward`");
        }
    }
}

/// Returns what an op's entry says of the lengths that it takes. A size of its own that does not fit is said where it counts.
fn length_hints(layers: &Layers, dims: &Dims, uses: &Uses) -> LengthHints {
    let own = layers.upward().filter(|layer| layer.owner == Owner::Op);
    let nodes = own.flat_map(|layer| ["bench", "check"].map(|section| layer.node.at(&[section, "sizes"])));
    let entries = nodes.flatten().flat_map(Node::entries);
    let sizes = entries.filter_map(|entry| dims.bind(&entry.node, Owner::Op).ok()).collect();
    LengthHints { sizes, shapes: uses.shapes.clone(), numbers: uses.numbers.clone() }
}

/// Checks run on the small size, and where there is a GPU also on the medium one. Without a small one, on the smallest there is.
fn default_check_sizes(sizes: &BTreeMap<String, Binding>, profile: Profile) -> BTreeMap<String, Binding> {
    let declared: Vec<&str> =
        ["small", "medium", "large"].into_iter().filter(|size| sizes.contains_key(*size)).collect();
    let checked = match (profile, declared.as_slice()) {
        (Profile::Cuda, ["small", "medium", ..]) => 2,
        _ => 1,
    };
    let binding = |size: &str| sizes.get(size).map(|binding| (size.to_owned(), binding.clone()));
    declared.into_iter().take(checked).filter_map(binding).collect()
}

fn protocol(layers: &Layers) -> Option<Protocol> {
    let whole = |key: &str| layers.get(&["bench", key])?.whole();
    let is_auto = layers.get(&["bench", "stop"])?.text()? == "auto";
    let stop = is_auto.then_some(StopRule::Auto);
    let passes = match layers.get(&["bench", "pass"])?.text()? {
        "backward" => Some(Passes::Backward),
        "both" => Some(Passes::Both),
        _ => None,
    };
    Some(Protocol { runs: whole("runs")?, warmup_ms: whole("warmup_ms")?, rep_ms: whole("rep_ms")?, stop, passes })
}

fn tolerances(layers: &Layers, dtypes: &[String]) -> BTreeMap<String, [f64; 2]> {
    let mut tolerances: BTreeMap<String, [f64; 2]> = dtypes.iter().map(|dtype| (dtype.clone(), [0.0; 2])).collect();
    for check in layers.upward().filter_map(|layer| layer.node.get("check")) {
        let float32 = tolerances.entry("float32".to_owned()).or_default();
        for (slot, key) in float32.iter_mut().zip(["atol", "rtol"]) {
            *slot = check.get(key).and_then(Node::number).unwrap_or(*slot);
        }
        for entry in check.get("tolerances").map_or(&[][..], Node::entries) {
            tolerances.extend(tolerance(entry));
        }
    }
    tolerances
}

/// Returns a dtype and its `[atol, rtol]`.
pub(super) fn tolerance(entry: &Entry) -> Option<(String, [f64; 2])> {
    let pair: Vec<f64> = entry.node.items().iter().filter_map(Node::number).collect();
    Some((entry.key.clone(), pair.try_into().ok()?))
}

/// Returns the strings in a value, and the dims that expressions in it name.
pub(crate) fn strings(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
            let expression = Expression::parse(text);
            found.extend(expression.iter().flat_map(Expression::dims).map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(entries) => entries.values().for_each(|item| strings(item, found)),
        _ => {}
    }
}

/// Returns the edges that are off, each with its reason if there is one, layer over layer. Rows with memory between them are strided tensors, too: `padded` is as `strided` is where nothing is said of it.
fn edges_off(layers: &Layers) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    let mut is_on = false;
    for entry in layers.upward().filter_map(|layer| layer.node.at(&["check", "edges"])).flat_map(Node::entries) {
        if entry.key == "padded" {
            is_on = entry.node.text() == Some("on");
        }
        if entry.node.text() == Some("on") {
            found.remove(&entry.key);
        } else {
            found.insert(entry.key.clone(), entry.node.get("off").and_then(Node::text).map(str::to_owned));
        }
    }
    if let (Some(reason), false) = (found.get("strided").cloned(), is_on) {
        found.entry("padded".to_owned()).or_insert(reason);
    }
    found
}
