//! The key that a command signs with: `--sign`, else `$T2T_SIGN_KEY`.
//!
//! It does not know what is signed.

use std::env;
use std::io::ErrorKind;
use std::path::Path;

use t2t_model::signature::{NoKey, SigningKey};
use t2t_store::fs;

use super::Common;
use super::error::CliError;

/// The variable that names the file of the key, or holds the key itself.
const KEY: &str = "T2T_SIGN_KEY";

/// The variable with the passphrase of an encrypted key.
const PASSPHRASE: &str = "T2T_SIGN_PASSPHRASE";

/// How a key begins that is no name of a file.
const BEGIN: &str = "-----BEGIN ";

/// The command that makes a key.
const MAKE: &str = "name the private half of an ed25519 key; `ssh-keygen -t ed25519` makes one";

/// Returns the requested key, if any.
///
/// # Errors
/// Bad use, where it cannot be read or used.
pub(crate) fn key(common: &Common) -> Result<Option<SigningKey>, CliError> {
    if let Some(file) = &common.sign {
        return read(file, "--sign").map(Some);
    }
    let Some(value) = variable(KEY) else { return Ok(None) };
    if value.trim_start().starts_with(BEGIN) {
        // It is a secret: nothing of it is shown.
        return opened(&value, &format!("the key in ${KEY}")).map(Some);
    }
    read(Path::new(&value), &format!("${KEY}")).map(Some)
}

fn read(file: &Path, asked: &str) -> Result<SigningKey, CliError> {
    let name = format!("`{}`", file.display());
    let bytes = fs::read(file).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound => MAKE,
            _ => "make it readable for you alone: `chmod 600`",
        };
        CliError::misuse(format!("{asked}: cannot read {name}: {error}"), hint)
    })?;
    opened(&String::from_utf8_lossy(&bytes), &format!("{asked}: {name}"))
}

fn opened(text: &str, name: &str) -> Result<SigningKey, CliError> {
    SigningKey::read(text, variable(PASSPHRASE).as_deref()).map_err(|why| {
        let hint = match why {
            NoKey::Encrypted => format!(
                "set ${PASSPHRASE}; or publish unsigned, and let ssh-keygen ask for it, or an agent: docs/reference/results.md has the line"
            ),
            NoKey::Passphrase => format!("${PASSPHRASE} is the one that `ssh-keygen -p` would ask for"),
            NoKey::Public => "name the file beside it without `.pub`".to_owned(),
            NoKey::Kind | NoKey::Unreadable => MAKE.to_owned(),
        };
        CliError::misuse(format!("{name} {why}"), hint)
    })
}

/// Returns a variable unless it is empty: CI services set secrets of forks to the empty text.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
