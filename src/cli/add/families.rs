//! The generator's files: those that t2t carries, and a workspace's own in their place.

use std::path::Path;

use t2t_generate::catalogue::{Catalogue, Fault};
use t2t_generate::files::Files;
use t2t_generate::render::Generator;

use crate::cli::error::CliError;
use crate::session;

/// Returns the catalogue that t2t carries.
pub(super) fn embedded() -> Result<Catalogue, Fault> {
    Catalogue::read(&Files::default())
}

/// Returns the generator of the workspace at `root`. Fails where a file of its own is no family, or cannot be read.
pub(super) fn generator(root: &Path) -> Result<Generator, CliError> {
    Ok(session::generator_of(&session::generator_files(root)?)?)
}

/// Returns the error for a fault of a family or a template.
pub(super) fn misuse(fault: &str) -> CliError {
    let message = format!("{}/{fault}", session::GENERATORS);
    CliError::misuse(message, "docs/reference/generators.md says what families and templates have")
}
