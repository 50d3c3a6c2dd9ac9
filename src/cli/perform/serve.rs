//! Serving: on another machine, actions of bundles are performed one after another, as lines of JSON ask for them. A server that has torch imported is kept from one to the next.
//!
//! It does not know who asks, nor where bundles are from.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use t2t_store::node::Node;

use super::super::error::CliError;
use super::super::{Common, streams};
use super::performer::{Performed, Performer};

/// How often it is looked whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// A line that asks for something.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Asked {
    /// Which digests this machine lacks of those that the bundle in this folder names.
    Lacks(PathBuf),
    /// The action of the bundle in a folder, with its result in a file.
    Run { folder: PathBuf, result: PathBuf },
}

/// Does what lines on standard input ask for until there are no more, and answers each by one on standard output: `exit`, the exit code that the command had; `said`, what it had
/// printed on standard error; and `document`, what it had printed on standard output, or null.
pub(super) fn serve(common: &Common, node: Node, jobs: Option<usize>) -> Result<u8, CliError> {
    let mut performer = Performer::new(common, node, jobs)?;
    let lines = lines();
    loop {
        let line = match lines.recv_timeout(LOOK) {
            Ok(line) => line.context("cannot read standard input")?,
            Err(RecvTimeoutError::Timeout) if performer.is_interrupted() => return Err(CliError::Interrupted),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(0),
        };
        let mut said = String::new();
        let done = answer(&mut performer, &line, &mut |line| said += &format!("{line}\n"));
        let (exit, document) = match done {
            Ok(Performed { exit, document }) => (exit, document),
            Err(error) => {
                said += &format!("{}\n", error.text());
                (error.code(), Value::Null)
            }
        };
        streams::print(&format!("{}\n", json!({"exit": exit, "document": document, "said": said})));
        if performer.is_interrupted() {
            return Err(CliError::Interrupted);
        }
        performer.get_ready();
    }
}

fn answer(performer: &mut Performer<'_>, line: &str, say: &mut dyn FnMut(String)) -> Result<Performed, CliError> {
    let asked = serde_json::from_str(line).map_err(|error| {
        let hint =
            "write one JSON object a line: {\"lacks\": FOLDER} or {\"run\": {\"folder\": FOLDER, \"result\": FILE}}";
        CliError::misuse(format!("cannot read what is asked: {error}"), hint)
    })?;
    match asked {
        Asked::Lacks(folder) => Ok(Performed { exit: 0, document: json!(performer.lacks(&folder)?) }),
        Asked::Run { folder, result } => performer.perform(&folder, &result, say),
    }
}

/// Returns the lines of standard input, read by a thread, so that a signal need not wait for one.
fn lines() -> Receiver<io::Result<String>> {
    let (sender, lines) = channel();
    thread::spawn(move || io::stdin().lock().lines().try_for_each(|line| sender.send(line)));
    lines
}
