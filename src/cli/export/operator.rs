//! An op as an operator of torch: its schema, its fake kernel and its gradient, as Python defines them.
//!
//! It does not know how torch registers them.

use serde_json::{Value, json};
use t2t_python::parameters::{Defined, defined};
use t2t_spec::{Input, Op, Profile};

use super::super::error::CliError;
use super::signature::{self, Parameter};
use super::text::{self, Exported};

/// The modules of the package that its text needs.
pub(super) const IMPORTS: &str = "_dispatch, _operators";

/// What a schema of torch has for a type, beside lists of them and those that may be None.
const TYPES: [&str; 11] =
    ["Tensor", "int", "SymInt", "float", "bool", "str", "Scalar", "ScalarType", "Device", "Layout", "MemoryFormat"];

/// Returns what the module of an op ends with: its operator, and the function that calls it. Fails, as bad use, where the op cannot be an operator.
pub(super) fn text(op: &Exported<'_>) -> Result<String, CliError> {
    let schema = schema(op)?;
    let parameters = op.parameters.iter().map(|one| format!("{}: Any", one.name)).collect::<Vec<_>>().join(", ");
    let inputs = signature::inputs(op.subject.op);
    let mapped = |is_input: bool| {
        let wanted = op.parameters.iter().filter(|one| inputs.contains(&one.name) == is_input);
        wanted.map(|one| format!("{0:?}: {0}", one.name)).collect::<Vec<_>>().join(", ")
    };
    let (module, entry) = defined_by(op);
    let differentiable = differentiable(op.subject.op).into_iter().map(|name| format!("{name:?}")).collect::<Vec<_>>();
    Ok(format!(
        "def _kernel({parameters}) -> Any:\n    return {served}\n\n\n\
         def _definition({parameters}) -> Any:\n    \
         return _dispatch.call(_dispatch.named({module:?}, {entry:?}), {{{inputs}}}, {{{others}}})\n\n\n\
         OPERATOR = _operators.define(\n    {name:?},\n    {schema:?},\n    results={results},\n    \
         kernel=_kernel,\n    definition=_definition,\n    differentiable=[{differentiable}],\n)\n\n\n{function}",
        served = op.served(),
        inputs = mapped(true),
        others = mapped(false),
        name = op.function(),
        results = results(op.subject.op),
        differentiable = differentiable.join(", "),
        function = text::function(op, &format!("OPERATOR({})", op.given())),
    ))
}

/// Returns the module and the name in it of what the op is by definition.
fn defined_by(op: &Exported<'_>) -> (String, String) {
    let declared = op.subject.op;
    match (&declared.reference, &op.reference, &declared.torch) {
        (Some(named), Some(taken), _) => (taken.module.clone(), named.name.clone()),
        (_, _, Some(name)) => ("torch".to_owned(), name.as_str().trim_start_matches("torch.").to_owned()),
        _ => ("torch".to_owned(), declared.name.clone()),
    }
}

/// Returns the parameters of the operator in torch's schema language.
fn schema(op: &Exported<'_>) -> Result<String, CliError> {
    let declared = op.subject.op;
    let refused = |why: String, hint: &str| {
        CliError::misuse(format!("`{}` cannot be an operator of torch: {why}", declared.name), hint)
    };
    if !(declared.mutates.is_empty() && declared.overwrites.is_empty()) {
        return Err(refused("it changes its inputs".to_owned(), "`--as package` exports it"));
    }
    let of_class = declared.reference.as_ref().zip(op.reference.as_ref());
    if of_class.is_some_and(|(named, taken)| matches!(defined(&taken.text, &named.name), Some(Defined::Class))) {
        let why = "its reference is a class, and the fake kernel needs a function".to_owned();
        return Err(refused(why, "`--as package` exports it"));
    }
    let typed = op.parameters.iter().map(|one| {
        let kind = kind(declared, one).ok_or_else(|| {
            refused(
                format!("torch's schemas have no type for `{}`", one.name),
                "give the reference's parameter a type, as in `dim: int`, or export `--as package`",
            )
        })?;
        Ok(format!("{kind} {}", one.name))
    });
    let typed = typed.collect::<Result<Vec<String>, CliError>>()?;
    if typed.is_empty() {
        return Err(refused("it takes nothing".to_owned(), "`--as package` exports it"));
    }
    Ok(typed.join(", "))
}

/// Returns the type of a parameter. None where neither torch, nor an annotation, nor the declared value tells.
fn kind(op: &Op, one: &Parameter) -> Option<String> {
    let known = one.schema.clone().filter(|text| is_type(text));
    let declared = match op.inputs.iter().find(|input| input.argument() == one.name) {
        Some(Input::Tensor(tensor)) => {
            let may_be_none = tensor.optional || known.as_deref() == Some("Tensor?");
            let kind = match &tensor.list {
                Some(_) => "Tensor[]",
                None if may_be_none => "Tensor?",
                None => "Tensor",
            };
            return Some(kind.to_owned());
        }
        Some(Input::Scalar { scalar, .. }) => Some(scalar),
        None => op.kwargs.get(&one.name),
    };
    let may_be_none = one.default.as_deref() == Some("None");
    let known = known.filter(|text| !text.starts_with("Tensor") || declared.is_none());
    known.or_else(|| {
        let kind = kind_of(op, declared?)?;
        Some(if may_be_none { format!("{kind}?") } else { kind.to_owned() })
    })
}

/// Returns the type of a value of ops.yaml.
fn kind_of(op: &Op, value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(text) if text.contains("_format") && text.starts_with("torch.") => "MemoryFormat",
        Value::String(text) if text.starts_with("torch.") => "ScalarType",
        Value::String(text) if signature::is_length(op, text) => "int",
        Value::String(_) => "str",
        Value::Array(items) => match items.iter().map(|item| kind_of(op, item)).collect::<Option<Vec<_>>>()?[..] {
            [] => return None,
            ref kinds if kinds.iter().all(|kind| *kind == "int") => "int[]",
            ref kinds if kinds.iter().all(|kind| matches!(*kind, "int" | "float")) => "float[]",
            ref kinds if kinds.iter().all(|kind| *kind == "bool") => "bool[]",
            _ => return None,
        },
        Value::Null | Value::Object(_) => return None,
    })
}

/// Returns whether a text is a type that schemas have and that an operator in Python can take.
fn is_type(text: &str) -> bool {
    let bare = text.strip_suffix('?').unwrap_or(text);
    let bare = match bare.strip_suffix(']').and_then(|list| list.split_once('[')) {
        Some((item, length)) if length.chars().all(|letter| letter.is_ascii_digit()) => item,
        Some(_) => return false,
        None => bare,
    };
    TYPES.contains(&bare)
}

/// Returns how many tensors the op gives: those that ops.yaml names, else one.
fn results(op: &Op) -> usize {
    json!(op.declaration(Profile::Cpu))["outputs"].as_array().map_or(1, Vec::len)
}

/// Returns the names of the inputs whose gradients a check compares: those that ask for one, or all tensors.
fn differentiable(op: &Op) -> Vec<String> {
    let tensors = || op.inputs.iter().filter(|input| input.tensor().is_some());
    let asks = |input: &&Input| input.tensor().is_some_and(|tensor| tensor.requires_grad);
    let all = !tensors().any(|input| asks(&input));
    let named = tensors().filter(|input| op.backward && (all || asks(input))).map(|input| input.argument().to_owned());
    let mut found: Vec<String> = named.collect();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_of_schemas_that_python_can_give_are_types() {
        for text in ["Tensor", "Tensor?", "int[]", "SymInt[2]", "ScalarType?", "int[1]?", "float"] {
            assert!(is_type(text), "{text}");
        }
        for text in ["Generator?", "Any", "int[x]", "int[", "Tensor??", ""] {
            assert!(!is_type(text), "{text}");
        }
    }
}
