//! `t2t explain`: why an action is stale, or how its result came to be; what a class of rejections means.

use t2t_host::interrupt::Interrupt;
use t2t_model::action::Target;
use t2t_model::classes::{self, Class};
use t2t_model::record::{Outcome, Record};
use t2t_plan::explain;
use t2t_plan::graph::pick::{Force, Selection, named, pick};
use t2t_plan::schedule::Settled;
use t2t_report::figures;
use t2t_store::results;

use super::error::CliError;
use super::plan::{Plan, plans};
use super::{Common, Targets, context, streams};
use crate::engine::evidence;
use crate::session::Session;

/// Prints, for every class that is named, what it means, and for every action, whether it is stale and why, what came of it, and what its
/// result depends on.
pub(crate) fn explain(common: &Common, named_by_user: &[String]) -> Result<u8, CliError> {
    let (classes, targets): (Vec<_>, Vec<_>) =
        named_by_user.iter().map(|text| (text, classes::find(text))).partition(|(_, class)| class.is_some());
    for class in classes.into_iter().filter_map(|(_, class)| class) {
        streams::print(&page_line(class));
    }
    if targets.is_empty() {
        return Ok(0);
    }
    let targets: Vec<String> = targets.into_iter().map(|(text, _)| text.clone()).collect();
    let asked = Targets { targets: targets.clone(), ..Targets::default() };
    let session = context::open_for(common, &asked, context::as_built(common)?, &Interrupt::default())?;
    context::warn_of_unknown_versions(common, &session)?;
    let selection = Selection { targets: context::named(&session, &targets)?, ..Selection::default() };
    let wanted = pick(&session.graph, &selection, Force::Stale)?;
    let named = named(&session.graph, &selection)?;
    let is_told = |plan: &&Plan| named.contains(&plan.index) && plan.settled != Settled::NotNeeded;
    for plan in plans(&session, &wanted)?.iter().filter(is_told) {
        streams::print(&told(&session, plan));
    }
    Ok(0)
}

fn page_line(class: Class) -> String {
    format!(
        "{}: {}\n  what helps: {}\n  docs/reference/judging.md has the rules\n",
        class.name, class.meaning, class.remedy
    )
}

fn told(session: &Session, plan: &Plan) -> String {
    let target = session.graph.action(plan.index).target();
    let state = match &plan.settled {
        Settled::Planned | Settled::Missing => "stale".to_owned(),
        Settled::Fresh(_) => "fresh".to_owned(),
        Settled::Restored(_) => "fresh: an earlier result comes back".to_owned(),
        Settled::NotNeeded => "not needed".to_owned(),
        Settled::Skipped(on) => format!("skipped after {on}"),
        Settled::Ran(_) | Settled::Lost(_) | Settled::Withheld(_) => "settled".to_owned(),
    };
    let mut text = format!("{target}: {state}\n");
    for reason in &plan.why {
        text += &format!("  because {}\n", reason.whole());
    }
    if let Some(record) = plan.settled.record() {
        text += &came_of(session, record, target);
    }
    if let Some(manifest) = &plan.manifest {
        text += &format!("  key {}\n", manifest.key());
        for (name, fact) in &manifest.facts {
            text += &format!("    {name} = {fact}\n");
        }
    }
    for (path, seen) in plan.settled.record().iter().flat_map(|record| &record.discovered) {
        text += &format!("    discovered.{path} = {}\n", explain::state(*seen));
    }
    text
}

/// Returns what came of an action whose result stands, and where that comes from.
fn came_of(session: &Session, record: &Record, target: &Target) -> String {
    let cas = session.cas();
    let mut text = match &record.outcome {
        Outcome::Rejected { class } => {
            let failure = evidence::failure(record, |digest| cas.get(digest)).unwrap_or_default();
            let whole = evidence::text(&failure, target);
            let lines = whole.lines().map(|line| format!("    {line}\n"));
            format!("  rejected ({class})\n{}", lines.collect::<String>())
        }
        Outcome::NotJudged { reason } => format!("  not judged: {reason}\n"),
        _ => "  passed\n".to_owned(),
    };
    text += &format!("  from {}\n", origin(session, record, target));
    text
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
