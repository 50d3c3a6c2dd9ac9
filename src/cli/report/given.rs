//! What the options of `t2t report` name: the trace of a build, and sweeps of ops.
//!
//! It does not know how they are shown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use t2t_protocol::{Sweep, read};
use t2t_report::page::Timeline;
use t2t_spec::Spec;
use t2t_store::fs;

use crate::cli::error::CliError;

/// Returns the timeline that the file of a trace tells.
pub(super) fn timeline(file: &Path) -> Result<Timeline, CliError> {
    let unfit = |why: String| {
        let message = format!("cannot show the trace `{}`: {why}", file.display());
        CliError::misuse(message, "name a file that `t2t build --trace FILE` wrote")
    };
    let bytes = fs::read(file).map_err(|error| unfit(error.to_string()))?;
    Timeline::read(&String::from_utf8_lossy(&bytes)).map_err(unfit)
}

/// Returns the sweeps in these files and folders, by op, in the order in which they were named.
pub(super) fn sweeps(spec: &Spec, paths: &[PathBuf]) -> Result<BTreeMap<String, Vec<Sweep>>, CliError> {
    let mut all: BTreeMap<String, Vec<Sweep>> = BTreeMap::new();
    for path in paths {
        let files = if path.is_dir() {
            let names = fs::names(path).into_iter();
            names
                .map(|name| path.join(name))
                .filter(|file| file.extension().is_some_and(|ending| ending == "json"))
                .collect()
        } else {
            vec![path.clone()]
        };
        if files.is_empty() {
            return Err(unfit(path, "the folder has no `.json`"));
        }
        for file in files {
            let sweep = sweep(spec, &file)?;
            all.entry(sweep.op.clone()).or_default().push(sweep);
        }
    }
    Ok(all)
}

fn sweep(spec: &Spec, file: &Path) -> Result<Sweep, CliError> {
    let bytes = fs::read(file).map_err(|error| unfit(file, &error.to_string()))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| unfit(file, &format!("no JSON: {error}")))?;
    // Each field has a default, so any object would be one.
    if value["points"].as_array().is_none() || value["subjects"].as_array().is_none() {
        return Err(unfit(file, "it is no sweep"));
    }
    let sweep: Sweep = read::leniently(&value).map_err(|misfit| unfit(file, &misfit.to_string()))?;
    if spec.op(&sweep.op).is_none() {
        return Err(unfit(file, &format!("ops.yaml declares no op `{}`", sweep.op)));
    }
    Ok(sweep)
}

fn unfit(path: &Path, why: &str) -> CliError {
    let message = format!("cannot show the sweep `{}`: {why}", path.display());
    CliError::misuse(
        message,
        "name a file that `t2t bench OP --sweep` wrote, as `logs/sweep/softmax.json`, or a folder of them",
    )
}
