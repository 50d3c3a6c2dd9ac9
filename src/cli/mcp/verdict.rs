//! What is told of a variant after a build: the verdict, each failure, what the compiled kernels use, and the figures.
//!
//! It does not know why the variant was built.

use serde_json::{Map, Value, json};

use super::child::{Ended, Program};
use super::follow::{Caller, Followed};

/// Returns what came of a build of the variant `target`, as `softmax/v2_tiling`.
pub(super) async fn of_variant(
    program: &Program,
    caller: &Caller,
    target: &str,
    followed: &Followed,
    ended: &Ended,
) -> Value {
    // A source that a generator wrote, too, is one of its attempts: the last of them stands.
    let last = followed.actions.keys().filter_map(|name| attempt(name, target)).max();
    let is_own = |event: &&Value| event["target"].as_str().and_then(|name| attempt(name, target)) == last;
    let phases: Vec<Value> = followed.actions.values().filter(is_own).map(shown).collect();
    let failures: Vec<Value> = followed.failures.iter().filter(is_own).map(failure).collect();
    let (verdict, class) = verdict(&phases);
    let check = document(program, caller, &format!("{target}:check"), "verdict").await;
    let evidence = document(program, caller, &format!("{target}:check"), "evidence").await;
    let resources = document(program, caller, &format!("{target}:compile"), "resources").await;
    let is_bench = |phase: &Value| phase["target"].as_str().is_some_and(|name| name.ends_with(":bench"));
    let measured = phases.iter().any(|phase| is_bench(phase) && phase["outcome"] == "passed");
    let bench =
        if measured { document(program, caller, &format!("{target}:bench"), "bench").await } else { Value::Null };
    json!({
        "target": target,
        "verdict": verdict,
        "class": class,
        "failures": failures,
        "cases": counted(&check),
        "notes": evidence["notes"],
        "worst": evidence["worst"],
        "resources": used(&resources),
        "figures": figures(&bench),
        "phases": phases,
        "said": followed.notes,
        "exit_code": ended.code,
    })
}

/// Returns a document of an action's last result; null where there is none.
pub(super) async fn document(program: &Program, caller: &Caller, target: &str, name: &str) -> Value {
    let printed = program.print(&["artifact"], &[target, name], &[0], &caller.cancelled).await;
    printed.ok().and_then(|(text, _)| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Returns how an action ended, from its event.
pub(super) fn shown(event: &Value) -> Value {
    picked(event, &["target", "how", "outcome", "class", "wall_ms", "why"])
}

/// Returns a failure, from its event.
pub(super) fn failure(event: &Value) -> Value {
    picked(event, &["target", "class", "case", "message", "file", "line", "column", "excerpt", "hint", "text"])
}

fn picked(value: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), value[*name].clone())).collect::<Map<_, _>>().into()
}

/// Returns which attempt at the variant `target` an action belongs to, from 1; None where it is of another.
fn attempt(action: &str, target: &str) -> Option<usize> {
    let rest = action.strip_prefix(target)?;
    match rest.strip_prefix('#') {
        Some(number) => number.split(':').next()?.parse().ok(),
        None => rest.starts_with(':').then_some(1),
    }
}

/// Returns the verdict on all phases together, and the class of the first rejection.
fn verdict(phases: &[Value]) -> (&'static str, Value) {
    if let Some(rejected) = phases.iter().find(|phase| phase["outcome"] == "rejected") {
        return ("rejected", rejected["class"].clone());
    }
    let some = |name: &str, word: &str| phases.iter().any(|phase| phase[name] == word);
    let word = if some("how", "lost") {
        "lost"
    } else if some("outcome", "not-judged") {
        "not-judged"
    } else if !phases.is_empty() && phases.iter().all(|phase| phase["outcome"] == "passed") {
        "passed"
    } else {
        "unfinished"
    };
    (word, Value::Null)
}

/// Returns how many cases have each verdict.
fn counted(check: &Value) -> Value {
    let mut counts: Map<String, Value> = Map::new();
    for verdict in check["cases"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_str) {
        let count = counts.get(verdict).and_then(Value::as_u64).unwrap_or_default();
        counts.insert(verdict.to_owned(), (count + 1).into());
    }
    counts.into()
}

/// Returns what each compiled kernel uses.
fn used(resources: &Value) -> Value {
    let names = ["kernel", "target", "config", "constants", "num_warps", "num_stages", "registers", "spills", "shared"];
    let kernels = resources["kernels"].as_array().into_iter().flatten();
    kernels.map(|kernel| picked(kernel, &names)).collect()
}

/// Returns the figures of a bench: milliseconds of each size, and by how much the variant is faster than torch.
fn figures(bench: &Value) -> Value {
    if bench.is_null() {
        return Value::Null;
    }
    let size = |size: &Value| {
        json!({
            "dims": size["binding"],
            "dtype": size["dtype"],
            "variant_ms": size["variant"]["mean"],
            "torch_ms": size["torch"]["mean"],
            "interpreter_ms": size["interpreter_ms"],
        })
    };
    let sizes = bench["sizes"].as_object().into_iter().flatten();
    let sizes: Map<String, Value> = sizes.map(|(name, figure)| (name.clone(), size(figure))).collect();
    json!({
        "device": bench["device"]["model"],
        "sizes": sizes,
        "speedup": bench["speedup"],
        "geomean_speedup": bench["geomean_speedup"],
        "unstable": bench["unstable"],
        "why_unstable": bench["why_unstable"],
    })
}
