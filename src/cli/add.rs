//! `t2t add`: names of torch operations become entries of ops.yaml, whose kernels builds make by the embedded generator, or kernel files at once.
//!
//! Everything is worked out before anything is written: an error leaves the workspace as it was. A file that is there is never written over.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;

use anyhow::Context;
use t2t_generate::catalogue::{Catalogue, Op};
use t2t_generate::render::variant_names;
use t2t_model::problem::Problem;
use t2t_plan::graph::pick;
use t2t_spec::names::Form;
use t2t_spec::{Spec, entry};
use t2t_store::fs;

use super::error::CliError;
use super::{AddArguments, Common, Targets, held, init, streams};
use crate::session::{self, OPS};

mod families;
mod kernels;
mod listing;
mod text;

use self::kernels::{Kernels, Writing};

/// Runs the command.
pub(crate) fn add(common: &Common, arguments: &AddArguments) -> Result<u8, CliError> {
    let here = env::current_dir().context("cannot tell the current folder")?;
    let root = session::workspace(&here).unwrap_or(here);
    let generator = families::generator(&root)?;
    if let Some(family) = &arguments.list {
        streams::print(&listing::list(&generator.catalogue, family)?);
        return Ok(0);
    }
    let named = Named::all(&generator.catalogue, &arguments.names)?;
    let chosen = |named: &Named| named.variants(&generator.catalogue, &arguments.variants);
    let chosen = named.iter().map(chosen).collect::<Result<Vec<_>, _>>()?;
    let _held = (!arguments.dry_run).then(|| held::hold(&root)).transpose().context("cannot lock the workspace")?;
    let before = fs::read_if_there(&root.join(OPS)).context("cannot read `ops.yaml`")?;
    let writing = if arguments.write { Writing::Now } else { Writing::Builds };
    let ops = Ops::with(before.as_deref(), named.iter().zip(&chosen), writing)?;
    let kernels: Vec<Kernels> = named
        .iter()
        .zip(&chosen)
        .map(|(named, chosen)| Kernels::of(&generator, named, chosen, &ops, &root, writing))
        .collect::<Result<_, _>>()?;
    if arguments.dry_run {
        streams::print(&foreseen(&ops, &kernels));
        return Ok(0);
    }
    write(&root, before.as_deref(), &ops, &kernels)?;
    if before.is_none() && init::ignore(&root)? && !common.quiet {
        streams::say("wrote .gitignore");
    }
    for kernels in kernels.iter().filter(|_| !common.quiet) {
        streams::say(&kernels.line());
    }
    streams::say(&result(&ops, &kernels));
    Ok(0)
}

/// An operation that was named.
struct Named<'a> {
    /// What it is called in ops.yaml: as a person wrote it where that is one word, else as the catalogue has it.
    name: String,
    op: &'a Op,
}

impl<'a> Named<'a> {
    /// Returns what `written` names, each once, in order. Fails where the generator has one of them not.
    fn all(catalogue: &'a Catalogue, written: &[String]) -> Result<Vec<Self>, CliError> {
        let mut found: Vec<Self> = Vec::new();
        let mut unknown = Vec::new();
        for part in written.iter().flat_map(|text| pick::split(text)) {
            match catalogue.find(part) {
                Some(op) => {
                    let name = Some(part.to_lowercase()).filter(|name| !name.contains('.') && Form::Name.fits(name));
                    let name = name.unwrap_or_else(|| op.name.clone());
                    if found.iter().all(|earlier| earlier.name != name) {
                        found.push(Self { name, op });
                    }
                }
                None => unknown.push(part),
            }
        }
        if !unknown.is_empty() {
            return Err(unknown_ops(catalogue, &unknown));
        }
        if found.is_empty() {
            return Err(CliError::misuse("the name of an op is empty", "name an op, as in `t2t add softmax`"));
        }
        Ok(found)
    }

    /// Returns the names of its variants that are in `asked`, all where nothing is. Fails where `asked` has one that the op has not.
    fn variants(&self, catalogue: &Catalogue, asked: &[String]) -> Result<Vec<String>, CliError> {
        let all = variant_names(catalogue, self.op);
        if let Some(other) = asked.iter().find(|name| !all.contains(name)) {
            let message = format!("the generator has no variant `{other}` of `{}`", self.name);
            return Err(CliError::misuse(message, format!("its variants are {}", listing::quoted(&all))));
        }
        Ok(all.into_iter().filter(|name| asked.is_empty() || asked.contains(name)).collect())
    }
}

fn unknown_ops(catalogue: &Catalogue, names: &[&str]) -> CliError {
    let near = |name: &&str| {
        let near = catalogue.nearest(name);
        let of = if names.len() > 1 { format!("for `{name}` ") } else { String::new() };
        (!near.is_empty()).then(|| format!("{of}did you mean {}? ", listing::quoted(&near)))
    };
    let near: String = names.iter().filter_map(near).collect();
    let hint = format!(
        "{near}`t2t add --list` has the ops by family (docs/reference/generators.md); of any other torch function write the entry into ops.yaml and the kernels yourself"
    );
    CliError::misuse(format!("no family of the generator has {}", listing::quoted(names)), hint)
}

/// ops.yaml as it is to be.
struct Ops {
    /// Its whole text; None where it stays as it is.
    text: Option<String>,
    /// The entries that are new, as one text.
    entries: String,
    /// The names of the ops that are new.
    new: Vec<String>,
    spec: Spec,
}

impl Ops {
    /// Returns ops.yaml, whose bytes are `before`, with an entry for each named op that it lacks. Fails where there is no place for them, or where the file would not be valid.
    fn with<'a>(
        before: Option<&[u8]>,
        named: impl Iterator<Item = (&'a Named<'a>, &'a Vec<String>)>,
        writing: Writing,
    ) -> Result<Self, CliError> {
        let bytes = before.unwrap_or(b"version: 1\n");
        let old = Spec::parse(OPS, bytes, None);
        let declared = old.as_ref().ok();
        let lacking = named.filter(|(named, _)| declared.is_none_or(|spec| spec.op(&named.name).is_none()));
        let lacking: Vec<_> = lacking.collect();
        let entries: String =
            lacking.iter().map(|(named, variants)| text::entry(&named.name, named.op, variants, writing)).collect();
        let new: Vec<String> = lacking.iter().map(|(named, _)| named.name.clone()).collect();
        if new.is_empty() {
            return old.map(|spec| Self { text: None, entries, new, spec }).map_err(CliError::Spec);
        }
        // A file that only lacks ops is made whole by them.
        let text = String::from_utf8(bytes.to_vec()).ok().and_then(|text| entry::inserted(&text, &entries));
        let (count, added) = (declared.map_or(0, |spec| spec.ops.len()), new.len());
        let with = text.map(|text| (Spec::parse(OPS, text.as_bytes(), None), text));
        match (with, old) {
            (Some((Ok(spec), text)), _) if spec.ops.len() == count + added => {
                Ok(Self { text: Some(text), entries, new, spec })
            }
            (Some((Err(problems), _)), old) => {
                let earlier = old.err().unwrap_or_default();
                let is_earlier = |problem: &Problem| earlier.iter().any(|one| one.message == problem.message);
                if problems.iter().any(is_earlier) {
                    return Err(CliError::Spec(earlier));
                }
                Err(CliError::by_hand(&format!("with the entries, {}", problems[0].message), &entries))
            }
            (_, Err(problems)) => Err(CliError::Spec(problems)),
            _ => Err(CliError::by_hand("its ops are no blocks of their own", &entries)),
        }
    }
}

/// Returns what would be written, for `--dry-run`.
fn foreseen(ops: &Ops, kernels: &[Kernels]) -> String {
    let mut text = String::new();
    if !ops.new.is_empty() {
        text += "ops.yaml, at the end of `ops`:\n";
        text.extend(ops.entries.lines().map(|line| format!("  {line}\n")));
    }
    for kernels in kernels {
        text.extend(kernels.files.iter().map(|file| format!("write {}\n", file.path)));
        text.extend(kernels.kept.iter().map(|path| format!("keep  {path}\n")));
    }
    if kernels.iter().all(|kernels| kernels.files.is_empty()) && ops.new.is_empty() {
        text += "nothing to write\n";
    }
    text
}

/// Writes the kernels, then ops.yaml, which names them. Where one cannot be written, those before it are removed again.
fn write(root: &Path, before: Option<&[u8]>, ops: &Ops, kernels: &[Kernels]) -> Result<(), CliError> {
    let mut written = Vec::new();
    let result = write_all(root, before, ops, kernels, &mut written);
    if result.is_err() {
        for place in written {
            // What cannot be removed is a kernel that nothing names.
            let _ = fs::remove(place);
            place.ancestors().skip(1).take_while(|folder| *folder != root).for_each(fs::remove_if_empty);
        }
    }
    result
}

fn write_all<'a>(
    root: &Path,
    before: Option<&[u8]>,
    ops: &Ops,
    kernels: &'a [Kernels],
    written: &mut Vec<&'a Path>,
) -> Result<(), CliError> {
    for file in kernels.iter().flat_map(|kernels| &kernels.files) {
        written.push(&file.place);
        fs::write(&file.place, file.text.as_bytes()).with_context(|| format!("cannot write `{}`", file.path))?;
    }
    let Some(text) = &ops.text else { return Ok(()) };
    let place = root.join(OPS);
    if fs::read_if_there(&place).context("cannot read `ops.yaml`")?.as_deref() != before {
        return Err(CliError::machine("ops.yaml changed meanwhile: run the command again"));
    }
    fs::write_linked(&place, text.as_bytes()).context("cannot write `ops.yaml`")?;
    Ok(())
}

/// Returns the result and the next command.
fn result(ops: &Ops, kernels: &[Kernels]) -> String {
    let files = kernels.iter().map(|kernels| kernels.files.len()).sum();
    let parts = [(ops.new.len(), "op"), (files, "kernel")].into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| listing::counted(count, what)).collect();
    let what = if parts.is_empty() { "nothing to write".to_owned() } else { format!("wrote {}", parts.join(" and ")) };
    let next: Vec<String> = kernels.iter().map(|kernels| format!(" --op {}", kernels.name)).collect();
    format!("{what}; next: `t2t build{}`", next.concat())
}

/// Returns `error`, which says that there is no workspace, with the command that makes one of the ops that a build was asked for. As it is where the generator has none of them.
pub(crate) fn hinted(error: CliError, targets: &Targets) -> CliError {
    let CliError::Use { message, .. } = &error else { return error };
    let Ok(catalogue) = families::embedded() else { return error };
    let written = targets.written();
    let parts = written.iter().flat_map(|text| pick::split(text));
    let mut ops: Vec<&str> = parts.filter_map(|part| part.split([':', '/']).next()).collect();
    ops.retain(|name| Form::Torch.fits(name));
    if ops.iter().all(|name| catalogue.find(name).is_none()) {
        return error;
    }
    let mut seen = BTreeSet::new();
    ops.retain(|name| seen.insert(*name));
    let hint =
        format!("`t2t add {}` makes a workspace of this folder, with these ops and their kernels", ops.join(" "));
    CliError::misuse(message.clone(), hint)
}
