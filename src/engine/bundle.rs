//! The bundle of an action: what another machine needs to perform it, put together from a session and what stands in it.
//!
//! It does not know who performs the action, nor how what the bundle names travels.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use t2t_model::action::{Action, DeviceClass, Phase, Target};
use t2t_model::bundle::Bundle;
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::manifest::Manifest;
use t2t_model::path::RepoPath;
use t2t_model::publication::is_published;
use t2t_model::record::Record;
use t2t_plan::graph::Index;
use t2t_plan::graph::expand::Configurations;
use t2t_plan::schedule::Settled;
use t2t_spec::{Op, part};
use t2t_store::store::cas::{Cas, Unavailable};
use t2t_store::store::journal::Lines;
use t2t_store::{assets, fs, installed};

use crate::session::{OPS, Session};

/// The action that is to be performed elsewhere, as it stands here.
pub(crate) struct Subject<'a> {
    pub(crate) session: &'a Session,
    pub(crate) index: Index,
    /// With what is known of its kernel file, where another action made that.
    pub(crate) action: &'a Action,
    pub(crate) manifest: &'a Manifest,
    /// What became of the actions that it needs.
    pub(crate) settled: &'a dyn Fn(Index) -> Option<&'a Settled>,
    pub(crate) history: &'a History,
    /// `$TORCH_CUDA_ARCH_LIST`.
    pub(crate) architectures: Option<String>,
}

/// A bundle, and where the bytes are that it names.
#[derive(Debug)]
pub(crate) struct Bundled {
    pub(crate) bundle: Bundle,
    contents: BTreeMap<Digest, Content>,
}

/// Where bytes are that a bundle names.
#[derive(Debug)]
enum Content {
    /// Here.
    Bytes(Vec<u8>),
    /// In this file of the workspace.
    File(RepoPath),
    /// In the store.
    Blob,
}

/// Why there is no bundle of an action, or not all that it names.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoBundle {
    #[error("`{0}` runs nothing on another machine: it is made of what is kept here")]
    Local(Target),
    #[error("`{0}` has no result that stands, and what needs it takes one")]
    Unsettled(Target),
    #[error(transparent)]
    Blob(#[from] Unavailable),
    #[error("`{0}` changed since it was read")]
    Changed(RepoPath),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Bundled {
    /// Returns the bytes named `digest`, verified. Fails where they are not what they were, or the bundle does not name them.
    pub(crate) fn bytes(&self, digest: Digest, session: &Session, cas: &Cas) -> Result<Vec<u8>, NoBundle> {
        match self.contents.get(&digest) {
            Some(Content::Bytes(bytes)) => Ok(bytes.clone()),
            Some(Content::File(path)) => {
                let bytes = fs::read(&path.under(&session.root))?;
                if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(NoBundle::Changed(path.clone())) }
            }
            Some(Content::Blob) | None => Ok(cas.get(digest)?),
        }
    }
}

impl Bundled {
    /// Returns where the bytes lie that the bundle names, as files. What lies in none is written to `folder`.
    pub(super) fn places(
        &self,
        session: &Session,
        cas: &Cas,
        folder: &Path,
    ) -> Result<BTreeMap<Digest, PathBuf>, NoBundle> {
        let mut places = BTreeMap::new();
        for (digest, content) in &self.contents {
            let kept = match content {
                Content::File(path) => Some(path.under(&session.root)),
                // One that is lent lies in no file.
                Content::Blob => Some(cas.path(*digest)).filter(|path| fs::stat(path).is_some()),
                Content::Bytes(_) => None,
            };
            let place = kept.unwrap_or_else(|| folder.join(digest.to_string()));
            if place.starts_with(folder) {
                fs::write(&place, &self.bytes(*digest, session, cas)?)?;
            }
            places.insert(*digest, place);
        }
        Ok(places)
    }
}

/// Returns the bundle of an action. Fails where another machine cannot perform it, and where something that it needs does not stand.
pub(crate) fn bundle(subject: &Subject<'_>, cas: &Cas) -> Result<Bundled, NoBundle> {
    let Subject { session, action, .. } = subject;
    let target = action.target();
    if matches!(target.phase, Phase::Generate | Phase::Select | Phase::Log | Phase::Summary) {
        return Err(NoBundle::Local(target.clone()));
    }
    let mut contents = BTreeMap::new();
    let mut named = |bytes: Vec<u8>| {
        let digest = Digest::of(&bytes);
        contents.insert(digest, Content::Bytes(bytes));
        digest
    };
    let needed = needed(subject)?;
    let (key, records) = (named(subject.manifest.encode()), named(Lines::write(needed.iter().copied())?));
    let device = session.inventory.device.class.clone();
    let mut bundle = Bundle::of(target.of_attempt(1), device, key, records);
    bundle.all_configurations = session.inventory.configurations == Configurations::All;
    bundle.architectures.clone_from(&subject.architectures);
    let (ops, declaration) = declaration(session, &target.op)?;
    bundle.files.insert(RepoPath::new(OPS).expect("it is plain"), named(declaration));
    for path in files(subject, &ops) {
        let Some(digest) = session.sources.bytes(&path) else { continue };
        contents.entry(digest).or_insert_with(|| Content::File(path.clone()));
        bundle.files.insert(path, digest);
    }
    for record in needed {
        bundle.blobs.extend(blobs(record, &session.inventory.device.class, cas)?);
    }
    for digest in &bundle.blobs {
        contents.entry(*digest).or_insert(Content::Blob);
    }
    Ok(Bundled { bundle, contents })
}

/// Returns the results that the action rests on, in the order of the graph: with them, every action that it needs is settled elsewhere as it is here.
fn needed<'a>(subject: &Subject<'a>) -> Result<Vec<&'a Record>, NoBundle> {
    let graph = &subject.session.graph;
    let (mut open, mut found) = (vec![subject.index], BTreeSet::new());
    while let Some(index) = open.pop() {
        for (source, _) in graph.dependencies(index) {
            // A kernel file travels as a file, and asks for no generator elsewhere.
            if graph.action(source).target().phase != Phase::Generate && found.insert(source) {
                open.push(source);
            }
        }
    }
    let mut records = Vec::new();
    for index in found {
        match (subject.settled)(index) {
            Some(Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record)) => {
                records.push(record.as_ref());
            }
            // What those depend on says as much elsewhere.
            Some(Settled::Skipped(_) | Settled::NotNeeded) => {}
            Some(Settled::Lost(_) | Settled::Planned | Settled::Missing | Settled::Withheld(_)) | None => {
                return Err(NoBundle::Unsettled(graph.action(index).target().clone()));
            }
        }
    }
    Ok(records)
}

/// Returns the manifest and the artifacts of a result. On the interpreter nobody asks for compiled kernels, which a result may have come without.
fn blobs(record: &Record, device: &DeviceClass, cas: &Cas) -> Result<Vec<Digest>, NoBundle> {
    let mut found = Vec::new();
    let outputs = record.outputs.iter().map(|(name, blob)| (is_published(name), blob.digest));
    for (is_needed, digest) in [(true, record.key)].into_iter().chain(outputs) {
        let is_there = fs::stat(&cas.path(digest)).is_some() || cas.get(digest).is_ok();
        if is_there {
            found.push(digest);
        } else if is_needed || *device != DeviceClass::Interpreter {
            return Err(Unavailable::Missing(digest).into());
        }
    }
    Ok(found)
}

/// Returns what of ops.yaml speaks of the op of an action, and which ops that declares: more than one where they are not blocks of their own. The calibration is of no op, and takes
/// the first.
fn declaration<'a>(session: &'a Session, op: &str) -> Result<(Vec<&'a Op>, Vec<u8>), NoBundle> {
    let bytes = fs::read(&session.root.join(OPS))?;
    let ops = &session.spec.ops;
    let Some(kept) = session.spec.op(op).or_else(|| ops.first()) else { return Ok((Vec::new(), bytes)) };
    let lines: Vec<(&str, u32)> = ops.iter().map(|op| (op.name.as_str(), op.place.line)).collect();
    let text = std::str::from_utf8(&bytes).ok();
    let part = text.and_then(|text| part::part(text, &lines, &|name| name == kept.name));
    Ok(match part {
        Some(part) => (vec![kept], part.into_bytes()),
        None => (ops.iter().collect(), bytes),
    })
}

/// Returns the files of the workspace that may have to be there: those of the action, those without which its op cannot be read, and what the action turned out to read before.
fn files(subject: &Subject<'_>, ops: &[&Op]) -> BTreeSet<RepoPath> {
    let Subject { session, action, history, .. } = subject;
    let mut paths: BTreeSet<RepoPath> = action.sources.keys().chain(&action.generated).cloned().collect();
    let inventory = &session.inventory;
    for op in ops {
        let reference = op.reference.as_ref().map(|reference| reference.file.as_str());
        let cases = op.cases.as_deref();
        let baselines = op.baseline_files().map(String::as_str);
        let named = reference.into_iter().chain(cases).chain(baselines).chain(op.values());
        paths.extend(named.filter_map(|file| inventory.files.get(file)).flat_map(|file| file.closure.keys().cloned()));
        paths.extend(RepoPath::new(&op.template));
    }
    paths.extend([assets::DEVICES, assets::CATALOGUE].into_iter().flat_map(RepoPath::new));
    let known = history.known_to(&action.identity, subject.manifest.key()).chain(history.last(&action.identity));
    let discovered = known.flat_map(|record| record.discovered.keys());
    paths.extend(discovered.filter(|path| installed::module(path).is_none()).cloned());
    paths
}
