//! The contract of a variant: what a kernel file must offer, and on what it is judged.
//!
//! It does not know the rules of judging: the resource on judging has them.

use serde_json::{Map, Value, json};

use super::child::{Fault, Program};
use super::files::Kernel;
use super::follow::Caller;
use super::verdict::document;
use crate::session::OPS;

/// What every kernel file must do, in short.
const MUST: [&str; 4] = [
    "the file is Python; it defines the function `entry`, which takes `parameters` by torch's names and in torch's order, and `@triton.jit` kernels, which compute the result",
    "torch may only allocate, fill, view, copy, cast, pad and concatenate for it, and compute what `allow` names",
    "it takes what the op's torch function takes: inputs that are not contiguous, that are empty, other values of `kwargs`, every dtype of `dtypes`",
    "it returns torch's shape, dtype and values within `tolerances` ([atol, rtol]), NaN and infinities among them, and leaves its inputs as they are",
];

/// An op as ops.yaml declares it, with nothing left to default.
#[derive(Debug)]
pub(super) struct Declared(Value);

impl Declared {
    /// Returns an op. Fails where ops.yaml is not there or not valid, or has no such op.
    pub(super) async fn of(program: &Program, caller: &Caller, op: &str) -> Result<Self, Fault> {
        // The command line takes a pattern or a list, too.
        let all = all(program, caller).await?;
        let names: Vec<String> = all.iter().map(|declared| quoted(&declared.0["op"]["name"])).collect();
        let found = all.into_iter().find(|declared| declared.0["op"]["name"] == op);
        found.ok_or_else(|| Fault::hinted(format!("there is no op `{op}`"), format!("there are {}", names.join(", "))))
    }

    /// Returns one of its variants. Fails where it has none of this name.
    pub(super) fn variant(&self, name: &str) -> Result<&Value, Fault> {
        let variants = self.0["variants"].as_array().into_iter().flatten();
        let names: Vec<String> = variants.clone().map(|variant| quoted(&variant["name"])).collect();
        let op = &self.0["op"]["name"];
        let unknown = || {
            Fault::hinted(
                format!("{} has no variant `{name}`", quoted(op)),
                format!("it has {}; `add_variant` adds one", names.join(", ")),
            )
        };
        variants.into_iter().find(|variant| variant["name"] == name).ok_or_else(unknown)
    }

    /// Returns the fields of the op.
    pub(super) fn op(&self) -> &Value {
        &self.0["op"]
    }

    /// Returns its variants.
    pub(super) fn variants(&self) -> &[Value] {
        self.0["variants"].as_array().map_or(&[], Vec::as_slice)
    }
}

fn quoted(name: &Value) -> String {
    format!("`{}`", name.as_str().unwrap_or_default())
}

/// Returns all ops, in the order of ops.yaml.
pub(super) async fn all(program: &Program, caller: &Caller) -> Result<Vec<Declared>, Fault> {
    if !program.root.join(OPS).exists() {
        let message = format!("there is no ops.yaml in `{}`", program.root.display());
        return Err(Fault::hinted(message, "`add_op` makes this folder a workspace"));
    }
    let (text, _) = program.print(&["graph", "--format", "ops"], &[], &[0], &caller.cancelled).await?;
    let ops: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    Ok(ops.into_iter().map(Declared).collect())
}

/// Returns the contract of a variant.
pub(super) async fn contract(program: &Program, caller: &Caller, op: &str, variant: &str) -> Result<Value, Fault> {
    let declared = Declared::of(program, caller, op).await?;
    let own = declared.variant(variant)?;
    let kernel = Kernel::of(&program.root, own);
    let fields = declared.op();
    let dtypes: Vec<&str> = fields["dtypes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let tolerances = dtypes.iter().map(|dtype| ((*dtype).to_owned(), fields["tolerances"][*dtype].clone()));
    let inputs = fields["inputs"].as_array().into_iter().flatten().filter_map(|input| input["name"].as_str());
    let kwargs = fields["kwargs"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let parameters: Vec<&str> = inputs.chain(kwargs).collect();
    Ok(json!({
        "op": op,
        "variant": variant,
        "file": own["file"],
        "may_submit": kernel.is_ok(),
        "entry": own["entry"],
        "must": MUST,
        "call": own["call"],
        "methods": own["methods"],
        "parameters": parameters,
        "lanes": own["lanes"],
        "replaces": if fields["torch"].is_null() { &fields["reference"] } else { &fields["torch"] },
        "inputs": fields["inputs"],
        "kwargs": fields["kwargs"],
        "dtypes": dtypes,
        "tolerances": tolerances.collect::<Map<_, _>>(),
        "precision": fields["precision"],
        "mutates": fields["mutates"],
        "overwrites": fields["overwrites"],
        "allow": fields["allow"],
        "backward": fields["backward"],
        "deterministic": own["deterministic"],
        "sizes": fields["sizes"],
        "check_sizes": fields["check_sizes"],
        "measured": fields["measured"],
        "seeds": fields["seeds"],
        "edges": fields["edges"],
        "cases": cases(program, caller, &declared, variant).await,
        "read": ["t2t:///docs/guide/judging.md", "t2t:///docs/guide/ops-yaml.md"],
    }))
}

/// Returns the names of the cases of the last check of a variant, or else of another one of the op: null where none was checked.
async fn cases(program: &Program, caller: &Caller, declared: &Declared, variant: &str) -> Value {
    let op = declared.op()["name"].as_str().unwrap_or_default();
    let names = declared.variants().iter().filter_map(|other| other["name"].as_str());
    let ordered = std::iter::once(variant).chain(names.filter(|name| *name != variant));
    for name in ordered {
        let verdict = document(program, caller, &format!("{op}/{name}:check"), "verdict").await;
        if let Some(cases) = verdict["cases"].as_object() {
            return cases.keys().cloned().collect();
        }
    }
    Value::Null
}
