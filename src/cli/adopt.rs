//! `t2t adopt`: declares an op for an existing kernel, checks it, and reports the result.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Identity, Phase, Target};
use t2t_model::path::RepoPath;
use t2t_protocol::{Adopted, AdoptedEntry, CaseVerdict, Evidence, Failure, OfAdopt, Unclear, read};
use t2t_spec::names::Form;
use t2t_spec::{Spec, entry};
use t2t_store::fs;

use self::untold::Sources;
use super::error::CliError;
use super::{AdoptArguments, BuildArguments, Common, Targets, build, context, held, init, streams};
use crate::engine::evidence;
use crate::session::{self, OPS, Options, Probing, Session};

mod by_hand;
mod untold;

/// How the message begins that no inputs were found, of which the reference may show why.
const NO_SHAPES: &str = "no shapes were found";

/// Runs the command. A folder that does not become a workspace stays without a store.
pub(crate) fn adopt(common: &Common, arguments: &AdoptArguments) -> Result<u8, CliError> {
    let here = env::current_dir().context("cannot tell the current folder")?;
    let root = session::workspace(&here).unwrap_or_else(|| here.clone());
    let store = root.join("cache");
    let is_new = store.symlink_metadata().is_err();
    let adopted = adopted(common, arguments, &root, &here);
    if adopted.is_err() && is_new && fs::stat(&root.join(OPS)).is_none() {
        // Nothing in it is anyone's but this command's; where it cannot be removed, the error is the other one.
        let _ = fs::remove(&store);
    }
    adopted
}

fn adopted(common: &Common, arguments: &AdoptArguments, root: &Path, here: &Path) -> Result<u8, CliError> {
    if !Form::Name.fits(&arguments.name) {
        return Err(CliError::misuse(
            format!("`{}` is not a valid op name", arguments.name),
            Form::Name.hint(&arguments.name),
        ));
    }
    let before = fs::read(&root.join(OPS)).ok();
    is_free(before.as_deref(), &arguments.name)?;
    let wrapper = Wrapper::of(&arguments.what, root, here);
    let options = context::options(common, root, Probing::Allowed);
    let asked_for = arguments.reference.as_deref().map(|told| in_workspace(told, root, here));
    let asked = json!(OfAdopt {
        what: arguments.what.clone(),
        name: arguments.name.clone(),
        file: wrapper.file.clone(),
        module: wrapper.module.clone(),
        entry: wrapper.entry.clone(),
        torch: arguments.torch.clone(),
        reference: asked_for.clone(),
    });
    let told: Adopted = session::ask(root, &options, &Interrupt::default(), "t2t_harness.phases.adopt:adopt", asked)?;
    if let Some(Unclear { message, hint }) = told.unclear {
        let reference = asked_for.as_deref().filter(|_| message.starts_with(NO_SHAPES));
        return Err(CliError::misuse(message.clone(), hint + &needed(root, reference)));
    }
    let found = &told.entry.ok_or_else(|| CliError::machine("the wrapper was read, and nothing was said of it"))?;
    is_apart(found, &wrapper)?;
    write(root, &options, &arguments.name, found, &wrapper)?;
    introduce(arguments, found);
    let targets = Targets { targets: vec![format!("{}:check", arguments.name)], ..Targets::default() };
    let code = build::build(common, &BuildArguments { targets, ..BuildArguments::default() })?;
    conclude(common, &arguments.name, &wrapper, found)?;
    Ok(code)
}

/// Returns what follows the hint where the reference shows what its entry needs.
fn needed(root: &Path, reference: Option<&str>) -> String {
    let Some((file, name)) = reference.and_then(|reference| reference.split_once("::")) else { return String::new() };
    let text = text_of(root, file).unwrap_or_default();
    let needs = by_hand::needs(file, &text, name);
    if needs.is_empty() { String::new() } else { format!("; by its names it may need {}", needs.join(", ")) }
}

/// Returns the text of a file of the workspace.
fn text_of(root: &Path, file: &str) -> Option<String> {
    fs::read(&root.join(file)).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Where the wrapper is.
struct Wrapper {
    file: Option<String>,
    module: Option<String>,
    entry: Option<String>,
}

impl Wrapper {
    fn of(what: &str, root: &Path, here: &Path) -> Self {
        let (home, entry) = what.split_once("::").map_or((what, None), |(home, entry)| (home, Some(entry.to_owned())));
        let is_file = Path::new(home).extension().is_some_and(|ending| ending == "py");
        let file = is_file.then(|| in_workspace(home, root, here));
        Self { module: (!is_file).then(|| home.to_owned()), file, entry }
    }

    /// Returns what the variant is called: its file or the last part of its module, as far as a name may be.
    fn name(&self) -> String {
        let home = self.file.as_deref().or(self.module.as_deref()).unwrap_or_default();
        let last = home.trim_end_matches(".py").rsplit(['/', '.']).next().unwrap_or_default();
        let name = last.trim_start_matches('_').to_owned();
        if Form::Name.fits(&name) { name } else { "adopted".to_owned() }
    }

    /// Returns the text of the entry with which ops.yaml declares it.
    fn declared(&self, op: &str, found: &AdoptedEntry) -> String {
        let name = self.name();
        let is_usual = self.file.as_deref() == Some(&format!("kernels/{op}/{name}.py"));
        let path = if is_usual { None } else { self.file.as_deref() };
        let (name, path, module) = (json!(name), json!(path), json!(self.module));
        let (entry, call) = (json!(found.entry), json!(found.call));
        let variant = [("name", &name), ("path", &path), ("module", &module), ("entry", &entry), ("call", &call)];
        entry::text(op, &json!(found), &variant)
    }
}

/// Returns a file that is named as seen from `here`, with or without a name after `::`, as the workspace knows it.
fn in_workspace(named: &str, root: &Path, here: &Path) -> String {
    let (file, rest) =
        named.split_once("::").map_or((named, String::new()), |(file, name)| (file, format!("::{name}")));
    let path = RepoPath::below(root, &here.join(file)).map_or_else(|_| file.to_owned(), |path| path.to_string());
    path + &rest
}

/// An op that is declared already stays as it is. A file that lacks nothing but an op is no mistake.
fn is_free(before: Option<&[u8]>, name: &str) -> Result<(), CliError> {
    let Some(bytes) = before else { return Ok(()) };
    let spec = match Spec::parse(OPS, bytes, None) {
        Err(_) if entry::lacks_ops(bytes) => return Ok(()),
        parsed => parsed.map_err(CliError::Spec)?,
    };
    match spec.op(name) {
        Some(_) => {
            Err(CliError::misuse(format!("ops.yaml declares `{name}` already"), "choose another name with `--as`"))
        }
        None => Ok(()),
    }
}

/// A kernel in the file of its reference would be held against itself.
fn is_apart(found: &AdoptedEntry, wrapper: &Wrapper) -> Result<(), CliError> {
    let Some(file) = wrapper.file.as_deref() else { return Ok(()) };
    match found.reference.as_deref().and_then(|reference| reference.split_once("::")) {
        Some((home, name)) if home == file => Err(CliError::misuse(
            format!("the kernel and its reference `{name}` lie in one file, {file}, where each can use the other"),
            format!(
                "move `{name}` to a file of its own that does not import {file}, and name it: `--reference FILE.py::{name}`"
            ),
        )),
        _ => Ok(()),
    }
}

/// Adds the entry to ops.yaml as it is by now: the wrapper was read meanwhile, which takes seconds. Where no session can be opened with it, ops.yaml is again as it was.
fn write(root: &Path, options: &Options, op: &str, found: &AdoptedEntry, wrapper: &Wrapper) -> Result<(), CliError> {
    let text = wrapper.declared(op, found);
    let file: PathBuf = root.join(OPS);
    let _held = held::hold(root).context("cannot lock the workspace")?;
    let before = fs::read_if_there(&file).context("cannot read `ops.yaml`")?;
    is_free(before.as_deref(), op)?;
    let old = before.as_deref().map_or("version: 1\n".into(), String::from_utf8_lossy);
    let new =
        entry::inserted(&old, &text).ok_or_else(|| CliError::by_hand("its ops are no blocks of their own", &text))?;
    Spec::parse(OPS, new.as_bytes(), None).map_err(CliError::Spec)?;
    fs::write_linked(&file, new.as_bytes()).context("cannot write `ops.yaml`")?;
    let is_new = before.is_none();
    // What it names is looked at only when a workspace is opened, as what its reference imports.
    if let Err(refusal) = Session::open(root, options, &Interrupt::default()) {
        let restored = before.map_or_else(|| fs::remove(&file), |bytes| fs::write_linked(&file, &bytes));
        restored.context("cannot write `ops.yaml` as it was")?;
        return Err(refusal.into());
    }
    if is_new && init::ignore(root)? {
        streams::say("wrote .gitignore");
    }
    Ok(())
}

fn introduce(arguments: &AdoptArguments, found: &AdoptedEntry) {
    let op = found.torch.as_ref().or(found.reference.as_ref()).map_or("", String::as_str);
    let entry = &found.entry;
    let home = arguments.what.split("::").next().unwrap_or_default();
    streams::say(&format!("ops.yaml: `{}` is {op}, and `{entry}` of {home} its kernel", arguments.name));
    for [own, meant] in &found.mapped {
        streams::say(&format!("  `{own}` of the kernel is `{meant}`"));
    }
    for (name, value) in &found.kwargs {
        streams::say(&format!("  `{name}` of the op is {value}"));
    }
    for name in &found.mutates {
        streams::say(&format!("  `{name}` is changed in place: what it holds afterwards is judged"));
    }
}

/// Says how the check ended beyond what the build said: which edges fail, and how to leave them out; what nothing was asked of.
fn conclude(common: &Common, op: &str, wrapper: &Wrapper, found: &AdoptedEntry) -> Result<(), CliError> {
    let session = context::open(common, Probing::Allowed, &Interrupt::default())?;
    let target = Target::of_variant(op, &wrapper.name(), Phase::Check);
    let identity = Identity { target, device: Some(session.inventory.device.class.clone()) };
    let history = session.history().context("cannot read the store `cache/`")?.history;
    let checked = history.last(&identity).and_then(|record| record.outputs.get("evidence"));
    let Some(blob) = checked else {
        streams::say(&format!(
            "ops.yaml has the entry of `{op}`, and nothing was checked: change it as the error says, or take it out"
        ));
        return Ok(());
    };
    let bytes = session.cas().get(blob.digest).context("cannot read the store `cache/`")?;
    let told: Evidence = read::document(&bytes).unwrap_or_default();
    let cases = &told.cases;
    streams::say(&evidence::counted(cases));
    let rejected = cases.iter().filter(|case| case.verdict == CaseVerdict::Rejected).map(|case| case.name.as_str());
    let (edges, others): (Vec<&str>, Vec<&str>) = rejected.partition(|name| name.starts_with("edge/"));
    if !others.is_empty() {
        streams::say(&why_all_fail(&told.failure.unwrap_or_default()));
    } else if !edges.is_empty() {
        streams::say(&leaving_out(&kinds_of(&edges)));
    }
    let text = |file: &str| text_of(&session.root, file);
    let reference = found.reference.as_deref().and_then(|named| named.split("::").next());
    let sources = Sources { wrapper: wrapper.file.as_deref().and_then(text), reference: reference.and_then(text) };
    let open = [untold::defaults(&sources, found, cases), untold::gradients(&sources, found)];
    open.iter().flatten().for_each(|said| streams::say(said));
    Ok(())
}

/// Returns what may be at fault where declared cases fail: by the class of the failure, since a wrapper may mean it.
fn why_all_fail(failure: &Failure) -> String {
    let message = &failure.message;
    match (failure.class.as_str(), message.split_once("torch computes for the wrapper: ")) {
        ("torch-fallback", Some((_, named))) => {
            let computed = named.replace("aten.", "");
            format!(
                "declared cases fail: torch computes {computed} for the wrapper. Where that is glue around what its kernels make, write so under the op:\n    allow: [{computed}]"
            )
        }
        ("type", _) => format!(
            "declared cases fail: {message}. Adopt a wrapper that returns what torch does, or write one around this one"
        ),
        _ => "declared cases fail: the kernel is wrong, or `call` in ops.yaml is, or the shapes of its `inputs` are not those that the kernel is for".to_owned(),
    }
}

/// What follows `edge/` in a case's name, up to `-`, and what turns it off, where that is another word.
const KINDS: [(&str, &str); 48] = [
    ("shape", "shapes"),
    ("literal", "literals"),
    ("multiple", "literals"),
    ("kwarg", "kwargs"),
    ("nan", "special"),
    ("below", "large"),
    ("runs", "zeros"),
    ("every", "limits"),
    ("neighbours", "limits"),
    ("planted", "zeros"),
    ("extreme", "large"),
    ("raised", "large"),
    ("sunk", "large"),
    ("void", "special"),
    ("grid", "blocks"),
    ("programs", "blocks"),
    ("ties", "zeros"),
    ("corners", "zeros"),
    ("tails", "small"),
    ("powers", "zeros"),
    ("low", "infinite-rows"),
    ("positive", "shapes"),
    ("all", "special"),
    ("swapped", "transposed"),
    ("channels_last", "transposed"),
    ("inner_swapped", "transposed"),
    ("later", "shapes"),
    ("weights", "zeros"),
    ("again", "shapes"),
    ("init", "kwargs"),
    ("negative", "limits"),
    ("shorter", "shapes"),
    ("counts", "limits"),
    ("bounds", "limits"),
    ("sampled", "shapes"),
    ("turned", "shapes"),
    ("flow", "strided"),
    ("expanded", "strided"),
    ("zero", "zeros"),
    ("only", "special"),
    ("counted", "shapes"),
    ("apart", "padded"),
    ("segments", "shapes"),
    ("evaluation", "kwargs"),
    ("halves", "zeros"),
    ("opposed", "large"),
    ("coarse", "zeros"),
    ("present", "together"),
];

/// Returns what `check.edges` calls the edge of a case.
fn kind(case: &str) -> &str {
    let named = case.split('/').nth(1).unwrap_or_default().split('[').next().unwrap_or_default();
    let first = named.split('-').next().unwrap_or_default();
    match named {
        "special-late" | "masked" | "pairs" => "special",
        _ if named.ends_with("-block") => "blocks",
        _ => KINDS.iter().find(|(word, _)| *word == first).map_or(named, |(_, off)| off),
    }
}

/// Returns the kinds of the edges that failed, without those that fail for another's reason: rows of one value are expanded only where inputs need not be dense, and what differs together fails for one part of it.
fn kinds_of<'a>(edges: &[&'a str]) -> BTreeSet<&'a str> {
    let mut kinds: BTreeSet<&str> = edges.iter().map(|case| kind(case)).collect();
    if kinds.contains("strided") || kinds.contains("transposed") {
        kinds.remove("equal-rows");
    }
    if kinds.contains("strided") {
        // It is off with them.
        kinds.remove("padded");
    }
    if kinds.len() > 1 {
        kinds.remove("together");
    }
    kinds
}

fn leaving_out(kinds: &BTreeSet<&str>) -> String {
    let named = kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
    let off = kinds.iter().map(|kind| format!("{kind}: {{off: why}}")).collect::<Vec<_>>().join(", ");
    format!(
        "edges fail: {named}. Where the kernel need not take them, write so under the op, with the reason:\n    check: {{edges: {{{off}}}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn kinds_are_those_of_the_harness() {
        let python = include_str!("../../python/t2t_harness/cases/probes.py");
        let table = python.split_once("KINDS = {\n").unwrap().1.split_once("\n}").unwrap().0;
        let rows = table.lines().map(|line| {
            let (word, off) = line.trim().trim_end_matches(',').split_once(": ").unwrap();
            (word.trim_matches('"'), off.trim_matches('"'))
        });
        let told: Vec<(&str, &str)> = rows.filter(|(word, off)| word != off).collect();
        assert_eq!(KINDS.as_slice(), told);
    }
}
