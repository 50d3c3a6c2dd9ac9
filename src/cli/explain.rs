//! `t2t explain`: why an action is stale, or how its result came to be; what a class of rejections means.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use t2t_host::interrupt::Interrupt;
use t2t_model::action::Target;
use t2t_model::classes::{self, Class};
use t2t_model::record::{Outcome, Record};
use t2t_plan::explain;
use t2t_plan::graph::pick::{Force, Selection, named, pick};
use t2t_plan::schedule::Settled;
use t2t_protocol::{CaseVerdict, Evidence, Failure};
use t2t_report::figures;
use t2t_spec::names::nearest;
use t2t_store::results;

use super::error::CliError;
use super::plan::{Plan, plans};
use super::{Common, ReportFormat, Targets, context, streams};
use crate::engine::evidence;
use crate::session::Session;

/// Prints, for every class that is named, what it means, and for every action, whether it is stale and why, what came of it, and what its
/// result depends on.
pub(crate) fn explain(common: &Common, named_by_user: &[String], format: ReportFormat) -> Result<u8, CliError> {
    let (classes, targets): (Vec<_>, Vec<_>) =
        named_by_user.iter().map(|text| (text, classes::find(text))).partition(|(_, class)| class.is_some());
    let classes: Vec<Class> = classes.into_iter().filter_map(|(_, class)| class).collect();
    let is_text = matches!(format, ReportFormat::Text);
    if is_text {
        streams::print(&classes.iter().copied().map(page_line).collect::<String>());
    }
    let targets: Vec<String> = targets.into_iter().map(|(text, _)| text.clone()).collect();
    let actions = if targets.is_empty() { Vec::new() } else { explained(common, &targets).map_err(near_a_class)? };
    if is_text {
        streams::print(&actions.iter().map(told).collect::<String>());
    } else {
        let document = json!({
            "classes": classes.into_iter().map(class_document).collect::<Vec<_>>(),
            "actions": actions.iter().map(document).collect::<Vec<_>>(),
        });
        streams::print(&format!("{document:#}\n"));
    }
    Ok(0)
}

/// Returns the error with the class that an unknown name was probably meant to be, where no op is near.
fn near_a_class(error: CliError) -> CliError {
    let CliError::Use { message, hint } = error else { return error };
    let name = message.strip_prefix("ops.yaml has no op `").and_then(|rest| rest.strip_suffix('`'));
    let is_suggested = hint.as_ref().is_some_and(|hint| hint.starts_with("did you mean"));
    let near = name.and_then(|name| nearest(name, classes::CLASSES.iter().map(|class| class.name)));
    match near {
        Some(class) if !is_suggested => CliError::misuse(message, format!("did you mean the class `{class}`?")),
        _ => CliError::Use { message, hint },
    }
}

fn page_line(class: Class) -> String {
    format!(
        "{}: {}\n  what helps: {}\n  docs/reference/judging.md has the rules\n",
        class.name, class.meaning, class.remedy
    )
}

fn class_document(class: Class) -> Value {
    json!({"class": class.name, "meaning": class.meaning, "remedy": class.remedy})
}

/// What is known of an action.
struct Explained {
    target: Target,
    plan: Plan,
    /// What came of it, if its result stands.
    end: Option<End>,
}

/// What came of an action whose result stands.
struct End {
    record: Record,
    /// Why it was rejected, if it was.
    failure: Option<Failure>,
    /// What a check left; why it cannot be read, where it cannot.
    evidence: Result<Option<Evidence>, String>,
    /// Where the result comes from, in words.
    origin: String,
}

/// Returns what is known of the actions that `targets` name. Of a compile that is named that is what a build of everything has of it, else what a build has in which it was named, too.
fn explained(common: &Common, targets: &[String]) -> Result<Vec<Explained>, CliError> {
    let found = explained_in(common, targets, &Targets::default())?;
    let is_known = |found: &[Explained]| found.iter().all(|one| one.end.is_some());
    let named = Targets { targets: targets.to_vec(), ..Targets::default() };
    if is_known(&found) || named.configurations() == Targets::default().configurations() {
        return Ok(found);
    }
    let other = explained_in(common, targets, &named)?;
    Ok(if is_known(&other) { other } else { found })
}

fn explained_in(common: &Common, targets: &[String], asked: &Targets) -> Result<Vec<Explained>, CliError> {
    let session = context::open_for(common, asked, context::as_built(common)?, &Interrupt::default())?;
    context::warn_of_unknown_versions(common, &session)?;
    let selection = Selection { targets: context::named(&session, targets)?, ..Selection::default() };
    let wanted = pick(&session.graph, &selection, Force::Stale)?;
    let named = named(&session.graph, &selection)?;
    let is_told = |plan: &Plan| named.contains(&plan.index) && plan.settled != Settled::NotNeeded;
    let cas = session.cas();
    let plans = plans(&session, &wanted)?.into_iter().filter(is_told);
    let explained = plans.map(|plan| {
        let target = session.graph.action(plan.index).target().clone();
        let end = plan.settled.record().map(|record| End {
            failure: matches!(record.outcome, Outcome::Rejected { .. })
                .then(|| evidence::failure(record, |digest| cas.get(digest)).unwrap_or_default()),
            evidence: evidence::of_check(record, |digest| cas.get(digest)).map_err(|error| error.to_string()),
            origin: origin(&session, record, &target),
            record: record.clone(),
        });
        Explained { target, plan, end }
    });
    Ok(explained.collect())
}

/// Returns the lines of an action.
fn told(one: &Explained) -> String {
    let state = match &one.plan.settled {
        Settled::Skipped(on) => format!("skipped after {on}"),
        Settled::Restored(_) => "fresh: an earlier result comes back".to_owned(),
        settled => word(settled).to_owned(),
    };
    let mut text = format!("{}: {state}\n", one.target);
    for reason in &one.plan.why {
        text += &format!("  because {}\n", reason.whole());
    }
    if let Some(end) = &one.end {
        text += &came_of(end, &one.target);
    }
    if let Some(manifest) = &one.plan.manifest {
        text += &format!("  key {}\n", manifest.key());
        for (name, fact) in &manifest.facts {
            text += &format!("    {name} = {fact}\n");
        }
    }
    for (path, seen) in one.end.iter().flat_map(|end| &end.record.discovered) {
        text += &format!("    discovered.{path} = {}\n", explain::state(*seen));
    }
    text
}

fn word(settled: &Settled) -> &'static str {
    match settled {
        Settled::Planned | Settled::Missing => "stale",
        Settled::Fresh(_) | Settled::Restored(_) => "fresh",
        Settled::NotNeeded => "not needed",
        Settled::Skipped(_) => "skipped",
        Settled::Ran(_) | Settled::Lost(_) | Settled::Withheld(_) => "settled",
    }
}

/// Returns the lines of what came of an action, and where that comes from.
fn came_of(end: &End, target: &Target) -> String {
    let mut text = match (&end.record.outcome, &end.failure) {
        (Outcome::Rejected { class }, Some(failure)) => {
            let whole = evidence::text(failure, target);
            let lines = whole.lines().map(|line| format!("    {line}\n"));
            format!("  rejected ({class})\n{}", lines.collect::<String>())
        }
        (Outcome::NotJudged { reason }, _) => format!("  not judged: {reason}\n"),
        _ => "  passed\n".to_owned(),
    };
    match &end.evidence {
        Ok(Some(checked)) => {
            if !checked.cases.is_empty() {
                text += &format!("  {}: `--format json` names each\n", evidence::counted(&checked.cases));
            }
            text.extend(checked.notes.iter().map(|note| format!("  note: {note}\n")));
        }
        Ok(None) => {}
        Err(error) => text += &format!("  its cases cannot be read: {error}\n  hint: `t2t cache verify --repair`\n"),
    }
    text += &format!("  from {}\n", end.origin);
    text
}

/// Returns what is known of an action, for programs.
fn document(one: &Explained) -> Value {
    let (outcome, detail) = match one.end.as_ref().map(|end| &end.record.outcome) {
        Some(Outcome::Passed) => (Some("passed"), None),
        Some(Outcome::Rejected { class }) => (Some("rejected"), Some(class)),
        Some(Outcome::NotJudged { reason }) => (Some("not-judged"), Some(reason)),
        Some(Outcome::Lost { .. }) | None => (None, None),
    };
    let checked = one.end.as_ref().and_then(|end| end.evidence.as_ref().ok()?.as_ref());
    let facts = one.plan.manifest.iter().flat_map(|manifest| &manifest.facts);
    let discovered = one.end.iter().flat_map(|end| &end.record.discovered);
    let of = |name: &str| detail.filter(|_| outcome == Some(name));
    json!({
        "target": one.target.to_string(),
        "state": word(&one.plan.settled),
        "after": match &one.plan.settled { Settled::Skipped(on) => Some(on.to_string()), _ => None },
        "outcome": outcome,
        "class": of("rejected"),
        "reason": of("not-judged"),
        "failure": one.end.as_ref().and_then(|end| end.failure.as_ref()),
        "cases": checked.map(|checked| cases(checked)),
        "left_out": checked.and_then(|checked| checked.left_out.as_deref()),
        "reasons": checked.map(|checked| reasons(checked)),
        "notes": one.end.as_ref().map(|_| checked.map(|checked| checked.notes.as_slice()).unwrap_or_default()),
        "from": one.end.as_ref().map(|end| &end.origin),
        "why": one.plan.why.iter().map(explain::Reason::whole).collect::<Vec<_>>(),
        "key": one.plan.manifest.as_ref().map(|manifest| manifest.key().to_string()),
        "facts": facts.map(|(name, fact)| (name.clone(), fact.to_string())).collect::<BTreeMap<_, _>>(),
        "discovered": discovered.map(|(path, seen)| (path.to_string(), explain::state(*seen))).collect::<BTreeMap<_, _>>(),
    })
}

/// Returns the verdict on each case of a check.
fn cases(checked: &Evidence) -> BTreeMap<&str, Value> {
    checked.cases.iter().map(|case| (case.name.as_str(), json!(case.verdict))).collect()
}

/// Returns why a check judged cases so that did not pass.
fn reasons(checked: &Evidence) -> BTreeMap<&str, &str> {
    let open = checked.cases.iter().filter(|case| case.verdict != CaseVerdict::Passed);
    open.filter_map(|case| Some((case.name.as_str(), case.reason.as_deref()?))).collect()
}

/// Returns where a result comes from, in words.
fn origin(session: &Session, record: &Record, target: &Target) -> String {
    let published = session.published.iter().chain(&session.spare);
    let is_published =
        |entries: &[t2t_model::publication::Entry]| entries.iter().any(|entry| entry.record.key == record.key);
    let place = published
        .filter(|published| is_published(&published.entries))
        .map(|published| published.place.strip_prefix(&session.root).unwrap_or(&published.place).display().to_string());
    let of_another = if record.identity.target == *target {
        String::new()
    } else {
        format!(", as the result of {}, which is declared alike", record.identity.target)
    };
    let known = |name: &str| record.circumstances.get(name).filter(|version| !version.is_empty());
    let time = figures::time(std::time::Duration::from_millis(record.wall_ms));
    match (known("t2t"), place.last()) {
        (Some(t2t), _) => {
            let python = known("python").map(|python| format!(" and python {python}")).unwrap_or_default();
            format!("a run of {time} by t2t {t2t}{python}, kept in cache/{of_another}")
        }
        (None, Some(place)) => format!("what is published in {place}{of_another}; it ran {time}"),
        (None, None) => {
            format!("another workspace, by a remote cache or {}; it ran {time}{of_another}", results::FOLDER)
        }
    }
}
