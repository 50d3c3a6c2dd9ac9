//! From what a person named to the actions that are wanted: `op`, `op/variant`, `op/variant#2`, `op:phase`, `op/variant:phase`, `calibrate`,
//! `summary`, patterns with `*` and `?` of these, or lists of them.
//!
//! It does not know what is stale, nor files: `crate::graph::files` makes targets of them.

use std::collections::BTreeSet;

use t2t_model::action::{Phase, Target, attempted};

use crate::graph::pattern::{fits, is_pattern};
use crate::graph::{Graph, Index, Wanted};

/// What a person asked for.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Targets as written, each perhaps a list with commas or spaces. None for everything.
    pub targets: Vec<String>,
    /// Only these variants, if any are named.
    pub variants: Vec<String>,
    /// Only these phases, if any are named.
    pub phases: Vec<Phase>,
}

/// A name that is no target.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unknown {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Whether wanted actions run although a result stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// What is stale runs.
    Stale,
    /// Whatever was named runs.
    Named,
}

/// Returns the actions that `selection` names, with all that they need. Fails on a name that nothing has.
pub fn pick(graph: &Graph, selection: &Selection, force: Force) -> Result<Wanted, Unknown> {
    let named = named(graph, selection)?;
    let mut wanted = vec![false; graph.count()];
    let mut open: Vec<Index> = named.iter().copied().collect();
    while let Some(index) = open.pop() {
        if !std::mem::replace(&mut wanted[index.number()], true) {
            open.extend(graph.dependencies(index).into_iter().map(|(source, _)| source));
        }
    }
    let forced = graph.indices().map(|index| force == Force::Named && named.contains(&index)).collect();
    Ok(Wanted { wanted, forced })
}

/// Returns the actions that `selection` names, without what they need.
pub fn named(graph: &Graph, selection: &Selection) -> Result<BTreeSet<Index>, Unknown> {
    let written: Vec<&str> = selection.targets.iter().flat_map(|text| split(text)).collect();
    for variant in &selection.variants {
        known_variant(graph, variant)?;
    }
    let mut found = BTreeSet::new();
    for text in &written {
        found.extend(matching(graph, text)?);
    }
    if written.is_empty() && !selection.targets.is_empty() {
        return Err(nothing_named());
    }
    if written.is_empty() {
        found.extend(graph.indices());
    }
    found.extend(summary_of_all(graph, &found));
    found.retain(|index| selection.admits(graph.action(*index).target()));
    if found.is_empty() {
        return Err(Unknown {
            message: "no action is both in the named targets and in the named variants and phase".to_owned(),
            hint: "drop `--variant` or `--phase`; `t2t graph` lists all actions".to_owned(),
        });
    }
    Ok(found)
}

impl Selection {
    fn admits(&self, target: &Target) -> bool {
        let variant =
            self.variants.is_empty() || target.variant.as_ref().is_some_and(|name| self.variants.contains(name));
        variant && (self.phases.is_empty() || self.phases.contains(&target.phase))
    }
}

/// Returns the names in a list that is parted by commas or spaces.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t', '\n']).filter(|part| !part.is_empty())
}

fn matching(graph: &Graph, text: &str) -> Result<Vec<Index>, Unknown> {
    if let Some(target) = Target::of_build(text) {
        return graph.find(&target).map(|index| vec![index]).ok_or_else(|| not_here(text));
    }
    let (place, phase) = match text.split_once(':') {
        Some((place, phase)) => (place, Some(phase)),
        None => (text, None),
    };
    let (op, named) = place.split_once('/').map_or((place, None), |(op, variant)| (op, Some(variant)));
    // A variant without a number stands for all of its attempts.
    let of_attempt = named.filter(|named| named.contains('#')).and_then(attempted);
    let variant = of_attempt.map(|(variant, _)| variant).or(named);
    let attempt = of_attempt.map(|(_, attempt)| attempt);
    let is_of_op = |target: &Target| !target.op.is_empty() && fits(op, &target.op);
    // Lists of a thousand names are common, and each would look at all actions of a thousand ops.
    let may_be: Vec<Index> = if is_pattern(op) { graph.indices().collect() } else { graph.of_op(op).to_vec() };
    let of_op: Vec<Index> = may_be.into_iter().filter(|index| is_of_op(graph.action(*index).target())).collect();
    let found = |is_named: &dyn Fn(&Target) -> bool| -> Vec<Index> {
        of_op.iter().copied().filter(|index| is_named(graph.action(*index).target())).collect()
    };
    let is_of_variant = |target: &Target| {
        let is_named = variant.is_none_or(|name| target.variant.as_deref().is_some_and(|own| fits(name, own)));
        is_named && attempt.is_none_or(|attempt| target.attempt == attempt)
    };
    if of_op.is_empty() {
        return Err(unknown_op(graph, op));
    }
    let of_variant = found(&is_of_variant);
    if let Some(variant) = named.filter(|_| of_variant.is_empty()) {
        return Err(unknown_variant(graph, op, variant, &of_op));
    }
    if let Some(phase) = phase.filter(|phase| !Phase::ALL.iter().any(|known| fits(phase, known.name()))) {
        return Err(unknown_phase(phase));
    }
    let is_of_phase = |target: &Target| phase.is_none_or(|phase| fits(phase, target.phase.name()));
    let found = found(&|target| is_of_variant(target) && is_of_phase(target));
    if found.is_empty() { Err(unknown_part(graph, text, &of_op)) } else { Ok(found) }
}

/// The summary is rendered when all ops are: then every log is named.
fn summary_of_all(graph: &Graph, found: &BTreeSet<Index>) -> Option<Index> {
    let mut logs = graph.indices().filter(|index| graph.action(*index).target().phase == Phase::Log);
    logs.all(|index| found.contains(&index)).then(|| graph.find(&Target::summary())).flatten()
}

fn known_variant(graph: &Graph, name: &str) -> Result<(), Unknown> {
    let variants: BTreeSet<&str> =
        graph.indices().filter_map(|index| graph.action(index).target().variant.as_deref()).collect();
    if variants.contains(name) {
        return Ok(());
    }
    let hint = suggestion(name, "the variants are", variants);
    Err(Unknown { message: format!("no op has a variant `{name}`"), hint })
}

fn unknown_op(graph: &Graph, name: &str) -> Unknown {
    let ops: BTreeSet<&str> =
        graph.indices().map(|index| graph.action(index).target().op.as_str()).filter(|op| !op.is_empty()).collect();
    let message = format!("ops.yaml has no op `{name}`");
    let is_so_called = |target: &&Target| target.variant.as_deref() == Some(name);
    match graph.indices().map(|index| graph.action(index).target()).find(is_so_called) {
        Some(target) => Unknown { message, hint: format!("a variant is named with its op: `{}/{name}`", target.op) },
        None => Unknown { message, hint: suggestion(name, "the ops are", ops) },
    }
}

fn unknown_variant(graph: &Graph, op: &str, name: &str, of_op: &[Index]) -> Unknown {
    let variants = of_op.iter().filter_map(|index| graph.action(*index).target().variant.as_deref()).collect();
    let message = format!("op `{op}` has no variant `{name}`");
    Unknown { message, hint: suggestion(name, "its variants are", variants) }
}

fn nothing_named() -> Unknown {
    Unknown {
        message: "the name of a target is empty".to_owned(),
        hint: "name an op, as in `t2t build softmax`; without any name everything is meant".to_owned(),
    }
}

fn not_here(target: &str) -> Unknown {
    Unknown {
        message: format!("this build has no action `{target}`"),
        hint: "it measures a CUDA device; `t2t graph` lists all actions".to_owned(),
    }
}

fn unknown_phase(name: &str) -> Unknown {
    Unknown { message: format!("there is no phase `{name}`"), hint: phase_hint(name) }
}

/// Returns the phase that `name` was probably meant to be, or all of them.
#[must_use]
pub fn phase_hint(name: &str) -> String {
    suggestion(name, "the phases are", Phase::ALL.into_iter().map(Phase::name).collect())
}

fn unknown_part(graph: &Graph, text: &str, of_op: &[Index]) -> Unknown {
    let targets = of_op.iter().map(|index| graph.action(*index).target().to_string()).collect::<Vec<_>>();
    Unknown {
        message: format!("there is no action `{text}`"),
        hint: listed("the op has", targets.iter().map(String::as_str).collect()),
    }
}

/// Returns "did you mean" for the one of `names` that is nearest to `name`, or else what there is to choose from.
fn suggestion(name: &str, head: &str, names: BTreeSet<&str>) -> String {
    let likeness = |known: &str| strsim::jaro(known, name);
    let near = names.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match near.filter(|near| !is_pattern(name) && likeness(near) > 0.7) {
        Some(near) => format!("did you mean `{near}`?"),
        None => listed(head, names),
    }
}

fn listed(head: &str, names: BTreeSet<&str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    format!("{head} {}", names.join(", "))
}
