//! `t2t report`: a page for a browser of what stands, as `t2t status` and the logs choose it.
//!
//! It runs nothing. What the page says is for the report crate.

use t2t_host::interrupt::Interrupt;
use t2t_store::fs;

use self::made::Made;
use super::arguments::ReportArguments;
use super::error::CliError;
use super::{Common, context, outputs, streams};

mod documents;
mod gathered;
mod given;
mod history;
mod made;
#[cfg(feature = "serve")]
mod serve;

/// The page's place in the workspace.
const FILE: &str = "logs/report.html";

/// Writes the page of the named ops, or of all, or serves it.
pub(crate) fn report(common: &Common, arguments: &ReportArguments) -> Result<u8, CliError> {
    #[cfg(feature = "serve")]
    if arguments.serve {
        return serve::serve(common, arguments);
    }
    write(common, arguments)
}

/// Writes the page to a file.
fn write(common: &Common, arguments: &ReportArguments) -> Result<u8, CliError> {
    let session = context::open(common, context::as_built(common)?, &Interrupt::default())?;
    context::warn_of_unknown_versions(common, &session)?;
    let Made { text, ops } = made::made(&session, arguments)?;
    let file = arguments.out.as_deref().map_or_else(|| session.root.join(FILE), context::absolute);
    let unfit = |why: &str| {
        let message = format!("cannot write `{}`: {why}", file.display());
        CliError::misuse(message, "name a file in a folder that can be written")
    };
    // A file is replaced when it is written, and a device or a pipe must not be.
    if file.exists() && !file.is_file() {
        return Err(unfit("it is no file"));
    }
    outputs::may_be_replaced(&file, "the page", outputs::MARKUP)?;
    fs::write(&file, text.as_bytes()).map_err(|error| unfit(&error.to_string()))?;
    streams::print(&format!("{}: {}, {} KB\n", file.display(), count(ops), text.len().div_ceil(1000)));
    Ok(0)
}

/// Returns how many ops there are, in words.
fn count(ops: usize) -> String {
    if ops == 1 { "1 op".to_owned() } else { format!("{ops} ops") }
}
