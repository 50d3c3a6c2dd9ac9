//! Makes a [`Spec`] of a tree, and checks what must hold between values: names, dims, sizes, variants.
//!
//! It relies on `conform` for types: a value of the wrong type has been reported there and is passed over here without a word.

use std::collections::{BTreeMap, BTreeSet};

use t2t_model::problem::Position;
use t2t_model::signature::{Trust, TrustedKey};

use super::conform::conform;
use super::executor::Executor;
use super::fault::Fault;
use super::fields::DTYPES;
use super::json::json;
use super::layers::Layers;
use super::names::{nearest, suggestion};
use super::node::{Node, Value};
use super::reader::{Reader, same_but_for_case};
use super::remote::{Mode, Remote, RemoteUrl};
use super::torch::{TorchName, TorchNames};
use super::{Op, Precision, Profile, Spec, VERSION, authors, inputs, settings};

/// Returns the spec in `root`, or none where `faults` says why not. Faults are noted even beside a spec.
pub(super) fn check(root: &Node, names: Option<&TorchNames>, faults: &mut Vec<Fault>) -> Option<Spec> {
    if let Some(fault) = unreadable(root) {
        faults.push(fault);
        return None;
    }
    conform(root, faults);
    let nonconforming: BTreeSet<Position> = faults.iter().map(|fault| fault.place).collect();
    let entries = root.get("ops").map_or(&[][..], Node::entries);
    let nonconforming = &nonconforming;
    let read = |entry| Reader { root, entry, faults, nonconforming }.op(names);
    let ops: Vec<Option<Op>> = entries.iter().map(read).collect();
    same_but_for_case(entries.iter().map(|entry| (entry.key.as_str(), entry.place)), "op", faults);
    tolerances_given_twice(root, faults);
    tolerances_of_integers(root, faults);
    let ops: Vec<Op> = ops.into_iter().collect::<Option<_>>()?;
    unused_profile_dims(root, &ops, faults);
    let targets = root.get("targets").map(inputs::texts).unwrap_or_default();
    let authors = authors::authors(root, faults);
    let executor = root.get("executor").and_then(Node::text).and_then(Executor::parse);
    Some(Spec::new(targets, (remote(root), executor), trust(root, faults), sources(root, faults), authors, ops))
}

/// Returns the folders that kernels import from and read. t2t's own folders and hidden ones are refused.
fn sources(root: &Node, faults: &mut Vec<Fault>) -> Vec<String> {
    for item in root.get("sources").map_or(&[][..], Node::items) {
        let folder = item.text().unwrap_or_default();
        let is_hidden = |part: &&str| part.starts_with('.') && ![".", ".."].contains(part);
        if let Some(part) = folder.split('/').find(is_hidden) {
            let fault = Fault::new(item.place, format!("`sources` names `{folder}`: `{part}` is hidden"));
            faults.push(fault.hint("kernels read what is not hidden: move it to another folder"));
        } else if ["cache", "logs"].contains(&folder.split('/').next().unwrap_or_default()) {
            let fault = Fault::new(item.place, format!("`sources` names `{folder}`, which t2t makes"));
            faults.push(fault.hint("name folders whose files kernels import or read"));
        }
    }
    root.get("sources").map(inputs::texts).unwrap_or_default()
}

/// Returns the keys that are trusted; one under two names would leave open who signed.
fn trust(root: &Node, faults: &mut Vec<Fault>) -> Trust {
    let mut keys: Vec<TrustedKey> = Vec::new();
    for item in root.get("trust").map_or(&[][..], Node::items) {
        let Some(key) = item.text().and_then(|line| TrustedKey::parse(line).ok()) else { continue };
        match keys.iter().find(|other| other.is_same_key(&key)) {
            Some(other) if *other != key => {
                let (first, second) = (other.signer().name, key.signer().name);
                let fault =
                    Fault::new(item.place, format!("`trust` names one key twice: as `{first}` and as `{second}`"));
                faults.push(fault.hint("a key has one holder: remove one of the two"));
            }
            // The same line twice is told of where all sets are looked at.
            Some(_) => {}
            None => keys.push(key),
        }
    }
    Trust::of(keys)
}

fn remote(root: &Node) -> Option<Remote> {
    let place = root.at(&["cache", "remote"]).and_then(Node::text).and_then(RemoteUrl::parse)?;
    let mode = root.at(&["cache", "mode"]).and_then(Node::text).and_then(Mode::of).unwrap_or(Mode::ReadWrite);
    Some(Remote { place, mode })
}

/// Returns why the rest of the file should not be looked at: of another version, every key could mean something else.
fn unreadable(root: &Node) -> Option<Fault> {
    if root.value == Value::Nothing {
        return Some(Fault::new(root.place, "the file is empty").hint(format!("begin with `version: {VERSION}`")));
    }
    match root.get("version") {
        Some(Node { place, value: Value::Whole(version) }) if *version != VERSION => {
            let fault = Fault::new(*place, format!("version {version} is not supported"));
            Some(fault.hint(format!("this t2t reads `version: {VERSION}`")))
        }
        _ => None,
    }
}

/// `atol` and `rtol` are float32's, so its tolerances can be written in two ways; both at once could disagree.
fn tolerances_given_twice(root: &Node, faults: &mut Vec<Fault>) {
    for check in checks(root) {
        let scalar = check.get("atol").or_else(|| check.get("rtol"));
        if let (Some(_), Some(float32)) = (scalar, check.at(&["tolerances", "float32"])) {
            let fault = Fault::new(float32.place, "the tolerances of float32 are given twice");
            faults.push(fault.hint("`atol` and `rtol` are float32's: remove them, or this"));
        }
    }
}

fn ops(root: &Node) -> impl Iterator<Item = &Node> {
    root.get("ops").map_or(&[][..], Node::entries).iter().map(|entry| &entry.node)
}

/// Returns each `check` that is written: of ops, of `defaults`, and of the profile.
fn checks(root: &Node) -> impl Iterator<Item = &Node> {
    let owners = ops(root).chain([root]);
    let owners = owners.flat_map(|node| [Some(node), node.get("defaults"), node.at(&["profiles", "cpu"])]);
    owners.flatten().filter_map(|node| node.get("check"))
}

/// Integers and truth values are compared exactly, so that a tolerance of theirs would say what no check does.
fn tolerances_of_integers(root: &Node, faults: &mut Vec<Fault>) {
    let outputs = ops(root).filter_map(|op| op.get("outputs")).flat_map(Node::entries).map(|entry| &entry.node);
    let told = outputs.chain(checks(root)).filter_map(|node| node.get("tolerances")).flat_map(Node::entries);
    for entry in told.filter(|entry| DTYPES.contains(&entry.key.as_str()) && !entry.key.contains("float")) {
        let fault = Fault::new(entry.place, format!("{} is compared exactly, with no tolerance", entry.key));
        faults.push(fault.hint("remove it; where rounding may differ, return the value before it is rounded"));
    }
}

fn unused_profile_dims(root: &Node, ops: &[Op], faults: &mut Vec<Fault>) {
    let used: BTreeSet<&String> = ops
        .iter()
        .flat_map(|op| op.settings(Profile::Cpu).sizes.values().chain(op.settings(Profile::Cuda).sizes.values()))
        .flat_map(BTreeMap::keys)
        .collect();
    for entry in root.at(&["profiles", "cpu", "dims"]).map_or(&[][..], Node::entries) {
        if !used.contains(&entry.key) {
            let fault = Fault::new(entry.place, format!("no op has a dim `{}`", entry.key));
            faults.push(fault.hint(suggestion(&entry.key, used.iter().map(|dim| dim.as_str()))));
        }
    }
}

impl Reader<'_, '_> {
    fn op(&mut self, names: Option<&TorchNames>) -> Option<Op> {
        let node = &self.entry.node;
        let layers = Layers::of(self.root, node);
        // All of it is looked at before the first `?`, so that everything wrong is said at once.
        let operation = self.operation(names);
        let inputs = self.inputs();
        let kwargs = self.kwargs();
        let torch = operation.as_ref().and_then(|(torch, _)| torch.as_ref());
        self.taken_kwargs(torch, names);
        let variants = self.variants(&layers);
        let mutates = self.named_inputs("mutates");
        let overwrites = self.named_inputs("overwrites");
        self.require_apart(&mutates, &overwrites);
        let allow = self.allow(names);
        let inputs = inputs?;
        let outputs = self.outputs(&inputs);
        let random = self.random(&inputs);
        let init = operation.iter().flat_map(|(_, reference)| reference).map(|reference| &reference.init);
        let on_cpu = Layers::on_cpu(self.root, node);
        let uses = init.fold(settings::Uses::of(&inputs, &kwargs), settings::Uses::also).named_by(&on_cpu);
        for layers in [&layers, &on_cpu] {
            self.drawable(&inputs, layers);
        }
        let cuda = self.settings(&layers, &uses, Profile::Cuda);
        let cpu = self.settings(&on_cpu, &uses, Profile::Cpu);
        for (settings, layers) in [(&cuda, &layers), (&cpu, &on_cpu)] {
            if let Some(settings) = settings {
                self.lengths_fit(&inputs, settings, layers);
            }
        }
        let flag = |key: &str| layers.get(&[key]).and_then(Node::flag);
        let (torch, reference) = operation?;
        Some(Op {
            name: self.entry.key.clone(),
            place: self.entry.place,
            torch,
            reference,
            inputs,
            outputs,
            random,
            kwargs,
            variants: variants?,
            cases: node.get("cases").and_then(Node::text).map(str::to_owned),
            precision: precision(&layers)?,
            mutates,
            overwrites,
            allow,
            backward: flag("backward")?,
            broadcast: flag("broadcast")?,
            deterministic: flag("deterministic")?,
            template: self.template(&layers)?,
            cpu: cpu?,
            cuda: cuda?,
        })
    }

    fn kwargs(&mut self) -> BTreeMap<String, serde_json::Value> {
        let entries = self.entry.node.get("kwargs").map_or(&[][..], Node::entries);
        for entry in entries {
            if self.entry.node.at(&["inputs", &entry.key]).is_some() {
                let message = format!("`{}` is an input and a kwarg", entry.key);
                self.fault(entry.place, &message, "a parameter is one or the other: tensors are inputs");
            }
        }
        entries.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect()
    }

    /// Checks that the torch function accepts every kwarg, if its signature is known.
    fn taken_kwargs(&mut self, torch: Option<&TorchName>, names: Option<&TorchNames>) {
        let Some((name, names)) = torch.zip(names) else { return };
        let Some(signature) = names.signature(name) else { return };
        let entries = self.entry.node.get("kwargs").map_or(&[][..], Node::entries);
        let is_taken = |key: &String| signature.parameters.contains(key) || names.is_common(key);
        for entry in entries.iter().filter(|entry| !is_taken(&entry.key)) {
            let near = nearest(&entry.key, signature.parameters.iter().map(String::as_str));
            let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let short = name.as_str().rsplit('.').next().unwrap_or_default();
            let hint = format!("{near}it is {short}{}", signature.text);
            self.fault(entry.place, &format!("{} takes no argument `{}`", name.as_str(), entry.key), hint);
        }
    }

    /// Checks that no input is in both lists of those that a call changes.
    fn require_apart(&mut self, mutates: &[String], overwrites: &[String]) {
        let place = self.entry.node.get("overwrites").map(|node| node.place);
        if let Some((name, place)) = overwrites.iter().find(|name| mutates.contains(*name)).zip(place) {
            let hint = "`mutates` says that it holds what torch leaves there, `overwrites` that it may hold anything";
            self.fault(place, &format!("`{name}` is in `mutates`, too"), hint);
        }
    }

    /// Checks the names of inputs where they are used again, in the set that is called `key`.
    fn named_inputs(&mut self, key: &str) -> Vec<String> {
        let Some(node) = self.entry.node.get(key) else { return Vec::new() };
        let inputs = self.entry.node.get("inputs").map_or(&[][..], Node::entries);
        let known = inputs.iter().map(|entry| entry.key.as_str());
        for (item, name) in node.items().iter().filter_map(|item| Some((item, item.text()?))) {
            if !known.clone().any(|input| input == name) {
                self.fault(item.place, &format!("no input is called `{name}`"), suggestion(name, known.clone()));
            }
        }
        let lists =
            |name: &String| inputs.iter().find(|entry| entry.key == *name).and_then(|entry| entry.node.get("list"));
        let members = |name: String| match lists(&name) {
            Some(list) => (0..list.items().len()).map(|number| format!("{name}.{number}")).collect(),
            None => vec![name],
        };
        inputs::texts(node).into_iter().flat_map(members).collect()
    }

    /// Checks that torch has the operations, if its names are known.
    fn allow(&mut self, names: Option<&TorchNames>) -> Vec<String> {
        let Some(node) = self.entry.node.get("allow") else { return Vec::new() };
        for (item, name) in node.items().iter().filter_map(|item| Some((item, item.text()?))) {
            if let Some(Err(near)) = names.map(|names| names.aten(name)) {
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "name operations of aten without overloads, as in `sum` or `mul_`".to_owned(),
                };
                self.fault(item.place, &format!("torch has no aten operation `{name}`"), hint);
            }
        }
        inputs::texts(node)
    }

    fn template(&self, layers: &Layers) -> Option<String> {
        let path = ["log", "template"];
        let own = self.entry.node.at(&path).or_else(|| self.root.at(&path));
        own.or_else(|| layers.get(&path))?.text().map(str::to_owned)
    }
}

fn precision(layers: &Layers) -> Option<Precision> {
    match layers.get(&["precision"])?.text()? {
        "ieee" => Some(Precision::Ieee),
        "tf32" => Some(Precision::Tf32),
        _ => None,
    }
}
