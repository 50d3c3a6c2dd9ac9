//! The variants of an op: names, files, entries.
//!
//! It does not know whether the files exist.

use std::collections::BTreeMap;

use t2t_model::problem::Position;

use super::authors::{NONE, known_generator};
use super::fault::Fault;
use super::inputs::texts;
use super::layers::Layers;
use super::names::Form;
use super::node::Node;
use super::reader::{Reader, same_but_for_case};
use super::{Methods, Variant};

/// The language of kernels in CUDA C++, and the lane that they run on.
const CUDA: &str = "cuda";

/// The keys that say where a variant's code is.
const HOMES: [&str; 3] = ["file", "path", "module"];

impl Reader<'_, '_> {
    /// Returns the variants in declared order, or none where one of them could not be read.
    pub(crate) fn variants(&mut self, layers: &Layers) -> Option<Vec<Variant>> {
        let nodes = layers.get(&["variants"])?.items();
        self.declared_twice(nodes);
        let deterministic = layers.get(&["deterministic"])?.flag()?;
        _ = self.call(&self.entry.node);
        let methods = self.methods(&self.entry.node);
        let named = nodes.iter().chain([&self.entry.node]).map(|node| node.get("generator"));
        named.for_each(|named| known_generator(self.root, named, self.faults));
        let variants: Vec<Option<Variant>> =
            nodes.iter().map(|node| self.variant(node, methods.as_ref(), deterministic)).collect();
        if nodes.iter().any(|node| node.get("entry").is_none()) {
            self.entry_is_callable();
        }
        variants.into_iter().collect()
    }

    fn variant(&mut self, node: &Node, methods: Option<&Methods>, deterministic: bool) -> Option<Variant> {
        self.has_one_home(node);
        let is_cuda = node.get("lang").and_then(Node::text) == Some(CUDA);
        self.fits_its_language(node, is_cuda);
        self.is_written_in_the_workspace(node);
        let own_methods = self.methods(node);
        // A variant that says either says how it is called; the op's word for the other does not hold for it.
        let says = node.get("call").is_some() || node.get("methods").is_some();
        let of_op = if says { None } else { Some(&self.entry.node) };
        let call = self.call(node).or_else(|| of_op?.get("call")?.text().map(str::to_owned));
        let methods = own_methods.or_else(|| methods.filter(|_| !says).cloned());
        let name = name(node)?;
        let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
        let below = |file: String| format!("kernels/{}/{file}", self.entry.key);
        let module = text("module");
        let generator = text("generator").or_else(|| self.entry.node.get("generator")?.text().map(str::to_owned));
        let generator = generator.filter(|name| name != NONE && module.is_none() && !is_cuda);
        let named = module.clone().or_else(|| text("path")).or_else(|| text("file").map(below));
        let ending = if is_cuda { "cu" } else { "py" };
        let named = named.unwrap_or_else(|| below(format!("{name}.{ending}")));
        // A Python file has torch build the CUDA C++ in it.
        let is_inline = is_cuda && named.strip_suffix(".py").is_some();
        let operator = || {
            let own = text("operator").map(|file| if text("path").is_some() { file } else { below(file) });
            own.unwrap_or_else(|| format!("{}.py", named.trim_end_matches(".cu")))
        };
        Some(Variant {
            name: name.to_owned(),
            file: if is_cuda && !is_inline { operator() } else { named.clone() },
            module,
            cuda: is_cuda.then_some(named),
            call,
            methods,
            entry: text("entry").unwrap_or_else(|| self.entry_name()),
            lanes: if is_cuda { vec![CUDA.to_owned()] } else { lanes(node) },
            deterministic: node.get("deterministic").and_then(Node::flag).unwrap_or(deterministic),
            generator,
        })
    }

    fn has_one_home(&mut self, node: &Node) {
        let homes: Vec<_> = node.entries().iter().filter(|entry| HOMES.contains(&entry.key.as_str())).collect();
        if let [first, second, ..] = homes.as_slice() {
            let message = format!("a variant has `{}` and `{}`", first.key, second.key);
            let hint =
                "keep one: `file` lies in `kernels/<op>/`, `path` anywhere in the workspace, `module` is installed";
            self.fault(second.place, &message, hint);
        }
    }

    fn entry_name(&self) -> String {
        let own = self.entry.node.get("entry").and_then(Node::text);
        own.map_or_else(|| format!("triton_{}", self.entry.key), str::to_owned)
    }

    fn entry_is_callable(&mut self) {
        let name = self.entry_name();
        let stated = self.entry.node.get("entry").is_some() || !Form::Name.fits(&self.entry.key);
        if !stated && !Form::Identifier.fits(&name) {
            let hint = format!("add `entry: {}`", name.replace('-', "_"));
            self.fault(self.entry.place, &format!("its entry `{name}` would be no Python identifier"), hint);
        }
    }

    fn declared_twice(&mut self, nodes: &[Node]) {
        let names = || nodes.iter().filter_map(|node| Some((name(node)?, node.place)));
        let mut first: BTreeMap<&str, Position> = BTreeMap::new();
        for (name, place) in names() {
            match first.get(name) {
                Some(earlier) => {
                    let fault = Fault::new(place, format!("variant `{name}` is declared twice"));
                    self.faults.push(fault.hint(format!("the first is in line {}", earlier.line)));
                }
                None => _ = first.insert(name, place),
            }
        }
        same_but_for_case(names(), "variant", self.faults);
    }

    /// What is declared of a variant must be of its language: kernels in CUDA C++ are two files, both a person's, and run on a device alone.
    fn fits_its_language(&mut self, node: &Node, is_cuda: bool) {
        let named = ["file", "path"].iter().find_map(|key| node.get(key));
        let ends_in = |node: &Node, ending: &str| node.text().is_some_and(|text| text.ends_with(ending));
        if !is_cuda {
            if let Some(file) = named.filter(|file| ends_in(file, ".cu")) {
                self.fault(file.place, "a `.cu` is no kernel file in Triton", "add `lang: cuda`");
            }
            if let Some(operator) = node.get("operator") {
                self.fault(operator.place, "`operator` is of variants in CUDA C++", "add `lang: cuda`, or remove it");
            }
            return;
        }
        let is_inline = named.is_some_and(|file| ends_in(file, ".py"));
        if let Some(file) = named.filter(|file| !is_inline && !ends_in(file, ".cu")) {
            let hint =
                "name the `.cu`, whose kernels a Python file launches, or the Python file that calls `load_inline`";
            self.fault(file.place, "the file of a variant in CUDA C++ ends in neither `.cu` nor `.py`", hint);
        }
        if let Some(operator) = node.get("operator").filter(|_| is_inline) {
            let hint = "keep one: a Python file with CUDA C++ in it has the wrapper, too";
            self.fault(operator.place, "a variant has a Python file and `operator`", hint);
        } else if let Some(operator) = node.get("operator").filter(|operator| !ends_in(operator, ".py")) {
            self.fault(operator.place, "`operator` does not end in `.py`", "name the Python file that has the wrapper");
        }
        if let Some(module) = node.get("module") {
            let hint = "keep one: nvcc compiles a file of the workspace, `module` is installed";
            self.fault(module.place, "a variant has `lang: cuda` and `module`", hint);
        }
        if let Some(generator) = node.get("generator").filter(|generator| generator.text() != Some(NONE)) {
            let hint = "remove `generator`: generators write Triton";
            self.fault(generator.place, "a variant has `lang: cuda` and `generator`", hint);
        }
        if let Some(lanes) = node.get("lanes").filter(|lanes| texts(lanes).iter().any(|lane| lane != CUDA)) {
            let hint = "remove `lanes`: without a device such a variant is compiled and not judged";
            self.fault(lanes.place, "CUDA C++ runs on a CUDA device alone", hint);
        }
    }

    /// What is installed is nobody's to write.
    fn is_written_in_the_workspace(&mut self, node: &Node) {
        let generator = node.get("generator").filter(|generator| generator.text() != Some(NONE));
        if let (Some(generator), Some(_)) = (generator, node.get("module")) {
            let hint = "keep one: a generator writes a file of the workspace, `module` is installed";
            self.fault(generator.place, "a variant has `generator` and `module`", hint);
        }
    }
}

fn name(node: &Node) -> Option<&str> {
    node.text().or_else(|| node.get("name")?.text())
}

/// Returns the lanes in one order, whatever order they were written in.
fn lanes(node: &Node) -> Vec<String> {
    let given = node.get("lanes").map(texts);
    let is_given = |lane: &&str| given.as_ref().is_none_or(|given| given.iter().any(|one| one == lane));
    ["interpreter", "cuda"].into_iter().filter(is_given).map(str::to_owned).collect()
}
