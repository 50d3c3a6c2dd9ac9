//! `t2t new`: one more variant of an op, a copy of one that is there, to be changed.
//!
//! It builds nothing.

use std::path::Path;

use anyhow::Context;
use t2t_spec::names::{Form, suggestion};
use t2t_spec::{Op, Spec, Variant, entry, listed};
use t2t_store::fs;

use super::error::CliError;
use super::{NewArguments, context, held, streams};
use crate::session::OPS;

/// Runs the command.
pub(crate) fn new(arguments: &NewArguments) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let Some((op, name)) = arguments.target.split_once('/') else {
        return Err(CliError::misuse(
            format!("`{}` names no variant", arguments.target),
            format!("write `{}/NAME`", arguments.target),
        ));
    };
    if !Form::Name.fits(name) {
        return Err(CliError::misuse(format!("`{name}` is not a valid name of a variant"), Form::Name.hint(name)));
    }
    let _held = held::hold(&root).context("cannot lock the workspace")?;
    let before = fs::read(&root.join(OPS)).context("cannot read `ops.yaml`")?;
    let spec = read(&before)?;
    let known = spec.op(op).ok_or_else(|| {
        CliError::misuse(
            format!("ops.yaml has no op `{op}`"),
            suggestion(op, spec.ops.iter().map(|op| op.name.as_str())),
        )
    })?;
    let from = source(known, name, arguments.from.as_deref())?;
    let path = format!("kernels/{op}/{name}.py");
    if fs::stat(&root.join(&path)).is_some() {
        return Err(CliError::misuse(format!("`{path}` is there already"), "choose another name"));
    }
    let kernel = fs::read_if_there(&root.join(&from.file)).with_context(|| format!("cannot read `{}`", from.file))?;
    let kernel = kernel.ok_or_else(|| {
        let hint = if from.generator.is_some() {
            "build it first, or choose another one with `--from`"
        } else {
            "choose another one with `--from`"
        };
        CliError::misuse(format!("`{}`, of which it would be a copy, is not there", from.file), hint)
    })?;
    let text = String::from_utf8_lossy(&before).into_owned();
    let with = declared(&text, known, name, from)?;
    write(&root, &path, &kernel)?;
    if let Err(error) = fs::write_linked(&root.join(OPS), with.as_bytes()).context("cannot write `ops.yaml`") {
        // What cannot be removed is a kernel that nothing names.
        let _ = fs::remove(&root.join(&path));
        return Err(error.into());
    }
    streams::say(&format!("wrote {path}, a copy of {}; ops.yaml lists it", from.file));
    Ok(0)
}

fn read(bytes: &[u8]) -> Result<Spec, CliError> {
    Spec::parse(OPS, bytes, None).map_err(CliError::Spec)
}

fn write(root: &Path, path: &str, bytes: &[u8]) -> Result<(), CliError> {
    Ok(fs::write(&root.join(path), bytes).with_context(|| format!("cannot write `{path}`"))?)
}

/// Returns the variant that is copied: the one that was chosen, or the first in Triton.
fn source<'a>(op: &'a Op, new: &str, chosen: Option<&str>) -> Result<&'a Variant, CliError> {
    let names = op.variants.iter().map(|variant| variant.name.as_str());
    if op.variant(new).is_some() {
        return Err(CliError::misuse(format!("`{}/{new}` is declared already", op.name), "choose another name"));
    }
    let is_copied = |variant: &&Variant| variant.module.is_none() && variant.cuda.is_none();
    let Some(chosen) = chosen else {
        return op.variants.iter().find(is_copied).ok_or_else(|| {
            CliError::misuse(
                format!("`{}` has no variant with a file of its own in Triton", op.name),
                "write one, and list it",
            )
        });
    };
    let found = op.variant(chosen).ok_or_else(|| {
        CliError::misuse(format!("`{}` has no variant `{chosen}`", op.name), suggestion(chosen, names))
    })?;
    Some(found).filter(is_copied).ok_or_else(|| {
        CliError::misuse(
            format!("`{}/{chosen}` is no file of its own in Triton", op.name),
            "copy what it is made of by hand, and list it",
        )
    })
}

/// Returns ops.yaml with the new variant, which is called as the one that it is a copy of.
fn declared(text: &str, op: &Op, new: &str, from: &Variant) -> Result<String, CliError> {
    let entry = [Some(("entry", &from.entry)), from.call.as_ref().map(|call| ("call", call))];
    let fields: Vec<String> =
        entry.into_iter().flatten().map(|(key, value)| format!(", {key}: {}", entry::word(value))).collect();
    let spelled = format!("{{name: {new}{}}}", fields.concat());
    let names: Vec<&str> = op.variants.iter().map(|variant| variant.name.as_str()).collect();
    let line = usize::try_from(op.place.line).unwrap_or_default();
    for item in [new, spelled.as_str()] {
        let Some(with) = listed::with_variant(text, line, &names, item) else { break };
        let Ok(spec) = Spec::parse(OPS, with.as_bytes(), None) else { continue };
        let found = spec.op(&op.name).filter(|found| found.variants.len() == op.variants.len() + 1);
        let is_alike = |variant: &Variant| {
            (&variant.entry, &variant.call, &variant.methods) == (&from.entry, &from.call, &from.methods)
        };
        if found.and_then(|found| found.variant(new)).is_some_and(is_alike) {
            return Ok(with);
        }
    }
    Err(CliError::misuse(
        "ops.yaml is left as it is: its list of variants is written in a way that is not looked through",
        format!("add to the variants of `{}`: {spelled}", op.name),
    ))
}
