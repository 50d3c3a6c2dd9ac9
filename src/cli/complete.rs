//! Completion of names on a shell's command line: ops, variants and phases, as ops.yaml has them.
//!
//! It opens no session: what cannot be read has no names.

use std::env;
use std::ffi::OsStr;
use std::io;

use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::Shells;
use t2t_model::action::Phase;
use t2t_spec::{Op, Spec};
use t2t_store::fs;

use super::error::CliError;
use crate::session::{self, OPS};

/// The variable by which a shell asks for completions, with its name.
pub(super) const VARIABLE: &str = "COMPLETE";

/// The phases that a variant has.
const OF_A_VARIANT: [Phase; 5] = [Phase::Generate, Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench];

/// The phases that no op has. All others stand behind its name: those of variants mean all of them.
const OF_NO_OP: [Phase; 2] = [Phase::Calibrate, Phase::Summary];

/// Returns the script that has a shell ask t2t itself for completions.
pub(super) fn script(shell: clap_complete::Shell) -> Result<String, CliError> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer = shells.completer(&name).ok_or_else(|| {
        let known = shells.names().collect::<Vec<_>>().join(", ");
        CliError::misuse(format!("no completions for {name}"), format!("there are some for {known}"))
    })?;
    let mut script = Vec::new();
    let written: io::Result<()> = completer.write_registration(VARIABLE, "t2t", "t2t", "t2t", &mut script);
    written.map_err(|error| CliError::machine(format!("cannot write the script: {error}")))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Completes an op.
pub(super) fn op() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning(current, |ops, _| names(ops)))
}

/// Completes an op or a variant: `softmax`, `softmax/v2_tiling`.
pub(super) fn variant() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning(current, places))
}

/// Completes a target: an op, a variant, or a phase of either.
pub(super) fn target() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning(current, targets))
}

/// Completes the name of a variant of any op.
pub(super) fn variant_alone() -> ArgValueCompleter {
    let of_all = |ops: &[Op], _: &str| {
        let mut found: Vec<String> =
            ops.iter().flat_map(|op| &op.variants).map(|variant| variant.name.clone()).collect();
        found.sort();
        found.dedup();
        found
    };
    ArgValueCompleter::new(move |current: &OsStr| beginning(current, of_all))
}

/// Returns those of the names that `known` has for what is typed which begin so.
fn beginning(current: &OsStr, known: impl Fn(&[Op], &str) -> Vec<String>) -> Vec<CompletionCandidate> {
    let Some(typed) = current.to_str() else { return Vec::new() };
    let found = known(&ops(), typed).into_iter().filter(|name| name.starts_with(typed));
    found.map(CompletionCandidate::new).collect()
}

/// Returns the ops of the workspace around the current folder.
fn ops() -> Vec<Op> {
    let root = env::current_dir().ok().and_then(|here| session::workspace(&here));
    let bytes = root.and_then(|root| fs::read(&root.join(OPS)).ok());
    bytes.and_then(|bytes| Spec::parse(OPS, &bytes, None).ok()).map(|spec| spec.ops).unwrap_or_default()
}

fn names(ops: &[Op]) -> Vec<String> {
    ops.iter().map(|op| op.name.clone()).collect()
}

/// Variants are named once an op is: a list of all would hide the ops.
fn places(ops: &[Op], typed: &str) -> Vec<String> {
    let Some((op, _)) = typed.split_once('/') else { return names(ops) };
    let variants = ops.iter().filter(|known| known.name == op).flat_map(|op| &op.variants);
    variants.map(|variant| format!("{op}/{}", variant.name)).collect()
}

fn targets(ops: &[Op], typed: &str) -> Vec<String> {
    let Some((place, _)) = typed.split_once(':') else { return places(ops, typed) };
    let is_named =
        |phase: &Phase| if place.contains('/') { OF_A_VARIANT.contains(phase) } else { !OF_NO_OP.contains(phase) };
    Phase::ALL.into_iter().filter(is_named).map(|phase| format!("{place}:{phase}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Op> {
        let text = "version: 1\nops:\n  softmax: {torch: softmax, inputs: {input: [M, N]}, variants: [v1, v2]}\n  gelu: {torch: torch.nn.functional.gelu, inputs: {input: [M, N]}, variants: [v1]}\n";
        Spec::parse(OPS, text.as_bytes(), None).expect("it is right").ops
    }

    #[test]
    fn a_place_is_an_op_first_and_then_one_of_its_variants() {
        assert_eq!(places(&known(), "so"), ["softmax", "gelu"]);
        assert_eq!(places(&known(), "softmax/"), ["softmax/v1", "softmax/v2"]);
        assert_eq!(places(&known(), "relu/"), Vec::<String>::new());
    }

    #[test]
    fn phases_are_those_of_an_op_or_of_a_variant() {
        let (of_op, of_variant) = (targets(&known(), "softmax:"), targets(&known(), "softmax/v1:ch"));
        assert!(of_op.contains(&"softmax:log".to_owned()) && of_op.contains(&"softmax:check".to_owned()), "{of_op:?}");
        assert!(!of_op.contains(&"softmax:summary".to_owned()), "{of_op:?}");
        assert!(of_variant.contains(&"softmax/v1:check".to_owned()), "{of_variant:?}");
        assert!(!of_variant.contains(&"softmax/v1:log".to_owned()), "{of_variant:?}");
    }
}
