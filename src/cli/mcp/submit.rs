//! A kernel for a variant: its source becomes the variant's file, the variant is built, and the verdict is told.
//!
//! It does not know how a kernel is judged.

use serde_json::{Value, json};
use t2t_model::digest::Digest;
use t2t_store::fs;

use super::arguments::OfKernel;
use super::child::{Fault, Program};
use super::contract::Declared;
use super::files::{Kernel, LONGEST, failed};
use super::follow::{self, Caller};
use super::ledger::Ledger;
use super::verdict;

/// Puts a kernel in its place and builds the variant. A file that a person wrote is left as it is, unless the agent asks to replace it; then it is kept.
pub(super) async fn submit(program: &Program, caller: &Caller, asked: &OfKernel) -> Result<Value, Fault> {
    let (op, variant) = (asked.op.as_str(), asked.variant.as_str());
    let declared = Declared::of(program, caller, op).await?;
    let own = declared.variant(variant)?;
    let kernel = Kernel::of(&program.root, own)?;
    fits(&asked.source)?;
    // Held until the verdict is known: two calls for one variant would judge each other's files.
    let mut ledger = Ledger::open(&program.root, op, variant)?;
    let (bytes, digest) = (asked.source.as_bytes(), Digest::of(asked.source.as_bytes()));
    let before = kernel.read()?;
    // What a generator made can be made again.
    let of_person = before.filter(|_| own["generated"] != true);
    // Nor is a copy anybody's own, as a variant that was just added is one.
    let of_person = of_person.filter(|before| !is_copy(program, &declared, variant, before));
    let replaced = of_person.as_deref().map_or(Ok(None), |before| kept(program, asked, &kernel, &ledger, before))?;
    let number = ledger.submit(digest)?;
    kernel.write(bytes)?;
    let target = format!("{op}/{variant}");
    let phases: &[&str] = if asked.measure { &[""] } else { &[":compile", ":check"] };
    let targets: Vec<String> = phases.iter().map(|phase| format!("{target}{phase}")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let (followed, ended) = follow::build(program, caller, &targets).await?;
    if kernel.read()?.map(|now| Digest::of(&now)) != Some(digest) {
        let message =
            format!("`{}` was changed while it was judged: the verdict may be of another source", kernel.file);
        return Err(Fault::hinted(message, "submit again"));
    }
    let mut told = verdict::of_variant(program, caller, &target, &followed, &ended).await;
    ledger.judged(number, &told)?;
    told["file"] = json!(kernel.file);
    told["submission"] = json!(number);
    told["replaced"] = json!(replaced);
    Ok(told)
}

/// Whether another variant of the op has a file with these bytes.
fn is_copy(program: &Program, declared: &Declared, variant: &str, bytes: &[u8]) -> bool {
    let others = declared.variants().iter().filter(|other| other["name"] != variant);
    let mut files = others.filter_map(|other| Kernel::of(&program.root, other).ok()?.read().ok()?);
    files.any(|other| other == bytes)
}

fn fits(source: &str) -> Result<(), Fault> {
    if source.trim().is_empty() {
        return Err(Fault::hinted("the source is empty", "send the whole file"));
    }
    if source.len() > LONGEST {
        return Err(Fault::hinted(format!("the source is longer than {LONGEST} bytes"), "send a shorter file"));
    }
    Ok(())
}

/// Returns where a file that is to be replaced is kept, `before` being its bytes; None where a submission made it, or where it is what is submitted. Fails where it may not be replaced.
fn kept(
    program: &Program,
    asked: &OfKernel,
    kernel: &Kernel,
    ledger: &Ledger,
    before: &[u8],
) -> Result<Option<String>, Fault> {
    let digest = Digest::of(before);
    if before == asked.source.as_bytes() || ledger.has(digest) {
        return Ok(None);
    }
    if !asked.replace {
        let message = format!("`{}` was not submitted by this tool: somebody wrote or changed it", kernel.file);
        let hint = "with `replace: true` it is kept below cache/replaced and replaced; or submit for another variant";
        return Err(Fault::hinted(message, hint));
    }
    let name = format!("cache/replaced/{}-{}-{}.py", digest.short(), asked.op, asked.variant);
    fs::write(&program.root.join(&name), before).map_err(|error| failed(&name, "write", &error))?;
    Ok(Some(name))
}
