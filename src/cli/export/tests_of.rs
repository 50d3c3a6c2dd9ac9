//! The tests of what is exported: a file of Python that is the same for all, and the cases as ops.yaml declares them.
//!
//! It does not know the kernels.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use t2t_spec::{Op, Profile, TorchName};
use t2t_store::fs;

use super::super::error::CliError;
use super::text::Exported;

/// The files that are the same for all packages. What draws inputs is the harness's own.
const FILES: [(&str, &str); 4] = [
    ("tests/conftest.py", include_str!("../../../assets/export/conftest.py")),
    ("tests/test_ops.py", include_str!("../../../assets/export/tests.py")),
    ("tests/t2t_drawing.py", include_str!("../../../python/t2t_harness/cases/drawing.py")),
    ("tests/t2t_expression.py", include_str!("../../../python/t2t_harness/op/expression.py")),
];

/// What the tests read of a declaration.
const READ: [&str; 11] = [
    "inputs",
    "kwargs",
    "outputs",
    "dtypes",
    "sizes",
    "check_sizes",
    "seeds",
    "tolerances",
    "mutates",
    "overwrites",
    "backward",
];

/// Adds the tests to the files of the package. Fails where a file with values of an input cannot be read.
pub(super) fn add(
    package: &str,
    root: &Path,
    ops: &[Exported<'_>],
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), CliError> {
    files.extend(FILES.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())));
    let mut told = Map::new();
    for exported in ops {
        let op = exported.subject.op;
        for value in op.values() {
            let bytes = fs::read(&root.join(value)).map_err(|error| {
                CliError::misuse(format!("`{value}`: {error}"), "write the file that ops.yaml names")
            })?;
            files.insert(format!("tests/{}", values_place(value)), bytes);
        }
        told.insert(op.name.clone(), of_op(exported));
    }
    let cases = json!({"package": package, "ops": told});
    files.insert("tests/cases.json".to_owned(), format!("{cases:#}\n").into_bytes());
    Ok(())
}

fn of_op(exported: &Exported<'_>) -> Value {
    let op = exported.subject.op;
    let reference = op.reference.as_ref().zip(exported.reference.as_ref());
    json!({
        "function": exported.function(),
        "needs_device": exported.needs_device(),
        "torch": op.torch.as_ref().map(TorchName::as_str),
        "reference": reference.map(|(named, taken)| json!({"module": taken.module, "name": named.name, "init": named.init})),
        "cpu": declaration(op, Profile::Cpu),
        "cuda": declaration(op, Profile::Cuda),
    })
}

fn declaration(op: &Op, profile: Profile) -> Value {
    let mut whole = json!(op.declaration(profile));
    let mut read: Map<String, Value> = READ.iter().map(|name| ((*name).to_owned(), whole[*name].take())).collect();
    let inputs = read.get_mut("inputs").and_then(Value::as_array_mut);
    for path in inputs.into_iter().flatten().filter_map(|input| input.pointer_mut("/init/path")) {
        *path = json!(values_place(path.as_str().unwrap_or_default()));
    }
    Value::Object(read)
}

/// Returns where a file with values lies beside the tests.
fn values_place(file: &str) -> String {
    format!("values/{file}")
}
