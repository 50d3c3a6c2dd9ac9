//! `t2t man`: manual pages, made of what `--help` says.
//!
//! It knows no command.

use std::path::Path;

use t2t_store::fs;

use super::error::CliError;
use super::streams;

/// Prints the page of the command, or writes the pages of it and of its subcommands to the folder `out`.
pub(crate) fn man(command: clap::Command, out: Option<&Path>) -> Result<u8, CliError> {
    let failed = |error| CliError::machine(format!("cannot write the manual: {error}"));
    if let Some(folder) = out {
        fs::make_folder(folder).and_then(|()| clap_mangen::generate_to(command, folder)).map_err(|error| {
            CliError::misuse(format!("cannot write to `{}`: {error}", folder.display()), "name another folder")
        })?;
        return Ok(0);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(failed)?;
    streams::print(&String::from_utf8_lossy(&page));
    Ok(0)
}
