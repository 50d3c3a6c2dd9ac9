//! `t2t affected --since REV`: the ops that the changes since a commit can affect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use t2t_host::interrupt::Interrupt;
use t2t_model::path::RepoPath;
use t2t_model::record::{Record, Seen};
use t2t_plan::affected::{Cause, State, affected};
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::graph::{Graph, Index};
use t2t_store::fs;
use t2t_store::git::{self, NoAnswer};
use t2t_store::sources::PACKAGES;

use super::error::CliError;
use super::plan::plans;
use super::revision::Revision;
use super::{AffectedArguments, Common, ReportFormat, context, streams};
use crate::session::{NoSession, OPS, Session};

/// Runs the command: 0, whether something is affected or nothing.
pub(crate) fn run(common: &Common, arguments: &AffectedArguments) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let commit = commit(&root, &arguments.since)?;
    let changed = git::changed(&root, &commit).map_err(|error| refused(&arguments.since, &error))?;
    let session = context::open(common, context::as_built(common)?, &Interrupt::default())?;
    let (causes, gone) = if changed.is_empty() && !reads_links(&root, &session)? {
        (BTreeMap::new(), BTreeSet::new())
    } else {
        since(common, &root, &session, &commit, &changed)?
    };
    streams::print(&match (arguments.format, arguments.targets) {
        (ReportFormat::Text, true) => lines(targets(&session.graph, &causes)),
        (ReportFormat::Text, false) => lines(ops(&session, &causes)),
        (ReportFormat::Json, _) => {
            let why = |causes: &Vec<Cause>| causes.iter().map(ToString::to_string).collect::<Vec<String>>();
            let action = |(index, causes): (&Index, &Vec<Cause>)| -> Value {
                json!({"target": session.graph.action(*index).target().to_string(), "why": why(causes)})
            };
            let document = json!({
                "version": 1,
                "since": arguments.since,
                "commit": commit,
                "files": changed,
                "ops": ops(&session, &causes).collect::<Vec<_>>(),
                "actions": causes.iter().map(action).collect::<Vec<_>>(),
                "gone": gone,
            });
            format!("{document:#}\n")
        }
    });
    Ok(0)
}

fn commit(root: &Path, name: &str) -> Result<String, CliError> {
    git::commit(root, name).map_err(|error| refused(name, &error))
}

/// Returns what to say of a git that did not answer. It has no words for a name that it does not know.
fn refused(name: &str, error: &NoAnswer) -> CliError {
    match error {
        NoAnswer::Refused(text) if text.is_empty() => CliError::misuse(
            format!("git knows no commit `{name}`"),
            "name a branch, a tag or a hash; a shallow clone has to fetch it first: `git fetch --depth=1 origin BRANCH`, then `--since FETCH_HEAD`",
        ),
        NoAnswer::Refused(text) => CliError::misuse(
            format!("git cannot say what changed since `{name}`: {text}"),
            "the workspace has to lie in a git repository that holds the commit",
        ),
        NoAnswer::Start(_) | NoAnswer::Answer(_) => CliError::machine(error.to_string()),
    }
}

type Causes = BTreeMap<Index, Vec<Cause>>;

/// Returns what is affected, and the ops that there are no more.
fn since(
    common: &Common,
    root: &Path,
    session: &Session,
    commit: &str,
    changed: &BTreeSet<String>,
) -> Result<(Causes, BTreeSet<String>), CliError> {
    let standing = standing(session)?;
    let tree = |path: &RepoPath, like: Seen| session.sources.seen(path, like);
    let now = State { graph: &session.graph, standing: &standing, tree: &tree };
    let everything = || {
        streams::say(&format!("note: at `{commit}` there was no workspace that can be built: everything is affected"));
        affected(None, &now, &[])
    };
    let revision = match Revision::check_out(root, commit, "affected") {
        Ok(revision) => revision,
        // The workspace's folder is not in the commit.
        Err(NoAnswer::Refused(_)) => return Ok((everything(), BTreeSet::new())),
        Err(error) => return Err(CliError::machine(error.to_string())),
    };
    let is_unchanged = |path: &RepoPath| is_unchanged(root, changed, path);
    let files = session.inventory.files.values().flat_map(|file| file.closure.keys());
    revision.adopt(root, files.filter(|path| is_unchanged(path)))?;
    let before = if revision.has(OPS) { Some(revision.session(common, root)?) } else { None };
    let before = match before {
        Some(Ok(before)) => before,
        // What cannot be built has no results that could stand.
        None | Some(Err(NoSession::Spec(_) | NoSession::Use { .. })) => return Ok((everything(), BTreeSet::new())),
        Some(Err(error)) => return Err(error.into()),
    };
    let stood = self::standing(&before)?;
    let old_tree = |path: &RepoPath, like: Seen| {
        let state = if is_unchanged(path) { session } else { &before };
        state.sources.seen(path, like)
    };
    let old = State { graph: &before.graph, standing: &stood, tree: &old_tree };
    let causes = affected(Some(&old), &now, &loose(&before, session, changed));
    let names = |session: &Session| -> BTreeSet<String> { session.spec.ops.iter().map(|op| op.name.clone()).collect() };
    Ok((causes, names(&before).difference(&names(session)).cloned().collect()))
}

/// Returns whether a file of the workspace at `root` is what it was, where those that git says so of are `changed`. What git does not keep is in no commit, and is no change.
fn is_unchanged(root: &Path, changed: &BTreeSet<String>, path: &RepoPath) -> bool {
    // A repository within this one changes as a whole: git names its folder.
    let is_named = |path: &Path| {
        path.ancestors()
            .filter_map(Path::to_str)
            .any(|part| !part.is_empty() && (changed.contains(part) || changed.contains(&format!("{part}/"))))
    };
    let own = Path::new(path.as_str());
    if is_named(own) {
        return false;
    }
    if !fs::is_linked(root, own) {
        return true;
    }
    // What lies behind a link may have changed under another name, and outside of the repository without git. A link on the way may have led elsewhere.
    let is_link = |name: &String| fs::is_linked(root, Path::new(name));
    let leads_to = fs::resolved_below(root, &root.join(own));
    leads_to.is_some_and(|to| !is_named(&to)) && !changed.iter().any(is_link)
}

/// Returns whether a file that a kernel is made from, or that a result was seen to read, is or lies behind a link.
fn reads_links(root: &Path, session: &Session) -> Result<bool, CliError> {
    let is_link = |path: &RepoPath| fs::is_linked(root, Path::new(path.as_str()));
    if session.inventory.files.values().flat_map(|file| file.closure.keys()).any(is_link) {
        return Ok(true);
    }
    let standing = standing(session)?;
    Ok(standing.iter().flatten().flat_map(|record| record.discovered.keys()).any(is_link))
}

/// Returns, by number of the action, the result that stands.
fn standing(session: &Session) -> Result<Vec<Option<Record>>, CliError> {
    let wanted = pick(&session.graph, &Selection::default(), Force::Stale)?;
    let mut standing = vec![None; session.graph.count()];
    for plan in plans(session, &wanted)? {
        standing[plan.index.number()] = plan.settled.record().cloned();
    }
    Ok(standing)
}

/// Returns the changed files beside the kernels that no closure holds, and that mean another thing than they did.
fn loose(before: &Session, now: &Session, changed: &BTreeSet<String>) -> Vec<RepoPath> {
    let in_closures: BTreeSet<&RepoPath> = [before, now]
        .iter()
        .flat_map(|session| session.inventory.files.values())
        .flat_map(|file| file.closure.keys())
        .collect();
    let of_kernels = |path: &RepoPath| PACKAGES.iter().any(|package| path.as_str().starts_with(&format!("{package}/")));
    let paths = changed.iter().filter_map(|name| RepoPath::new(name).ok()).filter(of_kernels);
    let means = |session: &Session, path: &RepoPath| session.sources.as_discovered(path);
    paths.filter(|path| !in_closures.contains(path) && means(before, path) != means(now, path)).collect()
}

fn ops<'a>(session: &'a Session, causes: &Causes) -> impl Iterator<Item = String> + use<'a> {
    let of: BTreeSet<String> = causes.keys().map(|index| session.graph.action(*index).target().op.clone()).collect();
    session.spec.ops.iter().map(|op| op.name.clone()).filter(move |name| of.contains(name))
}

fn targets(graph: &Graph, causes: &Causes) -> impl Iterator<Item = String> {
    causes.keys().map(|index| graph.action(*index).target().to_string())
}

fn lines(all: impl Iterator<Item = String>) -> String {
    all.map(|line| line + "\n").collect()
}
