//! The Python files of a package, and what is told of it for people and tools, from what is exported.
//!
//! It writes no file.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};
use t2t_spec::Op;

use super::kernel::Kernel;
use super::signature::Parameter;
use super::sources::{Taken, identifier};
use super::subject::Subject;

/// The version of a package: that of what it is made with says nothing of the kernels.
pub(super) const VERSION: &str = "0.1.0";

/// An op as it is written.
#[derive(Debug)]
pub(super) struct Exported<'a> {
    /// What was chosen.
    pub(super) subject: Subject<'a>,
    /// All variants that go along, the chosen one first.
    pub(super) kernels: Vec<Kernel<'a>>,
    /// The file of its reference, where that is what the op is.
    pub(super) reference: Option<Taken>,
    /// What the function takes.
    pub(super) parameters: Vec<Parameter>,
}

impl Exported<'_> {
    /// Returns the name of the function.
    pub(super) fn function(&self) -> String {
        identifier(&self.subject.op.name)
    }

    /// Returns the name of its module.
    pub(super) fn module(&self) -> String {
        format!("_op_{}", self.function())
    }

    /// Returns what the op is by definition, for people.
    pub(super) fn definition(&self) -> String {
        definition(self.subject.op)
    }

    /// Returns the parameters as Python defines them.
    pub(super) fn signature(&self) -> String {
        let mut text = String::new();
        let mut is_named = false;
        for one in &self.parameters {
            if one.is_keyword_only && !is_named {
                is_named = true;
                text.push_str("*, ");
            }
            let default = one.default.as_ref().map(|default| format!(" = {default}")).unwrap_or_default();
            let _ = write!(text, "{}: Any{default}, ", one.name);
        }
        text.trim_end_matches(", ").to_owned()
    }

    /// Returns the names of the parameters, as a call has them.
    pub(super) fn given(&self) -> String {
        self.parameters.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Tells whether the kernel that was chosen names libdevice: then it runs on a device alone.
    pub(super) fn needs_device(&self) -> bool {
        self.kernels.first().is_some_and(|kernel| kernel.taken.names_libdevice)
    }

    /// Returns the call of the variant that serves the arguments.
    pub(super) fn served(&self) -> String {
        let inputs = super::signature::inputs(self.subject.op);
        let names = self.parameters.iter().map(|one| &one.name).filter(|name| inputs.contains(name));
        // A tuple of one has a comma, too.
        let tensors = names.fold(String::new(), |text, name| text + name + ", ");
        format!("VARIANTS[_dispatch.choice(ON, CHOSEN, ({tensors}))]({})", self.given())
    }
}

fn definition(op: &Op) -> String {
    match (&op.torch, &op.reference) {
        (Some(name), _) => name.as_str().to_owned(),
        (None, Some(reference)) => format!("{} of {}", reference.name, reference.file),
        (None, None) => op.name.clone(),
    }
}

/// Returns the module of an op, whose variants are called by the functions `callers`. It needs the modules `imports` of the package, and `function` is what it exports.
pub(super) fn module(op: &Exported<'_>, callers: &[String], imports: &str, function: &str) -> String {
    let chosen = &op.subject.chosen;
    let on = op.subject.elsewhere.iter().map(|(name, chosen)| format!("{name:?}: {:?}", chosen.variant));
    let variants = op.kernels.iter().map(|kernel| format!("    {:?}: {},\n", kernel.variant.name, kernel.caller()));
    format!(
        "\"\"\"`{definition}` by kernels in Triton that `t2t` checked and measured. Written by `t2t export`.\"\"\"\n\n\
         from __future__ import annotations\n\nfrom typing import Any\n\nfrom . import {imports}\n\n\
         CHOSEN = {variant:?}\n\
         \"\"\"The variant that was chosen on {device}.\"\"\"\n\n\
         ON: dict[str, str] = {{{on}}}\n\
         \"\"\"The name of a device, as its driver gives it: the variant that was chosen there, where it is another one.\"\"\"\n\n\n\
         {callers}\n\n\
         VARIANTS = {{\n{variants}}}\n\n\n{function}",
        definition = op.definition(),
        variant = chosen.variant,
        device = chosen.device,
        on = on.collect::<Vec<_>>().join(", "),
        callers = callers.join("\n\n"),
        variants = variants.collect::<String>(),
    )
}

/// Returns the function that is exported, which returns `value`.
pub(super) fn function(op: &Exported<'_>, value: &str) -> String {
    format!(
        "def {}({}) -> Any:\n    \"\"\"Returns what `{}` returns.\"\"\"\n    return {value}\n",
        op.function(),
        op.signature(),
        op.definition(),
    )
}

/// Returns the package's own module.
pub(super) fn package(ops: &[Exported<'_>]) -> String {
    let mut text = "\"\"\"Operations of torch by kernels in Triton. Written by `t2t export`: `provenance.json` says where they come from.\"\"\"\n\n".to_owned();
    for op in ops {
        let _ = writeln!(text, "from .{} import {}", op.module(), op.function());
    }
    let names: Vec<String> = ops.iter().map(|op| format!("{:?}", op.function())).collect();
    let _ = write!(text, "\n__all__ = [{}]\n__version__ = {VERSION:?}\n", names.join(", "));
    text
}

/// Returns `README.md`, where `beginning` says how it is used.
pub(super) fn readme(name: &str, beginning: &str, ops: &[Exported<'_>]) -> String {
    let mut text = format!(
        "# {name}\n\nOperations of torch by kernels in Triton, written by `t2t export`.\n\n{beginning}\n\
         | function | is | kernel | chosen on | torch takes so many times as long |\n| --- | --- | --- | --- | --- |\n"
    );
    for op in ops {
        let chosen = &op.subject.chosen;
        let speedup =
            chosen.figures["speedup"].as_f64().map_or("not measured".to_owned(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} | {} | {speedup} |",
            op.function(),
            op.definition(),
            chosen.variant,
            chosen.device
        );
    }
    text.push_str(
        "\nA function takes what torch's takes, as far as the op declares it or its kernel knows it. It computes gradients only where its kernel does: \
         `provenance.json` says of which ops they were checked (`gradients`). It also has the figures, the keys of the records, and where each source comes from.\n\n\
         The tests hold each function to torch's own. They run on a CUDA device, or in Triton's interpreter where there is none. That is the interpreter as Triton has it: \
         a check of t2t knows more of the language, and tries far more.\n",
    );
    let with_cases: Vec<&str> =
        ops.iter().filter(|op| op.subject.op.cases.is_some()).map(|op| op.subject.op.name.as_str()).collect();
    let on_a_device: Vec<&str> =
        ops.iter().filter(|op| op.needs_device()).map(|op| op.subject.op.name.as_str()).collect();
    if !on_a_device.is_empty() {
        let _ = writeln!(
            text,
            "\nOnly on a CUDA device, since the chosen kernel calls libdevice, which Triton's interpreter does not have: {}. Their tests are skipped where there is none.",
            on_a_device.join(", ")
        );
    }
    if !with_cases.is_empty() {
        let _ = writeln!(
            text,
            "\nCases of a file of their own (`cases:` in ops.yaml) are not among the tests: {}.",
            with_cases.join(", ")
        );
    }
    text
}

/// Returns `provenance.json`.
pub(super) fn provenance(
    form: &str,
    versions: &BTreeMap<String, String>,
    ops: &[Exported<'_>],
    sources: &Value,
) -> Value {
    let told = ops.iter().map(|op| {
        let mut row = super::subject::told(&op.subject.chosen);
        let elsewhere: BTreeMap<&String, Value> =
            op.subject.elsewhere.iter().map(|(name, chosen)| (name, super::subject::told(chosen))).collect();
        let files: BTreeMap<&str, &Vec<String>> =
            op.kernels.iter().map(|kernel| (kernel.variant.name.as_str(), &kernel.taken.files)).collect();
        row["definition"] = json!(op.definition());
        row["function"] = json!(op.function());
        row["gradients"] = json!(op.subject.op.backward);
        row["elsewhere"] = json!(elsewhere);
        row["files"] = json!(files);
        (op.subject.op.name.clone(), row)
    });
    let told: BTreeMap<String, Value> = told.collect();
    json!({
        "version": 1,
        "written_by": format!("t2t export --as {form}"),
        "t2t": env!("CARGO_PKG_VERSION"),
        "versions": versions,
        "ops": told,
        "sources": sources,
    })
}
