//! The remote cache that a command uses: what ops.yaml declares, unless the environment or a flag says otherwise.

use std::cell::OnceCell;
use std::env;
use std::sync::Arc;

use t2t_report::figures;
use t2t_spec::names::duration;
use t2t_spec::remote::{EXAMPLES, Mode, RemoteUrl};
use t2t_spec::{Spec, remote};
use t2t_store::store::remote::entry::Secret;
use t2t_store::store::remote::{Checked, Credentials, Limits, NotBuilt, Remote, Signing};

use super::error::CliError;
use super::{Common, signing};

/// The remote cache of one command, made at its first use. Several builds share it, so its use is counted, and its uploads are awaited, once.
#[derive(Default)]
pub(crate) struct OpenedRemote(OnceCell<Option<Arc<Remote>>>);

impl OpenedRemote {
    /// Returns the remote cache that was asked for, if there is one.
    pub(crate) fn of(&self, common: &Common, spec: &Spec, evidence: Evidence) -> Result<Option<Arc<Remote>>, CliError> {
        if let Some(known) = self.0.get() {
            return Ok(known.clone());
        }
        let made = remote(common, spec, evidence)?;
        let is_written = made.as_ref().is_some_and(|remote| remote.mode() == Mode::ReadWrite);
        if common.sign.is_some() && !is_written {
            let message = "`--sign` signs what is left in a remote cache, and nothing is left in one here";
            return Err(CliError::misuse(
                message,
                "name one with `--remote`; `t2t publish --sign` signs what is published",
            ));
        }
        Ok(self.0.get_or_init(|| made).clone())
    }
}

/// Which results of others are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// All that are whole.
    Whole,
    /// Only results that a trusted key signed.
    Signed,
}

/// Returns the remote cache that was asked for, if there is one.
fn remote(common: &Common, spec: &Spec, evidence: Evidence) -> Result<Option<Arc<Remote>>, CliError> {
    let Some(declared) = declared(common, spec)? else { return Ok(None) };
    if declared.mode == Mode::Off {
        return Ok(None);
    }
    let signing = Signing {
        key: if declared.mode == Mode::ReadWrite { signing::key(common)? } else { None },
        trust: spec.trust.clone(),
        is_required: evidence == Evidence::Signed,
    };
    let made = Remote::new(declared.place, declared.mode, credentials()?, signing, limits()?);
    made.map(|remote| Some(Arc::new(remote))).map_err(not_built_with)
}

fn not_built_with(not_built: NotBuilt) -> CliError {
    let hint = "build it with that feature, as is the default, or use no remote cache: `--no-remote`";
    CliError::misuse(format!("cannot use a remote cache: {not_built}"), hint)
}

/// Returns what `t2t doctor` says of the remote cache: where it is, what holds for entries, whether it answers and, where it is written to, whether it takes results.
pub(crate) fn described(common: &Common, spec: &Spec) -> Result<String, CliError> {
    let remote = remote(common, spec, Evidence::Whole)?;
    let Some(remote) = remote else { return Ok("none".to_owned()) };
    let tagged = if remote.is_tagged() { "entries are tagged" } else { "entries are not tagged" };
    let signed = remote.signing_key().map_or("results are not signed".to_owned(), |key| {
        let fingerprint = key.fingerprint();
        key.among(&spec.trust)
            .map_or(format!("results are signed with {fingerprint}, which `trust` does not name"), |signer| {
                format!("results are signed by {signer}")
            })
    });
    let Checked { read, write } = remote.check();
    let answer = match read {
        Ok(time) => format!("answers in {}", figures::time(time)),
        Err(why) => format!("cannot be read: {why}"),
    };
    let taken = match write {
        Some(Ok(())) => "; takes results".to_owned(),
        Some(Err(why)) => format!("; takes no results: {why}"),
        None => String::new(),
    };
    Ok(format!("{} ({}; {tagged}; {signed}): {answer}{taken}", remote.place(), remote.mode().name()))
}

/// A flag counts before the environment, and the environment before ops.yaml.
fn declared(common: &Common, spec: &Spec) -> Result<Option<remote::Remote>, CliError> {
    if common.no_remote {
        return Ok(None);
    }
    let flag = common.remote.clone().map(|url| ("--remote", url));
    let url = flag.or_else(|| Some(("$T2T_REMOTE", variable("T2T_REMOTE")?)));
    let mode = match common.remote_mode {
        Some(mode) => Some(mode),
        None => variable("T2T_REMOTE_MODE").map(|text| mode(&text).map_err(|text| misused_mode(&text))).transpose()?,
    };
    let of_file = spec.remote.clone();
    let declared = match url {
        Some((_, url)) if url == Mode::Off.name() => return Ok(None),
        Some((name, url)) => Some(remote::Remote { place: place(name, &url)?, mode: Mode::ReadWrite }),
        None => of_file,
    };
    Ok(declared.map(|declared| remote::Remote { mode: mode.unwrap_or(declared.mode), ..declared }))
}

/// What is no place may hold a password: it is not shown.
fn place(name: &str, url: &str) -> Result<RemoteUrl, CliError> {
    RemoteUrl::parse(url).ok_or_else(|| CliError::misuse(format!("{name} is not the URL of a remote cache"), EXAMPLES))
}

/// Returns the mode of that name.
pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    Mode::of(text).ok_or_else(|| format!("`{text}` is not a mode: use read-write, read-only or off"))
}

fn misused_mode(message: &str) -> CliError {
    CliError::misuse(format!("$T2T_REMOTE_MODE: {message}"), "set it to one of these, or not at all")
}

fn limits() -> Result<Limits, CliError> {
    let Some(text) = variable("T2T_REMOTE_TIMEOUT") else { return Ok(Limits::default()) };
    let operation = duration(&text).ok_or_else(|| {
        let hint = "write a whole number and a unit: `5s`, `500ms`";
        CliError::misuse(format!("$T2T_REMOTE_TIMEOUT: `{text}` is not a duration"), hint)
    })?;
    Ok(Limits::of(operation))
}

fn credentials() -> Result<Credentials, CliError> {
    let either = |first: &str, second: &str| variable(first).or_else(|| variable(second));
    let user = variable("T2T_REMOTE_USER");
    if user.is_some() && variable("T2T_REMOTE_TOKEN").is_some() {
        let message = "both $T2T_REMOTE_TOKEN and $T2T_REMOTE_USER are set";
        return Err(CliError::misuse(message, "set the one that the server knows"));
    }
    Ok(Credentials {
        token: variable("T2T_REMOTE_TOKEN"),
        user,
        password: variable("T2T_REMOTE_PASSWORD"),
        aws: variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY")),
        aws_session: variable("AWS_SESSION_TOKEN"),
        aws_region: either("AWS_REGION", "AWS_DEFAULT_REGION"),
        aws_endpoint: either("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        secret: variable("T2T_REMOTE_SECRET").map(|text| Secret::of(text.as_bytes())),
    })
}

/// Returns a variable unless it is empty: CI services set secrets of forks to the empty text.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_cache_that_was_not_built_in_is_a_misuse_with_a_way_out() {
        let error = not_built_with(NotBuilt);
        assert_eq!(error.code(), 2);
        assert_eq!(
            error.text(),
            "error: cannot use a remote cache: t2t was built without the feature `remote`\n\
             hint: build it with that feature, as is the default, or use no remote cache: `--no-remote`"
        );
    }
}
