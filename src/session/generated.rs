//! The kernel files that a generator writes: which those are in a workspace, and the generator.
//!
//! A file is the generator's where there is none, or where its bytes are those of a kernel that it made for the variant before. Any other is a person's. It does not know how
//! kernels are made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use t2t_generate::catalogue::Op as Known;
use t2t_generate::files::Files;
use t2t_generate::render::{Generator, variant_names};
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::path::RepoPath;
use t2t_model::problem::{Listing, Problem};
use t2t_model::record::{KERNEL, Record};
use t2t_plan::graph::pattern::fits;
use t2t_plan::graph::pick::split;
use t2t_spec::authors::{self, TEMPLATE};
use t2t_spec::names::Form;
use t2t_spec::{Op, Spec, Variant};
use t2t_store::assets;
use t2t_store::fingerprint::{Fingerprint, Observed};
use t2t_store::fs;
use t2t_store::sources::Sources;

use super::{Chosen, NoSession, OPS, machine};

/// Where a workspace has families and templates of its own.
pub(crate) const FOLDER: &str = "assets/generators";

/// How the names of families and templates end.
const ENDINGS: [&str; 2] = [".json", ".py.jinja"];

/// Whose the kernel files of variants with a generator are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// A person's file stays.
    No,
    /// A person's file is replaced.
    Yes,
}

/// What a generator writes in a workspace.
#[derive(Debug, Default)]
pub(super) struct Generated {
    /// The kernel files that it writes.
    pub(super) files: BTreeSet<String>,
    /// The digests of those among them that a person wrote and that are to be replaced.
    pub(super) replaced: BTreeMap<String, Digest>,
    /// The generator, where something names it.
    pub(super) generator: Option<Generator>,
    /// The digest of its files.
    pub(super) digest: Option<Digest>,
    /// Its files in the workspace, as they were before they were read.
    pub(super) fingerprints: Vec<Fingerprint<'static>>,
}

/// Returns the generator's files: those of the workspace at `root` in the place of the embedded ones, and beside them. Fails where one cannot be read.
pub(crate) fn generator_files(root: &Path) -> Result<Files, NoSession> {
    let read = |name: String| {
        let bytes = fs::read(&root.join(FOLDER).join(&name));
        let bytes = bytes.map_err(|error| machine(&format!("cannot read `{FOLDER}/{name}`"), &error))?;
        let text = String::from_utf8(bytes).map_err(|_| unfit(&format!("{name}: it is no UTF-8")))?;
        Ok((name, text))
    };
    Ok(Files::with(own(root).into_iter().map(read).collect::<Result<Vec<_>, NoSession>>()?))
}

/// Returns the generator of these files. Fails where a family is none.
pub(crate) fn generator_of(files: &Files) -> Result<Generator, NoSession> {
    Generator::new(files).map_err(|fault| unfit(&fault.to_string()))
}

fn own(root: &Path) -> Vec<String> {
    let names = fs::names(&root.join(FOLDER)).into_iter();
    names.filter(|name| ENDINGS.iter().any(|ending| name.ends_with(ending))).collect()
}

/// Returns the error for a fault of a family or a template.
fn unfit(fault: &str) -> NoSession {
    NoSession::Use {
        message: format!("{FOLDER}/{fault}"),
        hint: "docs/reference/generators.md says what families and templates have".to_owned(),
    }
}

/// Returns the digests of the kernels that were made for the variant of `target`.
pub(crate) fn made<'a>(history: &'a History, target: &'a Target) -> impl Iterator<Item = Digest> + 'a {
    let is_own = |record: &&Record| {
        let of = &record.identity.target;
        of.op == target.op && of.variant == target.variant
    };
    history.of_phase(Phase::Generate).filter(is_own).filter_map(|record| Some(record.outputs.get(KERNEL)?.digest))
}

/// Returns what the generator writes. Fails with every variant that it is named for and cannot write, and where its files cannot be read.
pub(super) fn generated(
    spec: &Spec,
    sources: &Sources,
    root: &Path,
    history: &History,
    overwrite: Overwrite,
) -> Result<Generated, NoSession> {
    let mut found = Generated { fingerprints: fingerprints(root), ..Generated::default() };
    found.fingerprints.push(Fingerprint::of_file(root, assets::PROMPT));
    let variants = || spec.ops.iter().flat_map(|op| &op.variants);
    let is_rendered = |variant: &Variant| variant.generator.as_deref() == Some(TEMPLATE);
    let files = generator_files(root)?;
    let generator = variants().any(is_rendered).then(|| generator_of(&files)).transpose()?;
    let mut made: BTreeMap<(&str, &str), BTreeSet<Digest>> = BTreeMap::new();
    for record in history.of_phase(Phase::Generate) {
        let Target { op, variant, .. } = &record.identity.target;
        let kernel = record.outputs.get(KERNEL).map(|blob| blob.digest);
        made.entry((op, variant.as_deref().unwrap_or_default())).or_default().extend(kernel);
    }
    let text = fs::read(&root.join(OPS)).map_err(|error| machine("cannot read `ops.yaml`", &error))?;
    let text = String::from_utf8_lossy(&text);
    let listing = Listing::new(OPS, &text);
    let mut problems = Vec::new();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for variant in variants() {
        *named.entry(&variant.file).or_default() += 1;
    }
    for op in &spec.ops {
        let variants: Vec<&Variant> = op.variants.iter().filter(|variant| variant.generator.is_some()).collect();
        if variants.is_empty() {
            continue;
        }
        let known = generator.as_ref().and_then(|generator| known_op(generator, op));
        if let Some(generator) =
            generator.as_ref().filter(|_| known.is_none() && variants.iter().any(|one| is_rendered(one)))
        {
            let problem = listing.problem(op.place, unknown(op));
            problems.push(problem.with_hint(unknown_hint(generator, op)));
            continue;
        }
        for variant in variants {
            let Ok(path) = RepoPath::new(&variant.file) else { continue };
            let there = sources.bytes(&path);
            let own = made.get(&(op.name.as_str(), variant.name.as_str()));
            let is_made = there.is_none_or(|there| own.is_some_and(|own| own.contains(&there)));
            if !is_made && overwrite == Overwrite::No {
                continue;
            }
            let rendered = generator.as_ref().zip(known).filter(|_| is_rendered(variant));
            let objection = shared(variant, named[variant.file.as_str()])
                .or_else(|| rendered.and_then(|(generator, known)| objection(generator, known, variant)));
            if let Some((message, hint)) = objection {
                let problem: Problem = listing.problem(op.place, message);
                problems.push(problem.with_hint(hint));
                continue;
            }
            found.replaced.extend(there.filter(|_| !is_made).map(|there| (variant.file.clone(), there)));
            found.files.insert(variant.file.clone());
        }
    }
    if !problems.is_empty() {
        return Err(NoSession::Spec(problems));
    }
    found.digest = generator.is_some().then(|| digest(&files));
    found.generator = generator;
    Ok(found)
}

/// Returns the op of the catalogue that an op of ops.yaml is.
pub(crate) fn known_op<'a>(generator: &'a Generator, op: &Op) -> Option<&'a Known> {
    op.torch.as_ref().and_then(|torch| generator.catalogue.find(torch.as_str()))
}

/// Whether a rendered wrapper, a function with torch's parameters, is what the variant declares.
pub(crate) fn takes_the_wrapper(variant: &Variant) -> bool {
    variant.call.is_none() && variant.methods.is_none() && Form::Identifier.fits(&variant.entry)
}

fn unknown(op: &Op) -> String {
    match &op.torch {
        Some(torch) => format!("no family of the generator has `{}`, the function of op `{}`", torch.as_str(), op.name),
        None => format!("the generator makes kernels of torch functions, and op `{}` has a reference", op.name),
    }
}

fn unknown_hint(generator: &Generator, op: &Op) -> String {
    let near = op.torch.as_ref().map(|torch| generator.catalogue.nearest(torch.as_str())).unwrap_or_default();
    let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    let near = if near.is_empty() { String::new() } else { format!("near are {}; ", near.join(", ")) };
    format!("{near}`t2t add --list` has all; write the kernels yourself and take `generator` out")
}

/// Has another generator make the kernels of what is named. Returns the variants for which ops.yaml names another one. Fails where there is none of that name.
pub(super) fn choose(chosen: &Chosen, spec: &mut Spec) -> Result<Vec<String>, NoSession> {
    let Chosen { generator, targets } = chosen;
    if generator != TEMPLATE && !spec.authors.named.contains_key(generator) {
        return Err(NoSession::Use {
            message: format!("there is no generator `{generator}`"),
            hint: format!("there are {}; `generators` in ops.yaml names more", authors::known(&spec.authors)),
        });
    }
    let parts: Vec<(&str, Option<&str>)> = targets
        .iter()
        .flat_map(|target| split(target))
        .map(|target| target.split(':').next().unwrap_or(target))
        .map(|place| place.split_once('/').map_or((place, None), |(op, variant)| (op, Some(variant))))
        .collect();
    let mut passed_over = Vec::new();
    for op in &mut spec.ops {
        // What is installed, and what is in CUDA C++, is nobody's to write.
        let written = op.variants.iter_mut().filter(|variant| variant.module.is_none() && variant.cuda.is_none());
        for variant in written {
            let is_named =
                |(of, own): &(&str, Option<&str>)| fits(of, &op.name) && own.is_none_or(|own| fits(own, &variant.name));
            if parts.iter().any(is_named) {
                let declared = variant.generator.replace(generator.clone());
                let is_other = declared.is_some_and(|declared| declared != *generator);
                passed_over.extend(is_other.then(|| format!("{}/{}", op.name, variant.name)));
            }
        }
    }
    Ok(passed_over)
}

/// Returns why no generator can write the file of a variant, and what helps: `count` variants have it.
fn shared(variant: &Variant, count: usize) -> Option<(String, String)> {
    let message = || format!("`{}` is the file of {count} variants, so no generator can write it", variant.file);
    (count > 1).then(|| (message(), "give each variant a file of its own".to_owned()))
}

/// Returns why the embedded generator cannot write the file of a variant, and what helps.
fn objection(generator: &Generator, op: &Known, variant: &Variant) -> Option<(String, String)> {
    let names = variant_names(&generator.catalogue, op);
    if !names.contains(&variant.name) {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("the generator has no variant `{}` of `{}`", variant.name, op.name);
        let hint = format!(
            "its variants are {}; write `{}` yourself, or declare the variant with `generator: none`",
            names.join(", "),
            variant.file
        );
        return Some((message, hint));
    }
    if !takes_the_wrapper(variant) {
        let message = format!("variant `{}` is called in a way of its own, so no generator can write it", variant.name);
        return Some((message, "leave out `call` and dots in `entry`, or write the kernel yourself".to_owned()));
    }
    None
}

/// Returns the digest of the generator's files, and of how they are rendered.
fn digest(files: &Files) -> Digest {
    let mut text = format!("render {}\n", t2t_generate::render::VERSION);
    for (name, content) in files.iter() {
        text += &format!("{name} {}\n", Digest::of(content.as_bytes()));
    }
    Digest::of(text.as_bytes())
}

/// Returns fingerprints of the generator's own files in the workspace, and of the folder that gets new ones.
fn fingerprints(root: &Path) -> Vec<Fingerprint<'static>> {
    let folder = Fingerprint { path: FOLDER.into(), was: Observed::Time(fs::folder_time(&root.join(FOLDER))) };
    let files = own(root).into_iter().map(|name| Fingerprint::of_file(root, &format!("{FOLDER}/{name}")));
    std::iter::once(folder).chain(files).collect()
}
