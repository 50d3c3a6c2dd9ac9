//! New ops: by the names of torch operations, or by an entry of ops.yaml that the agent wrote.
//!
//! It does not know how a name becomes an entry: `t2t add` does.

use std::path::Path;

use serde_json::{Value, json};
use t2t_model::problem;
use t2t_spec::{Spec, entry};
use t2t_store::fs;

use super::arguments::{OfEntry, OfNames, OfNew};
use super::child::{Fault, Program};
use super::contract::Declared;
use super::files::{failed, hold};
use super::follow::Caller;
use crate::cli::init;
use crate::session::OPS;

/// Adds ops by name, as `t2t add` does, and returns what it said.
pub(super) async fn by_name(program: &Program, caller: &Caller, asked: &OfNames) -> Result<Value, Fault> {
    if asked.names.is_empty() {
        return Err(Fault::hinted("no operation is named", "name some, as `softmax` or `F.gelu`"));
    }
    // One word: a name that looks like an option is none.
    let variants = format!("--variants={}", asked.variants.join(","));
    let command = if asked.variants.is_empty() { vec!["add"] } else { vec!["add", &variants] };
    let names: Vec<&str> = asked.names.iter().map(String::as_str).collect();
    let (_, ended) = program.print(&command, &names, &[0], &caller.cancelled).await?;
    Ok(json!({"said": ended.said.lines().collect::<Vec<_>>()}))
}

/// Adds a variant to an op, as `t2t new` does, and returns what it said.
pub(super) async fn variant(program: &Program, caller: &Caller, asked: &OfNew) -> Result<Value, Fault> {
    Declared::of(program, caller, &asked.op).await?;
    // One word: a name that looks like an option is none.
    let from = asked.from.as_ref().map(|from| format!("--from={from}"));
    let command: Vec<&str> = ["new"].into_iter().chain(from.as_deref()).collect();
    let target = format!("{}/{}", asked.op, asked.variant);
    let (_, ended) = program.print(&command, &[&target], &[0], &caller.cancelled).await?;
    Ok(json!({"said": ended.said.lines().collect::<Vec<_>>()}))
}

/// Adds an entry at the end of the ops. Fails, and leaves the file as it is, where the whole would not be valid or more than one op would be new.
pub(super) fn by_entry(root: &Path, asked: &OfEntry) -> Result<Value, Fault> {
    let _held = hold(root)?;
    let place = root.join(OPS);
    let before = fs::read_if_there(&place).map_err(|error| failed(OPS, "read", &error))?;
    let bytes = before.clone().unwrap_or_else(|| b"version: 1\n".to_vec());
    // A file that has no ops yet is not valid, and is made so.
    let known: Vec<String> = Spec::parse(OPS, &bytes, None).map(|spec| names(&spec)).unwrap_or_default();
    let text = String::from_utf8(bytes).map_err(|error| failed(OPS, "read", &error))?;
    let entry = format!("{}\n", at_the_margin(asked.entry.trim_matches('\n')));
    let Some(text) = entry::inserted(&text, &entry) else {
        return Err(Fault::hinted("the ops of ops.yaml are no blocks of their own", "write the entry by hand"));
    };
    let spec = Spec::parse(OPS, text.as_bytes(), None).map_err(|problems| Fault::Told(problem::render(&problems)))?;
    let new: Vec<String> = names(&spec).into_iter().filter(|name| !known.contains(name)).collect();
    let [op] = new.as_slice() else {
        return Err(Fault::hinted(
            format!("the entry makes {} new ops", new.len()),
            "write one op: its name as the key, at the margin, its fields below it, indented by two",
        ));
    };
    fs::write_linked(&place, text.as_bytes()).map_err(|error| failed(OPS, "write", &error))?;
    if before.is_none() {
        init::ignore(root).map_err(|error| failed(".gitignore", "write", &error))?;
    }
    Ok(json!({"op": op}))
}

/// Returns lines without the indentation that all of them have, as an entry has in ops.yaml.
fn at_the_margin(text: &str) -> String {
    let written = text.lines().filter(|line| !line.trim().is_empty());
    let common = written.map(|line| line.len() - line.trim_start_matches(' ').len()).min().unwrap_or_default();
    text.lines().map(|line| line.get(common..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn names(spec: &Spec) -> Vec<String> {
    spec.ops.iter().map(|op| op.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::at_the_margin;

    #[test]
    fn an_entry_may_be_indented_as_in_ops_yaml() {
        assert_eq!(at_the_margin("  gelu:\n    torch: gelu\n\n    inputs: {}"), "gelu:\n  torch: gelu\n\n  inputs: {}");
        assert_eq!(at_the_margin("gelu:\n  torch: gelu"), "gelu:\n  torch: gelu");
        assert_eq!(at_the_margin(""), "");
    }
}
