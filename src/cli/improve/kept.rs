//! What is kept of rounds, `assets/rounds/OP.json` and its picture, and the kernel that takes the place of another.
//!
//! A file that a person wrote is written over only where that was asked for, and is kept. It does not know how a round goes.

use anyhow::Context;
use t2t_model::digest::Digest;
use t2t_report::render::rounds::{End, Round, Rounds, VERSION, svg};
use t2t_store::fs;

use super::subject::Subject;
use crate::cli::error::CliError;
use crate::session::{picture_path, rounds_path};

/// The rounds of an op.
pub(super) struct Kept<'a> {
    subject: &'a Subject<'a>,
    rounds: Rounds,
    /// The digest of what the kernel's file holds, as far as this command knows.
    there: Digest,
    /// Whether it may be written over.
    may_place: bool,
}

/// What became of a better kernel.
pub(super) enum Placed {
    /// It is the variant's kernel now. What it replaced is kept there, where a person wrote it.
    There(Option<String>),
    /// It is kept elsewhere, and why.
    Elsewhere {
        /// Where.
        place: String,
        /// Why it is not the variant's kernel, and what can be done.
        why: String,
    },
}

impl<'a> Kept<'a> {
    /// Reads what is kept. Fails where the file is damaged: nothing is written over that cannot be read.
    pub(super) fn open(subject: &'a Subject<'a>, overwrite: bool) -> Result<Self, CliError> {
        let path = rounds_path(&subject.op.name);
        let bytes =
            fs::read_if_there(&subject.session.root.join(&path)).with_context(|| format!("cannot read `{path}`"))?;
        let rounds: Option<Rounds> = bytes.map_or_else(
            || Some(Rounds { version: VERSION, ..Rounds::default() }),
            |bytes| serde_json::from_slice(&bytes).ok(),
        );
        let Some(rounds) = rounds.filter(|rounds| rounds.version == VERSION) else {
            let message = format!("`{path}` cannot be read as rounds of version {VERSION}");
            return Err(CliError::misuse(message, "restore it, or move it away: rounds then begin at 1"));
        };
        let there = Digest::of(&subject.source);
        let own = rounds.variants.get(&subject.variant.name).into_iter().flatten();
        let is_own = own.filter(|round| round.end == End::Better).any(|round| round.kernel == Some(there.to_string()));
        let is_generated = subject.session.inventory.generated.contains(&subject.variant.file);
        Ok(Self { subject, rounds, there, may_place: overwrite || is_own || is_generated })
    }

    /// Returns the rounds of the variant.
    pub(super) fn rounds(&self) -> &[Round] {
        self.rounds.variants.get(&self.subject.variant.name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether a better kernel may take the place of what is there.
    pub(super) fn may_place(&self) -> bool {
        self.may_place
    }

    /// Adds a round, and draws them all.
    pub(super) fn add(&mut self, round: Round) -> Result<(), CliError> {
        self.rounds.variants.entry(self.subject.variant.name.clone()).or_default().push(round);
        let op = &self.subject.op.name;
        let text = serde_json::to_string_pretty(&self.rounds).context("rounds are no JSON")?;
        let picture = svg(op, &self.rounds).map_err(|error| CliError::machine(error.to_string()))?;
        for (path, text) in [(rounds_path(op), text + "\n"), (picture_path(op), picture)] {
            let place = self.subject.session.root.join(&path);
            fs::write(&place, text.as_bytes()).with_context(|| format!("cannot write `{path}`"))?;
        }
        Ok(())
    }

    /// Has `source` take the place of the kernel, or keeps it elsewhere: where a person wrote what is there, where that was changed meanwhile, and for the reason `not`.
    pub(super) fn place(&mut self, source: &[u8], not: Option<&str>) -> Result<Placed, CliError> {
        let Subject { session, file, .. } = self.subject;
        let path = file.under(&session.root);
        let failed = || format!("cannot write `{file}`");
        let there = fs::read_if_there(&path).with_context(failed)?;
        let why = if let Some(not) = not {
            Some(not.to_owned())
        } else if there.as_deref().map(Digest::of) != Some(self.there) {
            Some(format!("{file} was changed meanwhile and is left as it is"))
        } else if self.may_place {
            None
        } else {
            Some(format!("{file} is a person's: copy the better kernel there, or give `--overwrite`"))
        };
        if let Some(why) = why {
            let place = format!("cache/improve/{}/{}.py", self.subject.op.name, self.subject.variant.name);
            let name = format!("{}.py", self.subject.variant.name);
            let at = session.cache.join("improve").join(&self.subject.op.name).join(name);
            fs::write(&at, source).with_context(|| format!("cannot write `{place}`"))?;
            return Ok(Placed::Elsewhere { place, why });
        }
        let replaced = there.filter(|_| !self.is_written_by_machine()).map(|before| self.keep(&before)).transpose()?;
        fs::write(&path, source).with_context(failed)?;
        self.there = Digest::of(source);
        Ok(Placed::There(replaced))
    }

    /// Returns whether what is there can be made again: a generator made it, or a round did.
    fn is_written_by_machine(&self) -> bool {
        let digest = Some(self.there.to_string());
        self.subject.session.inventory.generated.contains(&self.subject.variant.file)
            || self.rounds().iter().any(|round| round.kernel == digest)
    }

    /// Keeps what a person wrote, and returns where.
    fn keep(&self, before: &[u8]) -> Result<String, CliError> {
        let name = self.subject.file.as_str().replace('/', "-");
        let kept = format!("cache/replaced/{}-{name}", Digest::of(before).short());
        fs::write(&self.subject.session.root.join(&kept), before).with_context(|| format!("cannot write `{kept}`"))?;
        Ok(kept)
    }
}
