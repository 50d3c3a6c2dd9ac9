//! What the generator knows, as text: families and their ops.

use t2t_generate::catalogue::{Catalogue, Family, Op};
use t2t_generate::wrap;

use crate::cli::error::CliError;

/// Returns the ops of each family where `family` is "all", or those of one with their functions and titles, one a line. Fails where there is no such family.
pub(super) fn list(catalogue: &Catalogue, family: &str) -> Result<String, CliError> {
    let ops_of = |family: &str| -> Vec<&Op> { catalogue.ops().filter(|op| op.family == family).collect() };
    if family == "all" {
        let part = |family: &Family| {
            let names: Vec<&str> = ops_of(&family.name).iter().map(|op| op.name.as_str()).collect();
            let names = wrap::fill(&names.join(" ")).replace('\n', "\n  ");
            format!("{}: {}\n  {names}\n", family.name, family.title)
        };
        return Ok(catalogue.families().map(part).collect());
    }
    let ops = ops_of(family);
    if ops.is_empty() {
        let families: Vec<&str> = catalogue.families().map(|family| family.name.as_str()).collect();
        let hint = format!("the families are {}", quoted(&families));
        return Err(CliError::misuse(format!("the generator has no family `{family}`"), hint));
    }
    let wide = |of: fn(&Op) -> &str| ops.iter().map(|op| of(op).len()).max().unwrap_or_default();
    let (names, functions) = (wide(|op| &op.name), wide(|op| &op.torch));
    let row = |op: &&Op| format!("{:names$}  {:functions$}  {}\n", op.name, op.torch, op.title);
    Ok(ops.iter().map(row).collect())
}

/// Returns names in backticks, with commas.
pub(super) fn quoted(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Returns a count with its noun: `1 op`, `4 kernels`.
pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
