//! A file of workloads of a definition: the lengths of its var axes and the values of its numbers, a workload a line.
//!
//! It does not know what becomes of them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::definition::{Definition, Named, Unfit};

/// What is said of inputs that t2t does not make.
const INPUTS: &str = "leave such lines out, or import without `--workloads` and name the values in ops.yaml: `init: {file: values.safetensors::KEY}`";

/// A workload.
#[derive(Debug)]
pub(super) struct Workload {
    /// Its line in the file, from 1.
    pub(super) line: usize,
    /// The length of each var axis.
    pub(super) axes: BTreeMap<String, u64>,
    /// The values of numbers.
    pub(super) scalars: Map<String, Value>,
}

/// A line: a trace, of which the workload is a part, or the workload itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Trace { definition: String, workload: Told },
    Alone(Told),
}

#[derive(Deserialize)]
struct Told {
    axes: BTreeMap<String, u64>,
    inputs: Named<Source>,
}

#[derive(Deserialize)]
struct Source {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    value: Value,
}

/// Returns the workloads of the definition among the lines; those of others are left out. A fault's message begins with its line.
pub(super) fn read(text: &str, definition: &Definition) -> Result<Vec<Workload>, Unfit> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let form = "each line is a workload, alone or as the `workload` of a trace: {\"axes\": {…}, \"inputs\": {…}}";
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Unfit::new(format!("{line}:{}: {error}", error.column()), form))?;
        let told = match serde_json::from_value(value) {
            Ok(Line::Trace { definition: of, .. }) if of != definition.name => continue,
            Ok(Line::Trace { workload, .. } | Line::Alone(workload)) => workload,
            Err(_) => return Err(Unfit::new(format!("{line}: it is no workload"), form)),
        };
        found.push(workload(line, told, definition)?);
    }
    if found.is_empty() {
        let message = format!(" it has no workload of `{}`", definition.name);
        return Err(Unfit::new(message, "name the file of this definition's workloads"));
    }
    Ok(found)
}

fn workload(line: usize, told: Told, definition: &Definition) -> Result<Workload, Unfit> {
    let form = "a workload has a length of at least 1 for each var axis, and for no other";
    for axis in definition.vars() {
        if told.axes.get(axis).is_none_or(|length| *length == 0) {
            return Err(Unfit::new(format!("{line}: axes: `{axis}` has no length"), form));
        }
    }
    let fixed = definition.fixed();
    for (axis, length) in &told.axes {
        // Some say const axes, too.
        if definition.axes.get(axis).is_none() || fixed.get(axis.as_str()).is_some_and(|value| value != length) {
            return Err(Unfit::new(format!("{line}: axes: `{axis}` is {length}"), form));
        }
    }
    let mut scalars = Map::new();
    for (name, source) in told.inputs.0 {
        let place = format!("{line}: inputs.{name}");
        let Some(input) = definition.inputs.get(&name) else {
            return Err(Unfit::new(format!("{place}: the definition has no such input"), "leave it out"));
        };
        match source.kind.as_str() {
            "random" if input.shape.is_some() => {}
            "random" => return Err(Unfit::new(format!("{place}: it is a number at random"), "give it a value")),
            "scalar" if input.shape.is_none() && (source.value.is_number() || source.value.is_boolean()) => {
                scalars.insert(name, source.value);
            }
            "scalar" => return Err(Unfit::new(format!("{place}: it is no number, or no value"), "give it a value")),
            "safetensors" => return Err(Unfit::new(format!("{place}: its values lie in a safetensors file"), INPUTS)),
            "custom" => return Err(Unfit::new(format!("{place}: a function of its own makes it"), INPUTS)),
            other => return Err(Unfit::new(format!("{place}: `{other}` is no kind of input that t2t knows"), INPUTS)),
        }
    }
    let axes = told.axes.into_iter().filter(|(axis, _)| !fixed.contains_key(axis.as_str())).collect();
    Ok(Workload { line, axes, scalars })
}
