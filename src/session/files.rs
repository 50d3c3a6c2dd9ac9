//! The files of a session: what the kernels, templates and tables of a workspace hold now.
//!
//! It does not know what is made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use t2t_model::action::Source;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_model::problem::{Position, Problem};
use t2t_plan::graph::expand::{Binds, KernelFile};
use t2t_python::{FaultKind, PythonFile};
use t2t_spec::{Op, Spec, Variant};
use t2t_store::assets;
use t2t_store::fs;
use t2t_store::sources::{CudaClosure, Sources};

use super::{NoSession, baselines, unwritten};

/// Returns the catalogue as a file that children can read, and its digest.
pub(crate) fn catalogue(root: &Path, cache: &Path) -> Result<(PathBuf, Digest), NoSession> {
    let own = root.join(assets::CATALOGUE);
    if let Ok(bytes) = fs::read(&own) {
        return Ok((own, Digest::of(&bytes)));
    }
    let bytes = assets::carried(assets::CATALOGUE).unwrap_or_default();
    let digest = Digest::of(bytes);
    let path = cache.join("harness").join(format!("catalogue-{}.json", digest.short()));
    // Children read this file, so it must have the bytes that the key names: it is written again if it differs.
    if fs::read_own(&path).ok().as_deref() != Some(bytes) {
        match fs::write(&path, bytes) {
            // Only children read it, and where nothing can be written none run.
            Err(error) if is_forbidden(&error) => {}
            written => written.map_err(|error| unwritten("cannot write to `cache/`", &error))?,
        }
    }
    Ok((path, digest))
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

pub(crate) fn asset_digest(root: &Path, path: &str) -> Digest {
    Digest::of(&assets::read(root, path).unwrap_or_default())
}

/// Returns the digests of the log templates. Fails where one is not there: a build would find that out when everything else has run.
pub(crate) fn templates(spec: &Spec, root: &Path) -> Result<BTreeMap<String, Digest>, NoSession> {
    let digest = |op: &Op| {
        let path = op.template.clone();
        let bytes = assets::read(root, &path).ok_or_else(|| NoSession::Use {
            message: format!("ops.yaml: the log template of `{}`, `{path}`, cannot be read", op.name),
            hint: "write the file, or take `log: {template: …}` out of ops.yaml".to_owned(),
        })?;
        Ok((path, Digest::of(&bytes)))
    };
    spec.ops.iter().map(digest).collect()
}

/// Returns the files that the spec names, without those that are `generated`. Fails where one cannot be read, or may not be what it is.
pub(crate) fn files(
    spec: &Spec,
    sources: &Sources,
    root: &Path,
    generated: &BTreeSet<String>,
) -> Result<BTreeMap<String, KernelFile>, NoSession> {
    let is_read = |variant: &&Variant| variant.module.is_none() && !generated.contains(&variant.file);
    let variants = || spec.ops.iter().flat_map(|op| &op.variants).filter(is_read);
    let kernels = variants().map(|variant| &variant.file);
    let inside = |file: &String| RepoPath::new(file).ok();
    let paths: Vec<RepoPath> = kernels.chain(spec.ops.iter().flat_map(trusted)).filter_map(inside).collect();
    sources.look_at(&paths);
    let in_cuda = || variants().filter(|variant| !variant.is_inline());
    let in_cuda = || in_cuda().filter_map(|variant| Some((variant.cuda.as_ref()?, &variant.file)));
    let cuda: Vec<RepoPath> = in_cuda().filter_map(|(file, _)| inside(file)).collect();
    // A file that is there and cannot be read is no word on the kernel: nothing may be judged for want of it.
    for path in paths.iter().chain(&cuda).filter(|path| sources.bytes(path).is_none()) {
        let file = path.under(root);
        if fs::stat(&file).is_some()
            && let Err(error) = fs::read(&file)
        {
            return Err(unreadable(path, &error));
        }
    }
    let kernels =
        variants().map(|variant| (variant.file.clone(), kernel_file((sources, root), &variant.file, "the variant")));
    let cuda = in_cuda().map(|(file, operator)| (file.clone(), cuda_file((sources, root), file, operator)));
    let trusted = spec.ops.iter().flat_map(trusted);
    let values = spec.ops.iter().flat_map(|op| op.values().map(move |file| values_file(sources, op, file)));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let trusted = trusted.map(|file| (file.clone(), kernel_file((sources, root), file, "`cases`")));
    let found: BTreeMap<String, KernelFile> = kernels.chain(cuda).chain(values).chain(trusted).collect();
    if let Some((path, error)) = sources.denied() {
        return Err(unreadable(&path, &error));
    }
    spec.ops.iter().try_for_each(|op| knows_no_kernel(op, &found))?;
    baselines::are_there(spec, &found, root)?;
    Ok(found)
}

fn unreadable(path: &RepoPath, error: &io::Error) -> NoSession {
    NoSession::Machine {
        message: format!("cannot read `{path}`: {error}"),
        hint: Some("let the user who builds read it, and the folders above it".to_owned()),
    }
}

/// Returns a file that holds values of an input. Fails where it is not there: nothing of the op could run.
fn values_file(sources: &Sources, op: &Op, file: &str) -> Result<(String, KernelFile), NoSession> {
    let path = RepoPath::new(file).ok();
    let found = path.and_then(|path| sources.bytes(&path).map(|digest| (path, digest)));
    let (path, digest) = found.ok_or_else(|| NoSession::Use {
        message: format!("ops.yaml: `{file}`, which holds values of an input of `{}`, cannot be read", op.name),
        hint: "write the file, or give the input another `init`".to_owned(),
    })?;
    let closure = BTreeMap::from([(path, Source { meaning: digest, bytes: digest })]);
    Ok((file.to_owned(), KernelFile { closure, ..KernelFile::default() }))
}

/// Returns the files of an op that are no kernels: those that say what is right, and those that kernels are compared with.
fn trusted(op: &Op) -> impl Iterator<Item = &String> {
    op.cases.iter().chain(op.reference.as_ref().map(|reference| &reference.file)).chain(op.baseline_files())
}

/// A reference that imports a kernel would be held against itself.
fn knows_no_kernel(op: &Op, found: &BTreeMap<String, KernelFile>) -> Result<(), NoSession> {
    let Some(reference) = &op.reference else { return Ok(()) };
    let reached = found.get(&reference.file).map(|file| &file.closure);
    let imports =
        |variant: &&Variant| reached.is_some_and(|closure| closure.keys().any(|path| path.as_str() == variant.file));
    match op.variants.iter().find(imports) {
        Some(variant) => Err(NoSession::Use {
            message: format!(
                "ops.yaml: the reference of `{}`, `{}`, imports its variant `{}`",
                op.name, reference.file, variant.name
            ),
            hint: "let the reference compute with torch alone".to_owned(),
        }),
        None => Ok(()),
    }
}

fn kernel_file((sources, root): (&Sources, &Path), file: &str, named: &str) -> KernelFile {
    let Ok(path) = RepoPath::new(file) else { return outside(file) };
    let Some(source) = sources.python(&path) else { return missing(root, file, named) };
    known_file(sources, &path, source, sources.closure(&path))
}

/// Returns a file in CUDA C++, whose kernels the Python file `operator` launches. What is wrong in it nvcc says.
fn cuda_file((sources, root): (&Sources, &Path), file: &str, operator: &str) -> KernelFile {
    let (Ok(path), Ok(operator)) = (RepoPath::new(file), RepoPath::new(operator)) else { return outside(file) };
    let CudaClosure { files, is_extension } = sources.cuda_closure(&path, &operator);
    if files.is_empty() {
        return missing(root, file, "the variant");
    }
    KernelFile { closure: files, is_extension, ..KernelFile::default() }
}

fn outside(file: &str) -> KernelFile {
    KernelFile { fault: Some(Problem::of_file(file, "the path leaves the workspace")), ..KernelFile::default() }
}

fn missing(root: &Path, file: &str, named: &str) -> KernelFile {
    let (message, put) = match root.join(file).metadata() {
        Ok(there) if there.is_dir() => ("it is a folder", "put a file in its place"),
        Ok(_) => ("it is a device, a pipe or a socket", "put a file in its place"),
        Err(_) => ("no such file", "write the file"),
    };
    let hint = format!("{put}, or take {named} out of ops.yaml");
    KernelFile { fault: Some(Problem::of_file(file, message).with_hint(hint)), ..KernelFile::default() }
}

/// Returns a kernel file at `path` that holds `bytes`, whatever is there.
pub(super) fn made_file(sources: &Sources, path: &RepoPath, bytes: &[u8]) -> KernelFile {
    let python = t2t_python::read(bytes);
    let closure = sources.closure_with(path, Digest::of(bytes), &python);
    known_file(sources, path, python, closure)
}

fn known_file(
    sources: &Sources,
    path: &RepoPath,
    source: PythonFile,
    closure: BTreeMap<RepoPath, Source>,
) -> KernelFile {
    let fault = fault_of(path.as_str(), &source).or_else(|| {
        let (path, python) = sources.beyond(path)?;
        fault_of(path.as_str(), &python)
    });
    let binds = fault.is_none().then_some(Binds { callables: source.callables, names: source.names });
    KernelFile { closure, docstring: source.docstring, fault, binds, is_extension: false }
}

/// What helps where a file is more than t2t reads.
const BEYOND: &str = "part it into several statements or files, or read what was generated from data";

fn fault_of(file: &str, source: &PythonFile) -> Option<Problem> {
    let fault = source.fault.as_ref()?;
    let place = Position { line: fault.line, column: fault.column };
    Some(Problem {
        line: Some(place.line),
        column: Some(place.column),
        excerpt: Some(fault.excerpt.clone()).filter(|line| !line.is_empty()),
        hint: (fault.kind == FaultKind::Beyond).then(|| BEYOND.to_owned()),
        ..Problem::of_file(file, fault.message.clone())
    })
}
