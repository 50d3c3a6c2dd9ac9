//! What was submitted for a variant, and what came of it: lines of JSON in `cache/submitted/OP/VARIANT.jsonl`. While it is open no other call submits for the variant.
//!
//! It can be lost: then files count as a person's. It does not know what a kernel is.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};
use t2t_model::digest::Digest;
use t2t_store::fs;

use super::child::Fault;
use super::files::failed;

/// The submissions for one variant.
#[derive(Debug)]
pub(super) struct Ledger {
    file: Flock<File>,
    name: String,
    rows: Vec<Value>,
}

impl Ledger {
    /// Opens the ledger of a variant, for as long as a submission takes. Fails while another call has it.
    pub(super) fn open(root: &Path, op: &str, variant: &str) -> Result<Self, Fault> {
        let name = path(op, variant);
        let place = root.join(&name);
        fs::make_folder(place.parent().unwrap_or(root)).map_err(|error| failed(&name, "write", &error))?;
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&place);
        let file = opened.map_err(|error| failed(&name, "write", &error))?;
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
            Errno::EWOULDBLOCK => Fault::hinted(
                format!("another call submits for `{op}/{variant}` now"),
                "wait for its verdict, or submit for another variant",
            ),
            error => failed(&name, "lock", &error),
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| failed(&name, "read", &error))?;
        Ok(Self { file, name, rows: parsed(&text) })
    }

    /// Returns whether `digest` is that of something submitted.
    pub(super) fn has(&self, digest: Digest) -> bool {
        let digest = digest.to_string();
        self.rows.iter().any(|row| row["source"] == digest.as_str())
    }

    /// Adds a submission, before its file is written. Returns its number, from 1.
    pub(super) fn submit(&mut self, digest: Digest) -> Result<usize, Fault> {
        let number = self.rows.iter().filter(|row| !row["source"].is_null()).count() + 1;
        self.add(json!({"number": number, "source": digest.to_string()}))?;
        Ok(number)
    }

    /// Adds what came of a submission.
    pub(super) fn judged(&mut self, number: usize, verdict: &Value) -> Result<(), Fault> {
        let first = verdict["failures"].get(0).map_or(&Value::Null, |failure| &failure["message"]);
        self.add(
            json!({"number": number, "verdict": verdict["verdict"], "class": verdict["class"], "message": first, "speedup": verdict["figures"]["speedup"]}),
        )
    }

    fn add(&mut self, row: Value) -> Result<(), Fault> {
        self.file.write_all(format!("{row}\n").as_bytes()).map_err(|error| failed(&self.name, "write", &error))?;
        self.rows.push(row);
        Ok(())
    }
}

fn path(op: &str, variant: &str) -> String {
    format!("cache/submitted/{op}/{variant}.jsonl")
}

/// Returns the submissions for a variant, oldest first, each with what came of it.
pub(super) fn submissions(root: &Path, op: &str, variant: &str) -> Vec<Value> {
    let bytes = fs::read_if_there(&root.join(path(op, variant))).ok().flatten().unwrap_or_default();
    let mut submissions: Vec<Value> = Vec::new();
    for row in parsed(&String::from_utf8_lossy(&bytes)) {
        match submissions.iter_mut().find(|known| known["number"] == row["number"]).and_then(Value::as_object_mut) {
            Some(known) => known.extend(row.as_object().cloned().unwrap_or_default()),
            None => submissions.push(row),
        }
    }
    submissions
}

/// Returns the lines that are whole: the last one may have been cut off.
fn parsed(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
}
