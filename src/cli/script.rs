//! A script that an interpreter of the user runs: it reads JSON from its standard input and answers on its standard output.
//!
//! It does not know what is asked.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use anyhow::Context;
use serde_json::Value;
use t2t_store::secrets;

/// Has the interpreter that `command` starts run `script`, and returns how that ended and what it wrote. It gets no secrets of t2t. Its errors go where `command` sends them.
///
/// # Errors
/// Where the interpreter cannot be started.
pub(crate) fn run(mut command: Command, script: &str, question: &Value) -> anyhow::Result<Output> {
    let cannot = format!("cannot start `{}`", command.get_program().display());
    secrets::withhold(&mut command);
    command.args(["-B", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| cannot.clone())?;
    if let Some(mut input) = child.stdin.take() {
        // A child that ended before it read all has said why.
        let _ = input.write_all(question.to_string().as_bytes());
    }
    child.wait_with_output().context(cannot)
}
