//! A variant as it is exported: the function that calls its wrapper with the arguments of the op.
//!
//! It does not know which variant was chosen.

use std::fmt::Write;

use t2t_python::parameters::{Defined, defined};
use t2t_spec::{Op, Variant};

use super::super::error::CliError;
use super::signature::{self, Parameter, literal};
use super::sources::{Sources, Taken, identifier};

/// A variant with its files.
#[derive(Debug)]
pub(super) struct Kernel<'a> {
    /// The variant.
    pub(super) variant: &'a Variant,
    /// Its file, and what that imports.
    pub(super) taken: Taken,
    /// The names of its wrapper's parameters, where the wrapper is a function that takes no others.
    pub(super) parameters: Option<Vec<String>>,
}

impl<'a> Kernel<'a> {
    /// Takes the files of a variant. Fails, as bad use, where it is of a kind that cannot be exported.
    pub(super) fn take(op: &Op, variant: &'a Variant, sources: &mut Sources<'_>) -> Result<Self, CliError> {
        let refused = |why: &str| {
            let message = format!("`{}/{}` cannot be exported: {why}", op.name, variant.name);
            CliError::misuse(
                message,
                "export takes functions that launch kernels in Triton from files of the workspace",
            )
        };
        if variant.cuda.is_some() {
            return Err(refused("its kernels are in CUDA C++"));
        }
        if variant.module.is_some() {
            return Err(refused("it is in an installed module, which is a package already"));
        }
        if variant.methods.is_some() {
            return Err(refused("its entry is an operator with methods"));
        }
        let taken = sources.take(&variant.file)?;
        let parameters = match defined(&taken.text, &variant.entry) {
            Some(Defined::Class) => return Err(refused("its entry is a class")),
            Some(Defined::Function(found)) => Some(found.into_iter().map(|one| one.name).collect()),
            Some(Defined::Open) | None => None,
        };
        Ok(Self { variant, taken, parameters })
    }

    /// Returns the name of the function that calls the wrapper.
    pub(super) fn caller(&self) -> String {
        format!("_of_{}", identifier(&self.variant.name))
    }

    /// Returns the function that calls the wrapper, in Python. Fails, as bad use, where the wrapper is not told an argument that differs from call to call.
    pub(super) fn text(&self, op: &Op, parameters: &[Parameter]) -> Result<String, CliError> {
        let names: Vec<&str> = parameters.iter().map(|one| one.name.as_str()).collect();
        let inputs = signature::inputs(op);
        let passed = self.passed(op, &names);
        let mut text = format!("def {}({}: Any) -> Any:\n", self.caller(), names.join(": Any, "));
        if names.is_empty() {
            text = format!("def {}() -> Any:\n", self.caller());
        }
        for one in parameters.iter().filter(|one| !passed.contains(&one.name.as_str())) {
            let declared = op.kwargs.get(&one.name);
            let known = declared.map_or_else(|| one.default.clone(), |value| literal(op, value)).ok_or_else(|| {
                let message = format!(
                    "`{}/{}` cannot be exported: its wrapper is not told `{}`, which differs from call to call",
                    op.name, self.variant.name, one.name
                );
                CliError::misuse(message, "pass it in `call:` of ops.yaml")
            })?;
            let _ = writeln!(text, "    _dispatch.only({:?}, {:?}, {}, {known})", op.name, one.name, one.name);
        }
        let _ = writeln!(text, "    wrapper = _dispatch.load({:?}, {:?})", self.taken.module, self.variant.entry);
        if let Some(call) = &self.variant.call {
            let call = call.trim();
            let _ = writeln!(text, "    return wrapper{}", call.strip_prefix("entry").unwrap_or(call));
            return Ok(text);
        }
        let mapped = |is_input: bool| {
            let wanted = passed.iter().filter(|name| inputs.iter().any(|input| input == *name) == is_input);
            wanted.map(|name| format!("{name:?}: {name}")).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(text, "    return _dispatch.call(wrapper, {{{}}}, {{{}}})", mapped(true), mapped(false));
        Ok(text)
    }

    /// Returns those of `names` that the wrapper is told, inputs first, in declared order.
    fn passed<'n>(&self, op: &'n Op, names: &[&'n str]) -> Vec<&'n str> {
        if let Some(call) = &self.variant.call {
            let told = names_in(call);
            return names.iter().copied().filter(|name| told.contains(name)).collect();
        }
        let declared = signature::declared(op);
        let of_op = declared.iter().filter_map(|name| names.iter().copied().find(|known| known == name));
        let has = |name: &&str| self.parameters.as_ref().is_some_and(|known| known.iter().any(|one| one == name));
        let further = names.iter().copied().filter(|name| !declared.iter().any(|one| one == name)).filter(has);
        of_op.chain(further).collect()
    }
}

/// Returns the names in the arguments of a call as ops.yaml has it, without those of keywords and what stands in quotes.
fn names_in(call: &str) -> Vec<&str> {
    let inside = call.split_once('(').map_or("", |(_, inside)| inside);
    let mut found = Vec::new();
    let mut rest = inside;
    while let Some(first) = rest.chars().next() {
        if first == '\'' || first == '"' {
            let after = &rest[1..];
            rest = after.find(first).map_or("", |end| &after[end + 1..]);
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if !after.trim_start().starts_with('=') {
                found.push(word);
            }
            rest = after;
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_call_are_those_of_its_arguments() {
        assert_eq!(names_in("entry(x, [dim], keepdim=True, eps = eps, mode='dim')"), ["x", "dim", "True", "eps"]);
        assert_eq!(names_in("entry()"), [""; 0]);
    }
}
