//! What the check of an adopted kernel leaves open, in words: cases that tell nothing, arguments at their defaults, gradients.
//!
//! It does not know how the check ended otherwise.

use std::collections::BTreeSet;

use t2t_protocol::{AdoptedEntry, CaseRow, CaseVerdict};
use t2t_python::applied::applied;
use t2t_python::parameters::{Default, Defined, Parameter, defined};

/// The sources that say what may be given beyond the entry, as far as they are files of the workspace.
pub(super) struct Sources {
    /// The text of the wrapper's file.
    pub(super) wrapper: Option<String>,
    /// The text of the reference's file.
    pub(super) reference: Option<String>,
}

/// Returns what to write so that the gradients are compared, too; None where nothing says for certain that the kernel has a backward pass.
pub(super) fn gradients(sources: &Sources, found: &AdoptedEntry) -> Option<String> {
    let entry = found.entry.trim_end_matches(".apply");
    // What an installed module holds is not read.
    let unseen = || (sources.wrapper.is_none() && entry != found.entry).then(|| entry.to_owned());
    let function = sources.wrapper.as_deref().and_then(|text| applied(text, entry)).or_else(unseen)?;
    Some(format!(
        "gradients are not compared, and `{function}` has a backward pass: `backward: true` under the op compares them"
    ))
}

/// Returns which arguments no case gave, and what to write so that some do; None where there are none.
pub(super) fn defaults(sources: &Sources, found: &AdoptedEntry, cases: &[CaseRow]) -> Option<String> {
    let reference = found.reference.as_deref().and_then(|named| named.split_once("::")).map(|(_, name)| name);
    let of_op = optional(sources.reference.as_deref(), reference.unwrap_or_default());
    let of_wrapper = optional(sources.wrapper.as_deref(), &found.entry);
    let given: BTreeSet<&str> =
        found.inputs.iter().map(|input| input.name.as_str()).chain(found.kwargs.keys().map(String::as_str)).collect();
    let taken: BTreeSet<&str> = found.mapped.iter().map(|[own, _]| own.as_str()).collect();
    let is_left = |name: &str| !cases.iter().any(|case| gives(case, name));
    let of_op: Vec<&Parameter> =
        of_op.iter().filter(|one| !given.contains(one.name.as_str()) && is_left(&one.name)).collect();
    let is_of_op = |name: &str| given.contains(name) || of_op.iter().any(|one| one.name == name);
    let alone: Vec<&Parameter> = of_wrapper
        .iter()
        .filter(|one| !taken.contains(one.name.as_str()) && !is_of_op(&one.name) && is_left(&one.name))
        .collect();
    if of_op.is_empty() && alone.is_empty() {
        return None;
    }
    let all = of_op.iter().chain(&alone).copied();
    let mut said = format!(
        "no case gives {}, which the entry leaves at {}",
        named(all.clone()),
        if all.count() == 1 { "its default" } else { "their defaults" }
    );
    let (numbers, others): (Vec<&Parameter>, Vec<&Parameter>) = of_op.iter().copied().partition(|one| is_number(one));
    if !others.is_empty() {
        said += &format!(
            "; a tensor goes under `inputs`, as in `{}: {{shape: [N], optional: true}}`, another argument under `kwargs`",
            others[0].name
        );
    }
    if !numbers.is_empty() {
        said += &format!("; {} under `kwargs`, with another value", named(numbers.into_iter()));
    }
    if !alone.is_empty() {
        said += &format!(
            "; to try {}, which only the kernel takes, name a reference that takes it, too",
            named(alone.into_iter())
        );
    }
    Some(said)
}

fn named<'a>(parameters: impl Iterator<Item = &'a Parameter>) -> String {
    parameters.map(|one| format!("`{}`", one.name)).collect::<Vec<_>>().join(", ")
}

/// Whether the default or the annotation says that it is no tensor.
fn is_number(parameter: &Parameter) -> bool {
    let is_value = matches!(&parameter.default, Some(Default::Literal(value)) if value != "None");
    let is_said = parameter.annotation.as_deref().is_some_and(|said| !said.contains("Tensor") && said != "Any");
    is_value || is_said
}

/// Returns the parameters with a default of a function, of an instance of a class where it is called, or of `Function.apply`.
fn optional(text: Option<&str>, name: &str) -> Vec<Parameter> {
    let Some(text) = text else { return Vec::new() };
    let class = name.trim_end_matches(".apply");
    let methods = ["forward", "__call__"].map(|method| format!("{class}.{method}"));
    let all = match defined(text, class) {
        Some(Defined::Class) => methods.iter().find_map(|method| defined(text, method)),
        other => other,
    };
    match all {
        Some(Defined::Function(all)) => all.into_iter().filter(|one| one.default.is_some()).collect(),
        _ => Vec::new(),
    }
}

/// Whether a case that was judged gives the argument another value than its default.
fn gives(case: &CaseRow, argument: &str) -> bool {
    let is_judged = matches!(case.verdict, CaseVerdict::Passed | CaseVerdict::Rejected);
    let told = case.name.split_once("edge/kwarg[").map_or("", |(_, told)| told);
    let mut changed = told.split([',', ']']).filter_map(|one| one.split('=').next());
    is_judged && changed.any(|one| one == argument)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn case(name: &str, verdict: CaseVerdict) -> CaseRow {
        CaseRow { name: name.to_owned(), verdict, ..CaseRow::default() }
    }

    #[test]
    fn arguments_that_no_judged_case_gives_are_named_with_what_to_write() {
        let sources = Sources {
            wrapper: Some("def f(x, bias=None, alpha=1.0, out=None): ...\n".to_owned()),
            reference: Some("def g(x, bias=None, alpha=1.0, beta: float | None = None): ...\n".to_owned()),
        };
        let found = AdoptedEntry {
            reference: Some("ref.py::g".to_owned()),
            inputs: Vec::new(),
            kwargs: BTreeMap::from([("x".to_owned(), json!(1))]),
            entry: "f".to_owned(),
            mapped: vec![["x".to_owned(), "x".to_owned()]],
            ..AdoptedEntry::default()
        };
        let cases = [
            case("edge/kwarg[alpha=0.0]/float32", CaseVerdict::Dropped),
            case("edge/kwarg[beta=2.0,alpha=1.0]/float32", CaseVerdict::Rejected),
        ];
        let said = "no case gives `bias`, `out`, which the entry leaves at their defaults; a tensor goes under `inputs`, as in `bias: {shape: [N], optional: true}`, \
            another argument under `kwargs`; to try `out`, which only the kernel takes, name a reference that takes it, too";
        assert_eq!(defaults(&sources, &found, &cases).as_deref(), Some(said));
        let said = "no case gives `bias`, `alpha`, `beta`, `out`, which the entry leaves at their defaults; \
            a tensor goes under `inputs`, as in `bias: {shape: [N], optional: true}`, another argument under `kwargs`; `alpha`, `beta` under `kwargs`, with another value; \
            to try `out`, which only the kernel takes, name a reference that takes it, too";
        assert_eq!(defaults(&sources, &found, &cases[..1]).as_deref(), Some(said));
        let all = AdoptedEntry {
            reference: None,
            mapped: ["bias", "alpha", "out"].map(|name| [name.to_owned(), name.to_owned()]).to_vec(),
            ..found
        };
        assert_eq!(defaults(&Sources { reference: None, ..sources }, &all, &[]), None);
    }
}
