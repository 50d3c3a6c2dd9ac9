//! `t2t bench OP/VARIANT --against REV|FILE`: two versions of a kernel in turns in one process, with the interval of the ratio of their times at each size.
//!
//! Both are checked first, in a copy of the workspace. It writes no kernel, and does not know how a ratio gets its interval.

use std::path::Path;

use serde_json::{Value, json};
use t2t_host::cores;
use t2t_model::action::DeviceClass;
use t2t_protocol::{Against, Failure};
use t2t_report::render::against::text;
use t2t_spec::{Op, Variant};
use t2t_store::fs;
use t2t_store::git::{self, NoAnswer};

use super::error::CliError;
use super::trial::{Beside, Built, JUDGED, Kernel, Refused, Trial};
use super::{Common, context, streams};
use crate::session::Session;

/// The version of what `--json` prints. 1: first.
const VERSION: u32 = 1;

/// What is asked.
pub(crate) struct Asked {
    /// `OP/VARIANT`, or an op, whose variant is named apart.
    pub(crate) op: String,
    /// The variant, where it is named apart.
    pub(crate) variant: Vec<String>,
    /// A revision or a file.
    pub(crate) other: String,
    /// Whether JSON is printed, and no table.
    pub(crate) is_json: bool,
}

/// Another version of a kernel.
struct Other {
    /// What it is called.
    name: String,
    /// The commit that has it, in full.
    commit: Option<String>,
    source: Vec<u8>,
}

/// Runs the command.
pub(crate) fn against(common: &Common, asked: &Asked) -> Result<u8, CliError> {
    let (_lock, interrupt, session) = context::open_locked(common, "both versions are timed on a device that is here")?;
    let (op, variant) = named(&session, asked)?;
    let place = format!("{}/{}", op.name, variant.name);
    let source = fs::read(&session.root.join(&variant.file)).map_err(|error| CliError::Use {
        message: format!("cannot read `{}`: {error}", variant.file),
        hint: Some(format!("`t2t build {place}` makes kernels that a generator writes")),
    })?;
    let other = other(&session, variant, &asked.other)?;
    cores::keep_off_devices(&cores::shares(session.devices.len()));
    introduce(&session, &place, &other);
    let root = session.cache.join("against").join(&op.name);
    let trial = Trial::make(Kernel { session: &session, op, variant }, root, common, &interrupt)?;
    let found = measured(&trial, &place, &source, &other);
    if let Err(error) = trial.remove() {
        streams::say(&format!("warning: cannot remove the copy of the workspace: {error}"));
    }
    let found = found?;
    if interrupt.is_set() {
        return Err(CliError::Interrupted);
    }
    if asked.is_json {
        streams::print(&format!("{:#}\n", document(&place, &other, &found)));
    } else {
        streams::print(&text(&place, &other.name, &found, streams::width()));
    }
    Ok(0)
}

/// Returns the variant that is named.
fn named<'a>(session: &'a Session, asked: &Asked) -> Result<(&'a Op, &'a Variant), CliError> {
    let example = "name one variant, as in `t2t bench softmax/v2_tiling --against HEAD~1`";
    let (op, variant) = match (asked.op.split_once('/'), asked.variant.as_slice()) {
        (Some((op, variant)), []) => (op, variant),
        (None, [variant]) => (asked.op.as_str(), variant.as_str()),
        _ => return Err(CliError::misuse("`--against` compares two versions of one kernel", example)),
    };
    let op = session.spec.op(op).ok_or_else(|| CliError::misuse(format!("`{op}` is no op"), example))?;
    let Some(variant) = op.variant(variant) else {
        let names: Vec<&str> = op.variants.iter().map(|variant| variant.name.as_str()).collect();
        let message = format!("{} has no variant `{variant}`", op.name);
        return Err(CliError::misuse(message, format!("it has {}", names.join(", "))));
    };
    let place = format!("{}/{}", op.name, variant.name);
    if variant.module.is_some() {
        let message = format!("{place} is of an installed module, which has no other version here");
        return Err(CliError::misuse(message, "name a variant that has a file of the workspace"));
    }
    if variant.cuda.is_some() {
        let message = format!("{place} is in CUDA C++: one process has room for one version of its kernels");
        return Err(CliError::misuse(
            message,
            "name a variant in Triton; `t2t compare` compares the benches of commits",
        ));
    }
    Ok((op, variant))
}

/// Returns the other version: what a file holds that is there, else the variant's file at a revision.
fn other(session: &Session, variant: &Variant, written: &str) -> Result<Other, CliError> {
    let path = context::absolute(Path::new(written));
    // A folder may have the name of a branch: it is no file.
    if fs::stat(&path).is_some() {
        let unreadable =
            |error| CliError::misuse(format!("cannot read `{written}`: {error}"), "name a Python file, or a commit");
        let source = fs::read(&path).map_err(unreadable)?;
        return Ok(Other { name: written.to_owned(), commit: None, source });
    }
    if path.extension().is_some_and(|ending| ending == "py") {
        return Err(CliError::misuse(format!("no file `{written}`"), "name a Python file that is there, or a commit"));
    }
    let commit = git::commit(&session.root, written).map_err(|error| refused(written, &error))?;
    let source = git::file(&session.root, &commit, &variant.file).map_err(|error| match error {
        NoAnswer::Refused(_) => CliError::misuse(
            format!("`{written}` has no file `{}`", variant.file),
            "name a commit that has it, or a file: what it was called before, `git show REV:PATH` writes to one",
        ),
        NoAnswer::Start(_) | NoAnswer::Answer(_) => CliError::machine(error.to_string()),
    })?;
    Ok(Other { name: written.to_owned(), commit: Some(commit), source })
}

/// Returns what to say of a git that knows no such commit.
fn refused(written: &str, error: &NoAnswer) -> CliError {
    match error {
        NoAnswer::Refused(told) => {
            let told = if told.is_empty() { String::new() } else { format!(": {told}") };
            let hint = "name a branch, a tag, a hash, or a Python file that is there";
            CliError::misuse(format!("`{written}` is no commit that git knows, and no file{told}"), hint)
        }
        NoAnswer::Start(_) | NoAnswer::Answer(_) => CliError::machine(error.to_string()),
    }
}

fn introduce(session: &Session, place: &str, other: &Other) {
    let class = &session.inventory.device.class;
    let commit = other.commit.as_ref().map(|commit| format!(" ({})", commit.chars().take(12).collect::<String>()));
    streams::say(&format!("{place} against {}{} on {class}", other.name, commit.unwrap_or_default()));
    if *class == DeviceClass::Interpreter {
        streams::say("note: these are timings of Triton's interpreter: they say nothing about a GPU");
    }
}

/// Checks both versions and times them. The present one is built last: what the store knows last of the variant is of the file that it has.
fn measured(trial: &Trial<'_>, place: &str, source: &[u8], other: &Other) -> Result<Against, CliError> {
    let theirs = right(trial, &other.source)?.map_err(|refused| wrong(place, &format!(" at {}", other.name), &refused));
    let theirs =
        theirs.map(|built| Beside { source: other.source.clone(), tune: Value::Null, archive: built.archive() });
    let ours = right(trial, source)?.map_err(|refused| wrong(place, "", &refused));
    let (theirs, ours) = match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (Err(error), Err(also)) => {
            streams::say(&also.text());
            return Err(error);
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    trial.against(&ours, &theirs)?.map_err(|refused| wrong(place, &format!(", timed against {}", other.name), &refused))
}

/// Returns a version that was compiled and checked, or why it is rejected.
fn right(trial: &Trial<'_>, source: &[u8]) -> Result<Result<Built, Refused>, CliError> {
    let built = trial.build(source, &JUDGED, &[])?;
    Ok(match built.refused(&JUDGED)? {
        Some(refused) => Err(refused),
        None => Ok(built),
    })
}

fn wrong(place: &str, version: &str, refused: &Refused) -> CliError {
    let Failure { class, message, .. } = &refused.failure;
    CliError::Missing {
        message: format!("{place}{version} {}: {message} ({class}, {})", ended(class), refused.phase),
        hint: "only right kernels are timed".to_owned(),
    }
}

/// Returns how a check of this class ended, in words.
fn ended(class: &str) -> &'static str {
    if class == "not-judged" { "cannot be judged here" } else { "is rejected" }
}

/// Returns what was measured as JSON.
fn document(place: &str, other: &Other, found: &Against) -> Value {
    let mut document = json!(found);
    document["version"] = VERSION.into();
    document["target"] = place.into();
    document["against"] = json!({"name": other.name, "commit": other.commit});
    document
}
