//! `t2t ir OP/VARIANT --html FILE`: a page of source, TTGIR and PTX side by side, whose lines are linked.
//!
//! Kept stages have no lines: a script compiles the kernels once more with them. It does not know how lines are matched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};
use t2t_protocol::CompiledKernel;
use t2t_report::stages::{self, Kernel};
use t2t_store::fs;

use super::error::CliError;
use super::inspect::{Compiled, Kernels, about};
use super::{Common, context, outputs, script, streams};

/// Compiles kernels with the lines of their source.
const SCRIPT: &str = include_str!("stages.py");

/// The stages that are shown, in order: of Triton, and of CUDA C++.
const STAGES: [&str; 3] = ["ttgir", "ptx", "sass"];

/// Writes the page of a variant's kernels.
pub(crate) fn write(
    common: &Common,
    target: &str,
    kernel: Option<&str>,
    kernels: Kernels,
    out: &Path,
) -> Result<u8, CliError> {
    let compiled = Compiled::of(common, target)?;
    let rows = compiled.rows(kernel, kernels)?;
    let lined = match lined(common, &compiled, &rows) {
        Ok(lined) => lined,
        Err(error) => rows.iter().map(|_| Err(format!("{error:#}"))).collect(),
    };
    let shown: Vec<Kernel> =
        rows.iter().zip(lined).map(|(row, lined)| shown(&compiled, row, lined)).collect::<anyhow::Result<_>>()?;
    for kernel in &shown {
        if let Err(why) = &kernel.lined {
            streams::say(&format!("note: lines of {} are not linked: {why}", kernel.name));
        }
    }
    let files = files(&compiled)?;
    let text = stages::html(&compiled.target.place(), &files, &shown).map_err(CliError::machine)?;
    let file = context::absolute(out);
    let unfit = |why: &str| {
        let message = format!("cannot write `{}`: {why}", file.display());
        CliError::misuse(message, "name a file in a folder that can be written")
    };
    if file.exists() && !file.is_file() {
        return Err(unfit("it is no file"));
    }
    outputs::may_be_replaced(&file, "the page", outputs::MARKUP)?;
    fs::write(&file, text.as_bytes()).map_err(|error| unfit(&error.to_string()))?;
    let count = if shown.len() == 1 { "1 kernel".to_owned() } else { format!("{} kernels", shown.len()) };
    streams::print(&format!("{}: {count}, {} KB\n", file.display(), text.len().div_ceil(1000)));
    Ok(0)
}

fn shown(
    compiled: &Compiled,
    row: &CompiledKernel,
    lined: Result<BTreeMap<String, String>, String>,
) -> anyhow::Result<Kernel> {
    let stage = |name: &&str| {
        let bytes = compiled.member(row.stages.get(*name)?);
        Some(bytes.map(|bytes| ((*name).to_owned(), String::from_utf8_lossy(&bytes).into_owned())))
    };
    let stages = STAGES.iter().filter_map(stage).collect::<anyhow::Result<_>>()?;
    Ok(Kernel { name: row.kernel.clone(), about: about(row), stages, lined })
}

/// Returns the kernel's file and the files of the workspace that it reaches, with their texts.
fn files(compiled: &Compiled) -> Result<Vec<(String, String)>, CliError> {
    let Compiled { session, .. } = compiled;
    let file = file(compiled);
    let reached: BTreeSet<String> = session
        .inventory
        .files
        .get(file)
        .into_iter()
        .flat_map(|known| known.closure.keys())
        .map(ToString::to_string)
        .filter(|path| path != file)
        .collect();
    let read = |path: String| {
        let bytes = fs::read(&session.root.join(&path)).with_context(|| format!("cannot read `{path}`"))?;
        Ok((path, String::from_utf8_lossy(&bytes).into_owned()))
    };
    Ok([file.to_owned()].into_iter().chain(reached).map(read).collect::<anyhow::Result<_>>()?)
}

/// Returns the kernel file of the variant.
fn file(compiled: &Compiled) -> &str {
    let of =
        |name: &String| compiled.session.spec.op(&compiled.target.op)?.variants.iter().find(|own| own.name == *name);
    compiled.target.variant.as_ref().and_then(of).map_or("", |variant| variant.file.as_str())
}

/// Returns the stages of each row with lines, or why it has none.
fn lined(
    common: &Common,
    compiled: &Compiled,
    rows: &[&CompiledKernel],
) -> anyhow::Result<Vec<Result<BTreeMap<String, String>, String>>> {
    let text = |name: &str| Ok::<_, anyhow::Error>(String::from_utf8_lossy(&compiled.member(name)?).into_owned());
    let mut asked: Vec<Value> = Vec::new();
    for row in rows {
        // A Gluon kernel has no ttir.
        let Some(stage) = row.stages.get("ttir").or_else(|| row.stages.get("ttgir")) else {
            anyhow::bail!("only kernels in Triton are compiled once more with lines");
        };
        let metadata = PathBuf::from(stage).with_extension("json");
        let metadata: Value = serde_json::from_str(&text(&metadata.to_string_lossy())?)?;
        asked.push(
            json!({"kernel": row.kernel, "constants": row.constants, "metadata": metadata, "code": text(stage)?}),
        );
    }
    let session = &compiled.session;
    let python = context::python(common, session.root.clone()).context("no Python is known")?;
    let mut command = Command::new(&python.path);
    command.current_dir("/").stderr(Stdio::piped()).env("CUDA_VISIBLE_DEVICES", "").env_remove("TRITON_INTERPRET");
    // Kernel code gets no author's key.
    for name in session.spec.authors.variables() {
        command.env_remove(name);
    }
    let question =
        json!({"root": session.root, "sources": session.spec.sources, "file": file(compiled), "kernels": asked});
    let output = script::run(command, SCRIPT, &question)?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        anyhow::bail!("{}", told.trim_end().lines().next_back().unwrap_or("the second compile failed"));
    }
    let answers: Vec<BTreeMap<String, String>> =
        serde_json::from_slice(&output.stdout).context("what was compiled with lines cannot be read")?;
    let answer = |mut told: BTreeMap<String, String>| told.remove("why").map_or(Ok(told), Err);
    Ok(answers.into_iter().map(answer).collect())
}
