//! The tools that look: ops and their state, analyses, kernels, explanations, logs, attempts, what the compiler made. And a build of what is named.
//!
//! It does not know how a client shows them.

use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};
use t2t_store::fs;

use super::arguments::{OfExplanation, OfLog, OfOp, OfStage, OfTargets, OfVariant};
use super::child::{Fault, Program};
use super::contract::{self, Declared};
use super::files::{Kernel, LONGEST, failed};
use super::follow::{self, Caller};
use super::ledger::submissions;
use super::verdict::{document, failure, shown};

/// Returns every op with its variants, and how each of its actions stands.
pub(super) async fn ops(program: &Program, caller: &Caller) -> Result<Value, Fault> {
    let declared = contract::all(program, caller).await?;
    let (text, _) = program.print(&["status", "--format", "json"], &[], &[0], &caller.cancelled).await?;
    let states: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let of = |place: &str| -> Map<String, Value> {
        let phase = |state: &Value| {
            let (of, phase) = state["target"].as_str()?.split_once(':')?;
            // Of several attempts at a kernel, that which counts.
            (of.split('#').next() == Some(place) && state["counts"] == true).then(|| phase.to_owned())
        };
        states.iter().filter_map(|state| Some((phase(state)?, state_of(state)))).collect()
    };
    let ops = declared.iter().map(|op| {
        let fields = op.op();
        let name = fields["name"].as_str().unwrap_or_default();
        let variants = op.variants().iter().map(|variant| {
            let own = variant["name"].as_str().unwrap_or_default();
            json!({"variant": own, "file": variant["file"], "generated": variant["generated"], "phases": of(&format!("{name}/{own}"))})
        });
        json!({
            "op": name,
            "replaces": if fields["torch"].is_null() { &fields["reference"] } else { &fields["torch"] },
            "dtypes": fields["dtypes"],
            "phases": of(name),
            "variants": variants.collect::<Vec<_>>(),
        })
    });
    Ok(json!({"workspace": program.root, "ops": ops.collect::<Vec<_>>()}))
}

fn state_of(state: &Value) -> Value {
    let names = ["state", "outcome", "class", "why"];
    let told = names.iter().filter(|name| !state[**name].is_null() && state[**name] != json!([]));
    told.map(|name| ((*name).to_owned(), state[*name].clone())).collect::<Map<_, _>>().into()
}

/// Returns the analysis of an op, made first if it is stale.
pub(super) async fn analysis(program: &Program, caller: &Caller, asked: &OfOp) -> Result<Value, Fault> {
    Declared::of(program, caller, &asked.op).await?;
    let target = format!("{}:analyze", asked.op);
    let (followed, ended) = follow::build(program, caller, &[&target]).await?;
    if let Some(event) = followed.failures.first() {
        return Err(Fault::Told(event["text"].as_str().unwrap_or_default().to_owned()));
    }
    let analysis = document(program, caller, &target, "analysis").await;
    if analysis.is_null() { Err(ended.fault()) } else { Ok(analysis) }
}

/// Returns the text of a variant's kernel file.
pub(super) async fn kernel(program: &Program, caller: &Caller, asked: &OfVariant) -> Result<Value, Fault> {
    let declared = Declared::of(program, caller, &asked.op).await?;
    let kernel = Kernel::of(&program.root, declared.variant(&asked.variant)?)?;
    let read = fs::read_below(&program.root, Path::new(&kernel.file), LONGEST as u64);
    let bytes = read.map_err(|error| unread(&kernel.file, &error, "`submit_kernel` writes it"))?;
    Ok(json!({"file": kernel.file, "source": String::from_utf8_lossy(&bytes)}))
}

/// Brings what is named up to date, and returns how each action ended and each failure.
pub(super) async fn build(program: &Program, caller: &Caller, asked: &OfTargets) -> Result<Value, Fault> {
    let targets: Vec<&str> = asked.targets.iter().map(String::as_str).collect();
    let (followed, ended) = follow::build(program, caller, &targets).await?;
    Ok(json!({
        "exit_code": ended.code,
        "actions": followed.actions.values().map(shown).collect::<Vec<_>>(),
        "failures": followed.failures.iter().map(failure).collect::<Vec<_>>(),
        "said": followed.notes,
    }))
}

/// Returns that a file could not be read, and what makes it where it is not there.
fn unread(file: &str, error: &io::Error, made: &str) -> Fault {
    if error.kind() == io::ErrorKind::NotFound {
        return Fault::hinted(format!("`{file}` is not there"), made);
    }
    failed(file, "read", error)
}

/// Returns what `t2t explain` prints.
pub(super) async fn explain(program: &Program, caller: &Caller, asked: &OfExplanation) -> Result<Value, Fault> {
    if asked.targets.is_empty() {
        let hint = "name some, as `softmax/v2_tiling:check`, or a class of rejections, as `mismatch`";
        return Err(Fault::hinted("no target is named", hint));
    }
    let targets: Vec<&str> = asked.targets.iter().map(String::as_str).collect();
    let (text, ended) = program.print(&["explain"], &targets, &[0], &caller.cancelled).await?;
    Ok(json!({"text": text, "said": ended.said}))
}

/// Returns the log of an op, or the summary of all.
pub(super) async fn log(program: &Program, caller: &Caller, asked: &OfLog) -> Result<Value, Fault> {
    let Some(op) = &asked.op else {
        let read = fs::read_below(&program.root, Path::new("logs/summary.md"), LONGEST as u64);
        let bytes = read.map_err(|error| unread("logs/summary.md", &error, "`build` without targets writes it"))?;
        return Ok(json!({"text": String::from_utf8_lossy(&bytes)}));
    };
    Declared::of(program, caller, op).await?;
    let (text, ended) = program.print(&["log"], &[op], &[0], &caller.cancelled).await?;
    Ok(json!({"text": text, "said": ended.said}))
}

/// Returns what was submitted for a variant, and what `t2t attempts` says of it where t2t has that command.
pub(super) async fn attempts(program: &Program, caller: &Caller, asked: &OfVariant) -> Result<Value, Fault> {
    let (op, variant) = (&asked.op, &asked.variant);
    Declared::of(program, caller, op).await?.variant(variant)?;
    let printed = program.print(&["attempts"], &[&format!("{op}/{variant}")], &[0], &caller.cancelled).await;
    let generated = match printed {
        Ok((text, _)) => json!(text),
        Err(Fault::Told(_)) => Value::Null,
        Err(cancelled) => return Err(cancelled),
    };
    Ok(json!({"submitted": submissions(&program.root, op, variant), "generated": generated}))
}

/// Returns lines of what the compiler made of a variant.
pub(super) async fn ir(program: &Program, caller: &Caller, asked: &OfStage) -> Result<Value, Fault> {
    let (op, variant) = (&asked.op, &asked.variant);
    Declared::of(program, caller, op).await?.variant(variant)?;
    let kernel = asked.kernel.as_ref().map(|name| format!("--kernel={name}"));
    let mut command = vec!["ir", "--stage", asked.stage.name()];
    command.extend(kernel.as_deref());
    let (text, ended) = program.print(&command, &[&format!("{op}/{variant}")], &[0], &caller.cancelled).await?;
    let from = asked.from_line.max(1);
    let lines: Vec<&str> = text.lines().skip(from - 1).take(asked.lines).collect();
    Ok(
        json!({"text": lines.join("\n"), "from_line": from, "lines": lines.len(), "of_lines": text.lines().count(), "said": ended.said}),
    )
}
