//! Attempts: kernel files that a generator writes: made, read, put into the workspace, taken out of it again.
//!
//! What a person wrote or changed is never written over. It does not know which attempt is made when.

use std::collections::BTreeSet;

use serde_json::json;
use t2t_generate::again::Failure as Failed;
use t2t_generate::render::{Form, Generator, Request, TemplateFault, Variant, variant_names};
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_model::manifest::canonical_json;
use t2t_model::path::RepoPath;
use t2t_model::record::{Blob, KERNEL, Outcome};
use t2t_plan::attempts::{is_replaced, standing};
use t2t_plan::graph::Index;
use t2t_plan::schedule::{Made, Settled};
use t2t_protocol::Failure;
use t2t_report::rank::Found;
use t2t_report::render::attempts::{Attempt, Cause};
use t2t_store::fs;

use super::asking::{ATTEMPT, cause};
use super::author::author;
use super::local::passed;
use super::{EngineError, Run, Stop, evidence};
use crate::engine::perform::Performed;
use crate::session::{self, Session};

/// The class of a generator that has no other form.
const NO_FURTHER_FORM: &str = "no-further-form";

impl Run<'_, '_> {
    /// Makes the kernel file of an attempt. None where an author is to be asked for it.
    pub(super) fn made_here(&mut self, index: Index, target: &Target) -> Result<Option<Performed>, Stop> {
        if author(self.session, target).is_none() {
            return self.generate(target).map(Some);
        }
        match self.asking(target)? {
            Ok(asking) => {
                self.askings.insert(index, asking);
                Ok(None)
            }
            Err(fault) => {
                let hint = "docs/reference/authors.md says what the prompt may name";
                Ok(Some(rejected(evidence::SOURCE, fault.to_string(), hint)))
            }
        }
    }

    /// Makes the kernel file of an attempt, in a form that follows from how those before failed.
    fn generate(&self, target: &Target) -> Result<Performed, Stop> {
        let earlier: Option<Attempt> = match target.attempt {
            1 => None,
            later => self.found(&target.of_attempt(later - 1), ATTEMPT)?.document().cloned(),
        };
        let after = match target.attempt {
            1 => None,
            later => self.cause(&target.of_attempt(later - 1))?,
        };
        let forms = earlier.map(|attempt| attempt.forms).unwrap_or_default();
        let made = match next(self.session, target, &forms, after.as_ref()) {
            Ok(Some((form, text))) => {
                let name = form.name().to_owned();
                let attempt = Attempt {
                    attempt: target.attempt,
                    generator: "template".to_owned(),
                    forms: forms.into_iter().chain([name]).collect(),
                    change: form.change().to_owned(),
                    after,
                    ..Attempt::default()
                };
                passed(&[(ATTEMPT, canonical_json(&json!(attempt))), (KERNEL, text)])
            }
            Ok(None) => {
                let message = format!("the generator has no further form; these failed: {}", forms.join(", "));
                rejected(NO_FURTHER_FORM, message, "write the kernel file yourself: it is never written over")
            }
            Err(fault) => {
                let message = format!("{}/{fault}", session::GENERATORS);
                rejected(evidence::SOURCE, message, "docs/reference/generators.md says what templates may name")
            }
        };
        Ok(made)
    }

    fn cause(&self, target: &Target) -> Result<Option<Cause>, Stop> {
        Ok(self.rejection(target)?.map(|(phase, failure)| cause(phase, failure)))
    }

    /// Returns in which phase an attempt at the variant of `target` was rejected, and why.
    pub(super) fn rejection(&self, target: &Target) -> Result<Option<(Phase, Failure)>, Stop> {
        for phase in [Phase::Generate, Phase::Compile, Phase::Check] {
            let of_phase = Target { phase, ..target.clone() };
            let Some(index) = self.session.graph.find(&of_phase) else { continue };
            let Some(record) = self.schedule.settled(index).and_then(Settled::record) else { continue };
            let Outcome::Rejected { class } = &record.outcome else { continue };
            if record.outcome.asks_for_another() {
                let failure = evidence::failure(record, |digest| self.bytes(digest))?;
                return Ok(Some((phase, Failure { class: class.clone(), ..failure })));
            }
        }
        Ok(None)
    }

    /// Returns what is known of an action by the kernel file that another action made for it.
    pub(super) fn read_made(&mut self, index: Index, path: &RepoPath, kernel: Blob) -> Result<Made, Stop> {
        let bytes = self.bytes(kernel.digest)?;
        let (made, fault) = made(self.session, self.session.graph.action(index).target(), path, &bytes);
        if let Some(fault) = fault {
            self.unusable.insert(index, fault);
        }
        Ok(made)
    }

    /// Returns the attempt at the variant of `target` that stands, as a target of the same phase.
    pub(super) fn standing(&self, target: &Target) -> Target {
        target.of_attempt(standing(&self.session.graph, &|index| self.schedule.settled(index), target))
    }

    /// Returns the numbers of the actions of attempts in whose place later ones were made.
    pub(super) fn replaced(&self) -> BTreeSet<usize> {
        if self.session.inventory.generated.is_empty() {
            return BTreeSet::new();
        }
        let ends = |index| self.schedule.settled(index);
        let graph = &self.session.graph;
        graph.indices().filter(|index| is_replaced(graph, &ends, *index)).map(Index::number).collect()
    }

    /// Returns whether the rejection of an action is no last word: another attempt follows.
    pub(super) fn is_tried_again(&self, target: &Target, outcome: &Outcome) -> bool {
        let index = self.session.graph.find(target);
        let next = index.and_then(|index| self.session.graph.next_attempt(index, outcome));
        next.is_some_and(|next| self.wanted[next.number()])
    }

    /// Puts the kernel file of an action that is about to run in its place. Returns why it cannot, where a person changed what is there.
    pub(super) fn place(&mut self, index: Index) -> Result<Option<String>, Stop> {
        let action = self.session.graph.action(index);
        let Some(path) = action.generated.clone() else { return Ok(None) };
        let target = action.target().clone();
        let Some(kernel) = self.kernel_of(&target) else { return Ok(None) };
        self.put_kernel(&target, &path, Some(kernel))
    }

    /// Returns the kernel file that was made for the attempt of `target`.
    pub(super) fn kernel_of(&self, target: &Target) -> Option<Blob> {
        let index = self.session.graph.find(&Target { phase: Phase::Generate, ..target.clone() })?;
        self.schedule.settled(index)?.record()?.outputs.get(KERNEL).copied()
    }

    /// Leaves the kernel file of each generated variant as the build found it to be: that of the attempt that was accepted, none where none was.
    pub(super) fn settle_files(&mut self) -> Result<(), Stop> {
        let graph = &self.session.graph;
        let first = |index: &Index| {
            let target = graph.action(*index).target();
            target.phase == Phase::Generate && target.attempt == 1
        };
        let generated: Vec<Index> = graph.indices().filter(first).collect();
        for index in generated {
            let first = graph.action(index).target();
            if self.schedule.settled(index).and_then(Settled::record).is_none() {
                continue;
            }
            let standing = self.standing(first);
            let variant = self.session.spec.op(&first.op).and_then(|op| op.variant(first.variant.as_deref()?));
            let Some(path) = variant.and_then(|variant| RepoPath::new(&variant.file).ok()) else { continue };
            let mut kernel = self.kernel_of(&standing).filter(|_| !self.is_given_up(&standing));
            if kernel.is_none() && self.has_unasked(&standing) {
                // Which attempt is accepted is not known here: what lay there comes back.
                let Some(found) = self.found_there.get(&path) else { continue };
                kernel = found.map(|digest| Blob { digest, size: 0 });
            }
            if let Some(reason) = self.put_kernel(first, &path, kernel)? {
                (self.emit)(Event::Warning { text: reason });
            }
        }
        Ok(())
    }

    /// Returns whether there is a further attempt that this build does not ask for.
    fn has_unasked(&self, standing: &Target) -> bool {
        let next = Target { phase: Phase::Generate, ..standing.of_attempt(standing.attempt + 1) };
        self.session.graph.find(&next).is_some_and(|next| !self.wanted[next.number()])
    }

    /// Returns whether the attempt was rejected.
    fn is_given_up(&self, standing: &Target) -> bool {
        [Phase::Generate, Phase::Compile, Phase::Check].into_iter().any(|phase| {
            let index = self.session.graph.find(&Target { phase, ..standing.clone() });
            let settled = index.and_then(|index| self.schedule.settled(index));
            settled.and_then(Settled::record).is_some_and(|record| record.outcome.is_rejection())
        })
    }

    /// Writes a kernel file of a generated variant, or removes it. Returns why not, where what is there is a person's.
    fn put_kernel(&mut self, target: &Target, path: &RepoPath, kernel: Option<Blob>) -> Result<Option<String>, Stop> {
        let place = path.under(&self.session.root);
        let there = fs::read_if_there(&place)?;
        let digest = there.as_deref().map(Digest::of);
        if digest == kernel.map(|kernel| kernel.digest) {
            if self.session.sources.bytes(path) != digest {
                // Somebody put there what is to be there.
                self.session.sources.put(path, there.as_deref())?;
            }
            return Ok(None);
        }
        let replaced = self.session.replaced.get(path.as_str());
        let own: BTreeSet<Digest> = session::made(self.history, target).chain(replaced.copied()).collect();
        if digest.is_some_and(|digest| !own.contains(&digest)) {
            return Ok(Some(format!(
                "{path} was changed meanwhile: it is left as it is, and no attempt is made at it"
            )));
        }
        if let (Some(bytes), Some(_)) = (&there, replaced.filter(|replaced| Some(**replaced) == digest)) {
            let kept = format!("cache/replaced/{}-{}", Digest::of(bytes).short(), path.as_str().replace('/', "-"));
            fs::write(&self.session.root.join(&kept), bytes)?;
            let text = format!("{path}, which a person wrote, is written over, as was asked for; it is kept in {kept}");
            (self.emit)(Event::Warning { text });
        }
        self.found_there.entry(path.clone()).or_insert(digest);
        // A file that no record names would be taken for a person's.
        self.journal.write_added()?;
        let bytes = kernel.map(|kernel| self.bytes(kernel.digest)).transpose()?;
        let failed = |source| Stop::Error(EngineError::Log { path: path.to_string(), source });
        self.session.sources.put(path, bytes.as_deref()).map_err(failed)?;
        Ok(None)
    }
}

/// Returns what is known of an action of `target` whose kernel file at `path` holds `bytes`, and why those cannot be used, if they cannot.
pub(crate) fn made(
    session: &Session,
    target: &Target,
    path: &RepoPath,
    bytes: &[u8],
) -> (Made, Option<t2t_model::problem::Problem>) {
    let file = session.kernel_file(path, bytes);
    let variant = session.spec.op(&target.op).and_then(|op| op.variant(target.variant.as_deref()?));
    let fault = variant.and_then(|variant| file.fault_for(variant));
    (Made { closure: file.closure, fault: fault.as_ref().map(ToString::to_string) }, fault)
}

/// Returns the form of the next attempt at the variant of `target`, and its file. None where the generator has no other.
fn next(
    session: &Session,
    target: &Target,
    forms: &[String],
    after: Option<&Cause>,
) -> Result<Option<(Form, String)>, TemplateFault> {
    let Some((generator, request)) = request(session, target) else { return Ok(None) };
    let form = |name: &String| Form::ALL.into_iter().find(|form| form.name() == name);
    let tried: Vec<Form> = forms.iter().filter_map(form).collect();
    let shown = after.map(|cause| [&cause.case, &cause.given].map(|part| part.clone().unwrap_or_default()).join(" "));
    let failure = after.zip(shown.as_deref()).map_or_else(Failed::default, |(cause, case)| Failed {
        class: &cause.class,
        message: &cause.message,
        case,
    });
    generator.next(&request, &tried, &failure)
}

fn request<'a>(session: &'a Session, target: &Target) -> Option<(&'a Generator, Request<'a>)> {
    let generator = session.generator.as_ref()?;
    let op = session.spec.op(&target.op)?;
    let variant = op.variant(target.variant.as_deref()?)?;
    let known = session::known_op(generator, op)?;
    let place = variant_names(&generator.catalogue, known).iter().position(|name| *name == variant.name)?;
    let request = Request {
        entry: variant.entry.clone(),
        backward: op.backward,
        ..Request::new(known, Variant::ALL[place], Form::Standard)
    };
    Some((generator, request))
}

fn rejected(class: &str, message: String, hint: &str) -> Performed {
    let failure = Failure { hint: Some(hint.to_owned()), ..Failure::new(class, message) };
    Performed { cites: false, ..Performed::rejected(class, &[("failure", json!(failure))]) }
}

/// Returns what is known of attempts that were made, in order, and why no further one was.
pub(super) type History = (Vec<Attempt>, Option<String>);

impl Run<'_, '_> {
    /// Returns the attempts that were made at the variant of `target`, and why no further one was, where the generator had none.
    pub(super) fn attempts(&self, target: &Target) -> Result<History, Stop> {
        let mut made = Vec::new();
        let mut end = None;
        for attempt in 1.. {
            let generate = Target { phase: Phase::Generate, attempt, ..target.clone() };
            if self.session.graph.find(&generate).is_none() {
                break;
            }
            let found: Found<Attempt> = self.found(&generate, ATTEMPT)?;
            made.extend(found.document().cloned());
            let failure: Found<Failure> = self.found(&generate, "failure")?;
            let is_last_word = found.document().is_none();
            end = failure.document().filter(|_| is_last_word).map(|failure| failure.message.clone()).or(end);
        }
        Ok((made, end))
    }
}
