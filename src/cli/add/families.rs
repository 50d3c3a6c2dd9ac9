//! The generator's files: those that t2t carries, and a workspace's own in their place.

use std::path::Path;

use anyhow::Context;
use t2t_generate::catalogue::{Catalogue, Fault};
use t2t_generate::files::Files;
use t2t_generate::render::Generator;
use t2t_store::fs;

use crate::cli::error::CliError;

/// Where a workspace has families and templates of its own.
const FOLDER: &str = "assets/generators";

/// How the names of families and templates end.
const ENDINGS: [&str; 2] = [".json", ".py.jinja"];

/// Returns the catalogue that t2t carries.
pub(super) fn embedded() -> Result<Catalogue, Fault> {
    Catalogue::read(&Files::default())
}

/// Returns the generator of the workspace at `root`. Fails where a file of its own is no family, or cannot be read.
pub(super) fn generator(root: &Path) -> Result<Generator, CliError> {
    let folder = root.join(FOLDER);
    let names = fs::names(&folder).into_iter().filter(|name| ENDINGS.iter().any(|ending| name.ends_with(ending)));
    let read = |name: String| {
        let bytes = fs::read(&folder.join(&name)).with_context(|| format!("cannot read `{FOLDER}/{name}`"))?;
        let text = String::from_utf8(bytes).map_err(|_| misuse(&format!("{name}: it is no UTF-8")))?;
        Ok((name, text))
    };
    let own = names.map(read).collect::<Result<Vec<_>, CliError>>()?;
    Generator::new(&Files::with(own)).map_err(|fault| misuse(&fault.to_string()))
}

/// Returns the error for a fault of a family or a template.
pub(super) fn misuse(fault: &str) -> CliError {
    CliError::misuse(format!("{FOLDER}/{fault}"), "docs/reference/generators.md says what families and templates have")
}
