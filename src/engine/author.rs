//! Authors: what one is asked for an attempt at a kernel, put together of what is known when it is ready.
//!
//! It does not know how an author is asked, nor what becomes of a kernel.

use std::path::{Path, PathBuf};

use serde_json::Value;
use t2t_host::author::{Chat, Question};
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_plan::schedule::Settled;
use t2t_protocol::{Analysis, Failure, Resources};
use t2t_report::rank::Found;
use t2t_report::render::attempts::Attempt;
use t2t_report::render::prompt::{self, Before, Neighbour, Prompt};
use t2t_report::render::{RenderError, Template};
use t2t_spec::authors::{Author, Server, Way};
use t2t_spec::{Op, Profile, Variant};
use t2t_store::{assets, fs};

use super::asking::{ATTEMPT, Asking, cause};
use super::{EngineError, Run, Stop};
use crate::session::Session;

/// How many other kernels of the op an author is shown, and how long one may be.
pub(crate) const NEIGHBOURS: usize = 3;
pub(crate) const LONGEST_NEIGHBOUR: usize = 32 << 10;

/// Returns the author that is asked for the kernel of `target`, with its name. None where the embedded generator makes it.
pub(crate) fn author<'a>(session: &'a Session, target: &Target) -> Option<(&'a str, &'a Author)> {
    let variant = session.spec.op(&target.op)?.variant(target.variant.as_deref()?)?;
    session.spec.authors.named.get_key_value(variant.generator.as_ref()?).map(|(name, author)| (name.as_str(), author))
}

/// What is known of an attempt that failed. Of what was before the first nothing is.
#[derive(Default)]
struct Past {
    attempt: u32,
    forms: Vec<String>,
    failed: Option<(Phase, Failure)>,
    resources: Option<Resources>,
    source: Option<String>,
}

impl Past {
    /// Returns it as an author is told of it.
    fn told(&self) -> Option<Before<'_>> {
        let (phase, failure) = self.failed.as_ref()?;
        Some(Before {
            attempt: self.attempt,
            source: self.source.as_deref(),
            phase: phase.name(),
            failure,
            resources: self.resources.as_ref(),
        })
    }
}

impl Run<'_, '_> {
    /// Returns what is asked for the attempt of `target`, whose variant has an author. Fails with the fault of the template, where that is wrong.
    pub(super) fn asking(&self, target: &Target) -> Result<Result<Asking, RenderError>, Stop> {
        let (name, author) = author(self.session, target).expect("the variant has an author");
        let op = self.session.spec.op(&target.op).expect("an action of an op");
        let variant = target.variant.as_deref().and_then(|name| op.variant(name)).expect("an action of a variant");
        let past = self.past(target)?;
        let analysis: Found<Analysis> = self.found(&Target::of_op(&target.op, Phase::Analyze), "analysis")?;
        let reference = op.reference.as_ref().and_then(|reference| text(&self.session.root.join(&reference.file)));
        let file = Path::new(&variant.file).file_name().map(|name| name.to_string_lossy().into_owned());
        let file = file.unwrap_or_else(|| format!("{}.py", variant.name));
        let neighbours = self.neighbours(op, variant)?;
        let prompt = Prompt {
            op: &op.name,
            variant: &variant.name,
            attempt: target.attempt,
            file: &file,
            declaration: &op.declaration(Profile::Cuda).asked(),
            declared: &variant.asked(),
            reference: reference.as_deref(),
            analysis: analysis.document(),
            devices: &self.session.inventory.targets,
            neighbours: &neighbours,
            before: past.told(),
        };
        let template = self.prompt_template()?;
        let asked = match prompt::prompt(Template { path: assets::PROMPT, text: &template }, &prompt) {
            Ok(asked) => asked,
            Err(fault) => return Ok(Err(fault)),
        };
        let (root, request) = (self.session.root.clone(), prompt::request(&prompt));
        let question = question(author, Asked { root, file, prompt: asked, request });
        let attempt = Attempt {
            attempt: target.attempt,
            generator: name.to_owned(),
            forms: past.forms.into_iter().chain([name.to_owned()]).collect(),
            after: past.failed.map(|(phase, failure)| cause(phase, failure)),
            ..Attempt::default()
        };
        Ok(Ok(Asking { question, attempt, before: past.source }))
    }

    /// Returns what is known of the attempt before that of `target`.
    fn past(&self, target: &Target) -> Result<Past, Stop> {
        if target.attempt == 1 {
            return Ok(Past::default());
        }
        let before = target.of_attempt(target.attempt - 1);
        let attempt: Found<Attempt> = self.found(&before, ATTEMPT)?;
        let compile = Target { phase: Phase::Compile, ..before.clone() };
        Ok(Past {
            attempt: before.attempt,
            forms: attempt.document().map(|attempt| attempt.forms.clone()).unwrap_or_default(),
            failed: self.rejection(&before)?,
            resources: self.found(&compile, "resources")?.document().cloned(),
            source: self.kernel_text(&before)?,
        })
    }

    fn kernel_text(&self, target: &Target) -> Result<Option<String>, Stop> {
        let kernel = self.kernel_of(target).map(|kernel| self.bytes(kernel.digest)).transpose()?;
        Ok(kernel.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Returns other kernels of the op: those of persons, and those that were accepted in this build.
    fn neighbours(&self, op: &Op, variant: &Variant) -> Result<Vec<Neighbour>, Stop> {
        let mut found = Vec::new();
        for other in op.variants.iter().filter(|other| other.name != variant.name && other.module.is_none()) {
            let source = if self.session.inventory.generated.contains(&other.file) {
                let check = self.standing(&Target::of_variant(&op.name, &other.name, Phase::Check));
                let settled = self.session.graph.find(&check).and_then(|index| self.schedule.settled(index));
                let is_accepted = settled.and_then(Settled::record).is_some_and(|record| record.outcome.is_pass());
                if is_accepted { self.kernel_text(&check)? } else { None }
            } else {
                text(&self.session.root.join(&other.file))
            };
            let source = source.filter(|source| source.len() <= LONGEST_NEIGHBOUR);
            found.extend(source.map(|source| Neighbour { variant: other.name.clone(), source }));
        }
        found.truncate(NEIGHBOURS);
        Ok(found)
    }

    fn prompt_template(&self) -> Result<String, Stop> {
        let path = assets::PROMPT;
        let bytes = assets::read(&self.session.root, path).unwrap_or_default();
        if self.session.inventory.prompt != Digest::of(&bytes) {
            return Err(Stop::Outdated(path.to_owned()));
        }
        let fault = |_| EngineError::NoTemplate { path: path.to_owned(), message: "not UTF-8".to_owned() };
        Ok(String::from_utf8(bytes).map_err(fault)?)
    }
}

/// What an author is asked, as text and as JSON, where, and what its file is to be called.
pub(crate) struct Asked {
    /// The workspace.
    pub(crate) root: PathBuf,
    /// The name of the kernel's file.
    pub(crate) file: String,
    /// The prompt.
    pub(crate) prompt: String,
    /// The same as JSON.
    pub(crate) request: Value,
}

/// Returns the question to `author`.
pub(crate) fn question(author: &Author, asked: Asked) -> Question {
    let (command, chat) = match &author.way {
        Way::Command(command) => (command.clone(), None),
        Way::Server(server) => (Vec::new(), Some(chat(server))),
    };
    Question {
        command,
        chat,
        variables: author.variables.clone(),
        root: asked.root,
        file: asked.file,
        prompt: asked.prompt,
        request: format!("{:#}\n", asked.request),
        timeout: author.timeout,
    }
}

fn chat(server: &Server) -> Chat {
    let Server { base_url, model, max_tokens, temperature } = server.clone();
    Chat { base_url, model, max_tokens, temperature }
}

/// Returns the text of a file, None where there is none.
pub(crate) fn text(path: &Path) -> Option<String> {
    fs::read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}
