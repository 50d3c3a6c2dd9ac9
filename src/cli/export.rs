//! `t2t export`: the chosen kernels of ops as something that is used without t2t: a Python package, operators of torch, or a project for Hugging Face's hub.
//!
//! It runs no kernel.

use std::collections::{BTreeMap, BTreeSet};

use t2t_host::interrupt::Interrupt;
use t2t_plan::graph::pick::split;
use t2t_spec::Op;
use t2t_spec::names::suggestion;

use super::error::CliError;
use super::{Common, ExportArguments, ExportForm, context, streams};
use crate::session::Session;

mod folder;
mod signature;
mod sources;
mod kernel;
mod subject;
mod text;
mod operator;
mod tests_of;
mod form;

use self::kernel::Kernel;
use self::sources::{Sources, identifier};
use self::subject::Subject;
use self::text::Exported;

/// The versions that a reader of provenance wants to know.
const VERSIONS: [&str; 3] = ["python", "torch", "triton"];

/// Runs the command.
pub(crate) fn export(common: &Common, arguments: &ExportArguments) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let place = arguments.out.clone().unwrap_or_else(|| root.join("export").join(arguments.form.name()));
    let place = context::absolute(&place);
    if identifier(&arguments.name) != arguments.name || !arguments.name.is_ascii() {
        let message = format!("`{}` is no name of a Python package", arguments.name);
        return Err(CliError::misuse(message, "write `--name my_kernels`"));
    }
    form::may_be_named(arguments.form, &arguments.name)?;
    // Before any work: what is there decides.
    folder::may_be_written(&place)?;
    let session = context::open(common, context::as_built(common)?, &Interrupt::default())?;
    let names = named(&session, &arguments.ops)?;
    let subjects = subject::subjects(common, &session, &names)?;
    let made = made(common, &session, subjects, arguments)?;
    folder::write(&place, &made.files)?;
    for line in &made.lines {
        streams::print(line);
    }
    streams::print(&format!("wrote {}: {} files\n", place.display(), made.files.len()));
    Ok(0)
}

/// Returns the ops that were named, each once. Fails on a name that ops.yaml does not have.
fn named(session: &Session, written: &[String]) -> Result<Vec<String>, CliError> {
    let mut found: Vec<String> = Vec::new();
    for name in written.iter().flat_map(|text| split(text)) {
        if session.spec.op(name).is_none() {
            let known = session.spec.ops.iter().map(|op| op.name.as_str());
            return Err(CliError::misuse(format!("ops.yaml has no op `{name}`"), suggestion(name, known)));
        }
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    if found.is_empty() {
        return Err(CliError::misuse("no op is named", "write `t2t export softmax --as package`"));
    }
    Ok(found)
}

/// What is to be written.
struct Made {
    files: BTreeMap<String, Vec<u8>>,
    /// A line for each op.
    lines: Vec<String>,
}

fn made(
    common: &Common,
    session: &Session,
    subjects: Vec<Subject<'_>>,
    arguments: &ExportArguments,
) -> Result<Made, CliError> {
    let (form, package) = (arguments.form, arguments.name.as_str());
    let mut sources = Sources::new(session);
    let known = known(common, session, &subjects)?;
    let mut ops = Vec::new();
    for subject in subjects {
        refuse_random(subject.op)?;
        let variants = subject.variants().into_iter().filter_map(|name| subject.op.variant(name));
        let kernels: Vec<Kernel> =
            variants.map(|variant| Kernel::take(subject.op, variant, &mut sources)).collect::<Result<_, _>>()?;
        let reference = subject.op.reference.as_ref().map(|reference| sources.take(&reference.file)).transpose()?;
        let wrapper = kernels.first().and_then(|kernel| kernel.parameters.clone()).unwrap_or_default();
        let text = reference.as_ref().map(|taken| taken.text.as_str());
        let parameters = signature::parameters(subject.op, known.get(&subject.op.name), text, &wrapper);
        ops.push(Exported { subject, kernels, reference, parameters });
    }
    distinct(&ops)?;
    let home = form::home(form, package);
    let mut files: BTreeMap<String, Vec<u8>> =
        sources.with_packages().into_iter().map(|(name, bytes)| (format!("{home}/{name}"), bytes)).collect();
    for op in &ops {
        files.insert(format!("{home}/{}.py", op.module()), module(form, op)?.into_bytes());
    }
    let provenance = text::provenance(form.name(), &versions(session), &ops, &sources.told());
    let provenance = format!("{provenance:#}\n");
    let told = [
        (format!("{home}/__init__.py"), text::package(&ops)),
        (format!("{home}/provenance.json"), provenance.clone()),
        ("provenance.json".to_owned(), provenance),
        ("README.md".to_owned(), text::readme(package, &form::usage(form, package), &ops)),
    ];
    files.extend(form::files(form, package).into_iter().chain(told).map(|(name, text)| (name, text.into_bytes())));
    tests_of::add(package, &session.root, &ops, &mut files)?;
    Ok(Made { files, lines: ops.iter().map(line).collect() })
}

/// Returns the module of an op.
fn module(form: ExportForm, op: &Exported<'_>) -> Result<String, CliError> {
    let callers = op.kernels.iter().map(|kernel| kernel.text(op.subject.op, &op.parameters));
    let callers = callers.collect::<Result<Vec<_>, _>>()?;
    Ok(match form {
        ExportForm::Package | ExportForm::HfKernel => {
            text::module(op, &callers, "_dispatch", &text::function(op, &op.served()))
        }
        ExportForm::TorchLibrary => text::module(op, &callers, operator::IMPORTS, &operator::text(op)?),
    })
}

/// Asks torch what the functions of the ops take. Without an interpreter nobody knows.
fn known(common: &Common, session: &Session, subjects: &[Subject<'_>]) -> Result<signature::Known, CliError> {
    let python = context::python(common, session.root.clone()).ok_or_else(|| {
        let message = "torch is asked what its functions take, and there is no interpreter that has it";
        CliError::misuse(message, "name one with `--python PATH`")
    })?;
    let ops: Vec<&Op> = subjects.iter().map(|subject| subject.op).collect();
    signature::asked(&python.path, &ops)
}

/// A result that is drawn at random can be compared with nothing.
fn refuse_random(op: &Op) -> Result<(), CliError> {
    if !op.is_random() {
        return Ok(());
    }
    let message =
        format!("`{}` cannot be exported: its results are random, and its wrapper takes t2t's seeds", op.name);
    Err(CliError::misuse(message, "leave it out"))
}

/// Fails where two ops would have one name in Python.
fn distinct(ops: &[Exported<'_>]) -> Result<(), CliError> {
    let mut known = BTreeSet::new();
    match ops.iter().find(|op| !known.insert(op.function())) {
        Some(op) => {
            let message = format!("two ops would both be `{}` in Python", op.function());
            Err(CliError::misuse(message, "export them to two packages"))
        }
        None => Ok(()),
    }
}

fn versions(session: &Session) -> BTreeMap<String, String> {
    let published = session.published.iter().find_map(|published| published.facts.as_ref());
    let known = match published {
        Some(facts) => facts.versions.clone(),
        None => session.toolchain.as_ref().map(|toolchain| toolchain.versions.clone()).unwrap_or_default(),
    };
    known.into_iter().filter(|(name, _)| VERSIONS.contains(&name.as_str())).collect()
}

fn line(op: &Exported<'_>) -> String {
    let chosen = &op.subject.chosen;
    let elsewhere = op.subject.elsewhere.iter().map(|(name, chosen)| format!(", {} on {name}", chosen.variant));
    let where_it_runs = if op.needs_device() { "; it calls libdevice, so it runs on a CUDA device alone" } else { "" };
    format!(
        "{}  {}, chosen on {}{}{where_it_runs}\n",
        op.subject.op.name,
        chosen.variant,
        chosen.device,
        elsewhere.collect::<String>()
    )
}
