//! The parameters of an exported function: those of torch's, as far as the op declares them or the kernel takes them.
//!
//! It does not know how kernels are called.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use t2t_python::parameters::{Default, Defined, Parameter as Written, defined};
use t2t_spec::{Input, Op, Profile};

use super::super::error::CliError;
use super::super::script;

/// The script that asks torch.
const SCRIPT: &str = include_str!("../../../assets/export/signatures.py");

/// A parameter of an exported function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parameter {
    /// Its name.
    pub(super) name: String,
    /// Its default as Python writes it.
    pub(super) default: Option<String>,
    /// Whether it can only be given by its name.
    pub(super) is_keyword_only: bool,
    /// Its type in torch's schema language, where torch says so.
    pub(super) schema: Option<String>,
}

/// Op → what torch's function takes, where torch says so.
pub(super) type Known = BTreeMap<String, Vec<Parameter>>;

/// Asks torch in the interpreter at `python` what the functions of these ops take. Fails where it does not answer.
pub(super) fn asked(python: &Path, ops: &[&Op]) -> Result<Known, CliError> {
    let of_torch: Vec<(&Op, &str)> = ops
        .iter()
        .filter_map(|op| Some((*op, op.torch.as_ref()?.as_str())))
        .filter(|(_, name)| name.contains('.'))
        .collect();
    if of_torch.is_empty() {
        return Ok(Known::new());
    }
    let questions: Vec<Value> =
        of_torch.iter().map(|(op, name)| json!({"name": name, "declared": declared(op)})).collect();
    let answer = run(python, &json!(questions)).map_err(|error| CliError::machine(format!("{error:#}")))?;
    let named = of_torch.iter().zip(answer).filter_map(|((op, _), found)| Some((op.name.clone(), found?)));
    Ok(named.collect())
}

fn run(python: &Path, questions: &Value) -> anyhow::Result<Vec<Option<Vec<Parameter>>>> {
    let mut command = Command::new(python);
    // Nothing of the workspace is imported in torch's place, and no device is woken.
    command.current_dir("/").env("CUDA_VISIBLE_DEVICES", "").stderr(Stdio::piped());
    let output = script::run(command, SCRIPT, questions)?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        let last = told.trim_end().lines().next_back().unwrap_or_default();
        return Err(anyhow!("`{}` does not say what torch's functions take: {last}", python.display()));
    }
    serde_json::from_slice(&output.stdout).context("what torch's functions take cannot be read")
}

/// Returns the names of an op's inputs in declared order, a list of tensors as one.
pub(super) fn inputs(op: &Op) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in op.inputs.iter().map(Input::argument) {
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// Returns the names of all that an op declares: inputs, then the other arguments.
pub(super) fn declared(op: &Op) -> Vec<String> {
    let mut found = inputs(op);
    found.extend(op.kwargs.keys().filter(|name| !op.inputs.iter().any(|input| input.argument() == **name)).cloned());
    found
}

/// Returns the parameters of the exported function. Torch's order, defaults and kinds count, then those of the reference in the file `reference`, then the order of ops.yaml. What is neither declared nor taken by the wrapper is left
/// out.
pub(super) fn parameters(
    op: &Op,
    torch: Option<&Vec<Parameter>>,
    reference: Option<&str>,
    wrapper: &[String],
) -> Vec<Parameter> {
    let own = op.reference.as_ref().zip(reference).and_then(|(named, text)| match defined(text, &named.name)? {
        Defined::Function(found) => Some(found.iter().map(written).collect::<Vec<_>>()),
        Defined::Open | Defined::Class => None,
    });
    let wanted = declared(op);
    let is_whole = |known: &Vec<Parameter>| wanted.iter().all(|name| known.iter().any(|one| one.name == *name));
    if let Some(known) = torch.cloned().or(own).filter(is_whole) {
        let is_taken = |one: &Parameter| wanted.contains(&one.name) || wrapper.contains(&one.name);
        return ordered(known.into_iter().filter(is_taken).collect());
    }
    let plain = |name: String| {
        let default = op.kwargs.get(&name).and_then(|value| literal(op, value));
        Parameter { name, default, is_keyword_only: false, schema: None }
    };
    ordered(wanted.into_iter().map(plain).collect())
}

/// Returns the parameters as Python takes them: behind one with a default one without is given by its name alone, and so is all that follows it.
fn ordered(mut found: Vec<Parameter>) -> Vec<Parameter> {
    let first = found.iter().position(|one| one.default.is_some()).unwrap_or(found.len());
    if let Some(late) = found[first..].iter().position(|one| one.default.is_none() && !one.is_keyword_only) {
        found[first + late..].iter_mut().for_each(|one| one.is_keyword_only = true);
    }
    found
}

fn written(one: &Written) -> Parameter {
    let default = match &one.default {
        Some(Default::Literal(text)) => Some(text.clone()),
        Some(Default::Other) | None => None,
    };
    let schema = one.annotation.as_deref().and_then(schema_of).map(str::to_owned);
    Parameter { name: one.name.clone(), default, is_keyword_only: one.is_keyword_only, schema }
}

/// Returns the type in torch's schema language of an annotation, where it has one.
pub(super) fn schema_of(annotation: &str) -> Option<&'static str> {
    let bare = annotation.replace("torch.", "").replace(' ', "");
    Some(match bare.as_str() {
        "Tensor" => "Tensor",
        "Tensor|None" | "Optional[Tensor]" => "Tensor?",
        "int" => "int",
        "int|None" | "Optional[int]" => "int?",
        "float" => "float",
        "float|None" | "Optional[float]" => "float?",
        "bool" => "bool",
        "str" => "str",
        "Sequence[int]" | "list[int]" | "tuple[int,...]" => "int[]",
        "dtype" => "ScalarType",
        "dtype|None" => "ScalarType?",
        _ => return None,
    })
}

/// Returns a value of ops.yaml as Python writes it. None for one that stands for a length, which differs from call to call, or for a dtype.
pub(super) fn literal(op: &Op, value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if !is_length(op, text) && !text.starts_with("torch.") => json!(text).to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| literal(op, item)).collect::<Option<_>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::String(_) | Value::Object(_) => return None,
    })
}

/// Returns whether a text may be an expression of the op's dims.
pub(super) fn is_length(op: &Op, text: &str) -> bool {
    let settings = op.settings(Profile::Cuda);
    let dims: Vec<&String> =
        settings.sizes.values().chain(settings.check_sizes.values()).flat_map(|size| size.keys()).collect();
    let mut words =
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    words.all(|word| word.parse::<u64>().is_ok() || dims.iter().any(|dim| *dim == word))
}
