//! The prompt: what an author of a kernel is told, from documents and a template, and the same as JSON.
//!
//! It does not know who is asked. Facts of an op come as ops.yaml declares them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use t2t_protocol::{Analysis, Failure, Resources};

use crate::render::problem::Problem;
use crate::render::resources::{self, KernelRow};
use crate::render::{RenderError, Template, render};

/// The version of the request as JSON.
const VERSION: u32 = 1;

/// All that an author is told.
#[derive(Clone, Debug)]
pub struct Prompt<'a> {
    /// The op's name.
    pub op: &'a str,
    /// The variant's name.
    pub variant: &'a str,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// What the kernel's file is to be called.
    pub file: &'a str,
    /// What the op declares: name → value.
    pub declaration: &'a BTreeMap<String, Value>,
    /// What the variant declares, likewise.
    pub declared: &'a BTreeMap<String, Value>,
    /// The text of the reference's file, where no torch function is replaced.
    pub reference: Option<&'a str>,
    /// The document `analysis`.
    pub analysis: Option<&'a Analysis>,
    /// The devices that kernels are compiled for: id → row of the table.
    pub devices: &'a BTreeMap<String, Value>,
    /// Other kernels of the op.
    pub neighbours: &'a [Neighbour],
    /// The attempt before, which failed.
    pub before: Option<Before<'a>>,
}

/// Another kernel of the op.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    /// Its variant.
    pub variant: String,
    /// Its text.
    pub source: String,
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub struct Before<'a> {
    /// Which one, from 1.
    pub attempt: u32,
    /// Its kernel, where it had one.
    pub source: Option<&'a str>,
    /// The phase that rejected it.
    pub phase: &'a str,
    /// Why.
    pub failure: &'a Failure,
    /// What its compiled kernels use.
    pub resources: Option<&'a Resources>,
}

/// What a template may name.
#[derive(Serialize)]
struct Context<'a> {
    op: &'a str,
    variant: &'a str,
    attempt: u32,
    file: &'a str,
    entry: &'a Value,
    call: &'a Value,
    replaces: String,
    parameters: Vec<&'a str>,
    declaration: &'a BTreeMap<String, Value>,
    inputs: Vec<String>,
    kwargs: String,
    tolerances: BTreeMap<&'a str, &'a Value>,
    reference: Option<&'a str>,
    analysis: Option<&'a Analysis>,
    devices: Vec<(&'a str, Vec<String>)>,
    neighbours: &'a [Neighbour],
    before: Option<BeforeContext<'a>>,
}

#[derive(Serialize)]
struct BeforeContext<'a> {
    attempt: u32,
    source: Option<&'a str>,
    problem: Problem,
    kernels: Vec<KernelRow>,
}

/// Returns the prompt. Fails where the template is wrong.
pub fn prompt(template: Template<'_>, told: &Prompt<'_>) -> Result<String, RenderError> {
    render(template, &told.context())
}

/// Returns the same as JSON, for programs.
#[must_use]
pub fn request(told: &Prompt<'_>) -> Value {
    let before = told.before.as_ref().map(|before| {
        json!({
            "attempt": before.attempt,
            "source": before.source,
            "phase": before.phase,
            "failure": before.failure,
            "resources": before.resources,
        })
    });
    let mut request = json!({
        "version": VERSION,
        "op": told.op,
        "variant": told.variant,
        "attempt": told.attempt,
        "file": told.file,
        "entry": told.declared.get("entry"),
        "call": told.declared.get("call"),
        "declaration": told.declaration,
        "reference": told.reference,
        "analysis": told.analysis,
        "devices": told.devices,
        "neighbours": told.neighbours,
        "before": before,
    });
    if let Some(methods) = told.declared.get("methods") {
        request["methods"] = methods.clone();
    }
    request
}

impl Prompt<'_> {
    fn context(&self) -> Context<'_> {
        const NOTHING: &Value = &Value::Null;
        let field = |name: &str| self.declaration.get(name).unwrap_or(NOTHING);
        let inputs = || field("inputs").as_array().into_iter().flatten();
        let names = inputs().filter_map(|input| input["list"].as_str().or_else(|| input["name"].as_str()));
        let kwargs = field("kwargs").as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let mut parameters: Vec<&str> = names.chain(kwargs).collect();
        parameters.dedup();
        let dtypes = field("dtypes").as_array().into_iter().flatten().filter_map(Value::as_str);
        Context {
            op: self.op,
            variant: self.variant,
            attempt: self.attempt,
            file: self.file,
            entry: self.declared.get("entry").unwrap_or(NOTHING),
            call: self.declared.get("call").unwrap_or(NOTHING),
            replaces: field("torch").as_str().map_or_else(|| reference(field("reference")), str::to_owned),
            parameters,
            declaration: self.declaration,
            inputs: inputs().map(Value::to_string).collect(),
            kwargs: field("kwargs").to_string(),
            tolerances: dtypes.filter_map(|dtype| Some((dtype, field("tolerances").get(dtype)?))).collect(),
            reference: self.reference,
            analysis: self.analysis,
            devices: self.devices.iter().map(|(id, row)| (id.as_str(), facts(row))).collect(),
            neighbours: self.neighbours,
            before: self.before.as_ref().map(|before| BeforeContext {
                attempt: before.attempt,
                source: before.source,
                problem: Problem::of(before.phase, before.failure),
                kernels: before.resources.map(resources::rows).unwrap_or_default(),
            }),
        }
    }
}

/// Returns a reference as it is written: `FILE.py::NAME`.
fn reference(declared: &Value) -> String {
    let part = |name: &str| declared[name].as_str().unwrap_or_default().to_owned();
    format!("{}::{}", part("file"), part("name"))
}

/// Returns what the table says of a device, a line each.
fn facts(row: &Value) -> Vec<String> {
    let facts = row.as_object().into_iter().flatten().filter(|(name, _)| *name != "rank");
    facts.map(|(name, value)| format!("{}: {value}", name.replace('_', " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = include_str!("../../../../assets/prompts/kernel.md");

    fn rendered(before: Option<Before<'_>>, neighbours: &[Neighbour]) -> (String, Value) {
        let declaration = json!({
            "name": "softmax", "torch": "torch.softmax", "reference": null, "kwargs": {"dim": -1}, "dtypes": ["float32"],
            "inputs": [{"name": "input", "shape": ["M", "N"], "dtype": null}], "tolerances": {"float32": [1e-5, 1e-5]},
            "precision": "ieee", "mutates": [], "overwrites": ["input"], "allow": ["sum"], "backward": true, "broadcast": false,
            "deterministic": true, "edges": {}, "sizes": {"small": {"M": 16, "N": 16}}, "fixed": [], "outputs": null,
            "random": null,
        });
        let declaration: BTreeMap<String, Value> = serde_json::from_value(declaration).unwrap();
        let declared: BTreeMap<String, Value> =
            serde_json::from_value(json!({"name": "v1", "entry": "triton_softmax", "call": null})).unwrap();
        let devices = BTreeMap::from([("nvidia-h200".to_owned(), json!({"shared_memory": 232_448, "rank": 1}))]);
        let told = Prompt {
            op: "softmax",
            variant: "v1",
            attempt: before.as_ref().map_or(1, |before| before.attempt + 1),
            file: "v1.py",
            declaration: &declaration,
            declared: &declared,
            reference: None,
            analysis: Some(&Analysis { operation: "the softmax".to_owned(), ..Analysis::default() }),
            devices: &devices,
            neighbours,
            before,
        };
        let text = prompt(Template { path: "assets/prompts/kernel.md", text: TEMPLATE }, &told).unwrap();
        (text, request(&told))
    }

    #[test]
    fn an_author_is_told_the_contract_the_analysis_and_the_devices() {
        let (text, request) = rendered(None, &[]);
        for part in [
            "`v1.py`",
            "`triton_softmax`",
            "`torch.softmax`",
            "the softmax",
            "shared memory: 232448",
            "`sum`",
            "In input it may leave anything.",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        assert!(!text.contains("attempt before") && !text.contains("rank"), "{text}");
        assert_eq!((&request["entry"], &request["before"]), (&json!("triton_softmax"), &Value::Null));
    }

    #[test]
    fn a_later_attempt_is_told_of_the_failure_and_of_the_kernel_before() {
        let failure =
            Failure { case: Some("edge/strided".to_owned()), ..Failure::new("mismatch", "3 elements differ") };
        let before =
            Before { attempt: 2, source: Some("x = '```'\n"), phase: "check", failure: &failure, resources: None };
        let neighbours = [Neighbour { variant: "v0".to_owned(), source: "y = 1\n".to_owned() }];
        let (text, request) = rendered(Some(before), &neighbours);
        for part in ["mismatch", "3 elements differ", "edge/strided", "x = '```'", "y = 1", "````"] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        assert_eq!(request["before"]["failure"]["class"], "mismatch");
        assert_eq!(request["attempt"], 3);
    }
}
