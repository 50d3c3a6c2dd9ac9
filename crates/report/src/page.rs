//! The page of a workspace for a browser: documents in, the text of one HTML file out, which needs nothing beside it.
//!
//! It reads no file and no clock, so equal documents give equal bytes. Everything that comes from kernels or from ops.yaml is escaped where it is put into the page.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::Serialize;
use t2t_model::action::Phase;
use t2t_model::foreign::printable;
use t2t_protocol::Sweep;

use crate::page::cells::{Cell, Matrix};
use crate::page::curves::Curves;
pub use crate::page::history::Revision;
use crate::page::history::Step;
use crate::page::subjects::Subject;
pub use crate::page::timeline::Timeline;
use crate::render::filters;
use crate::render::op_page::{LogContext, OpPage};
use crate::render::syntax;

mod cells;
mod charts;
mod coded;
mod curves;
mod drawing;
mod history;
mod roofline;
pub mod served;
mod subjects;
mod timeline;

/// The page's own text; it has the form of minijinja's templates.
const TEMPLATE: &str = include_str!("page/page.html.jinja");

/// How the page looks. Nothing else may style it.
const STYLE: &str = include_str!("page/page.css");

/// The filters and the keyboard. Nothing else may run.
const SCRIPT: &str = include_str!("page/page.js");

/// The SHA-256 digests of [`STYLE`] and [`SCRIPT`] in base64: a browser uses no style and runs no script that has another.
const STYLE_DIGEST: &str = "Gh+IOZUF9uc0oMY3HswitdAbf6PUOhhPcvV++tykZoA=";
const SCRIPT_DIGEST: &str = "IAdbZdSpYca6G96fClpRGOBGHzcztfJhxcWZsShOMCY=";

/// All that the page is made from.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Where the figures are from, in words.
    pub place: String,
    /// The timeline of a build, where one was asked for.
    pub timeline: Option<Timeline>,
    /// The ops, in declared order.
    pub ops: Vec<Op<'a>>,
}

/// What the page tells of one op.
#[derive(Clone, Debug)]
pub struct Op<'a> {
    /// The results that stand.
    pub own: OpPage<'a>,
    /// What a device published of the kernels that are here; its variants are those whose figures stand. None where the figures are those of `own`.
    pub there: Option<OpPage<'a>>,
    /// The variants whose check would run in a build.
    pub stale: BTreeSet<String>,
    /// What attempts at generated kernels changed of those before, as unified diffs, by variant and number.
    pub changes: BTreeMap<String, BTreeMap<u32, String>>,
    /// What is known of it at revisions, the oldest first.
    pub history: Vec<Revision>,
    /// Its sweeps, where any are to be shown.
    pub sweeps: Vec<Sweep>,
}

/// Why no page could be made.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be made: {0}")]
pub struct PageError(String);

#[derive(Serialize)]
struct Context<'a> {
    style: &'static str,
    script: &'static str,
    style_digest: &'static str,
    script_digest: &'static str,
    place: &'a str,
    /// The device that is not here and that measured, where there is one.
    published: Option<String>,
    matrix: Matrix,
    timeline: Option<&'a Timeline>,
    /// The marks that charts refer to.
    markers: String,
    ops: Vec<OpContext<'a>>,
}

/// What the template sees of an op.
#[derive(Serialize)]
struct OpContext<'a> {
    name: &'a str,
    /// Its verdicts, each once, for the filter.
    verdicts: String,
    chosen: Option<&'a str>,
    why: Option<&'a str>,
    /// `NAME, published at COMMIT` where the figures are a device's that is not here.
    published: Option<String>,
    cells: Vec<Cell>,
    /// The sizes, as headings.
    sizes: Vec<String>,
    subjects: Vec<Subject>,
    speedups: Option<String>,
    runs: Option<String>,
    roofline: Option<String>,
    past: Option<String>,
    sweeps: Vec<Curves>,
    /// The chosen kernel at each revision.
    history: Vec<Step>,
    /// Why there is no roofline.
    no_roofline: &'static str,
    /// Whether the autotuner chose any of the configurations that were measured.
    is_tuned: bool,
    /// Variant → the command that repeats each of its problems.
    commands: BTreeMap<&'a str, Vec<String>>,
    changes: &'a BTreeMap<String, BTreeMap<u32, String>>,
    own: LogContext<'a>,
    there: Option<LogContext<'a>>,
}

/// Returns the page as HTML.
///
/// # Errors
///
/// Fails where the template cannot be rendered.
pub fn html(page: &Page<'_>) -> Result<String, PageError> {
    let ops: Vec<OpContext<'_>> = page.ops.iter().map(OpContext::of).collect();
    let rows: Vec<(&str, &[Cell])> = ops.iter().map(|op| (op.name, op.cells.as_slice())).collect();
    let context = Context {
        style: STYLE,
        script: SCRIPT,
        style_digest: STYLE_DIGEST,
        script_digest: SCRIPT_DIGEST,
        place: &page.place,
        published: ops.iter().find_map(|op| op.published.clone()),
        matrix: Matrix::of(&rows),
        timeline: page.timeline.as_ref(),
        markers: drawing::markers(ops.iter().map(OpContext::marks).max().unwrap_or_default()),
        ops,
    };
    let environment = environment();
    let text = environment.render_named_str("page.html", TEMPLATE, Serde(&context));
    text.map_err(|error| PageError(error.to_string()))
}

/// Returns an environment that escapes whatever is not said to be markup.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(syntax());
    filters::add(&mut environment);
    environment.add_filter("coded", |value: Value| coded::coded(&value));
    // Those of a log do not escape.
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => minijinja::escape_formatter(out, state, &Value::from(printable(text))),
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment
}

impl<'a> OpContext<'a> {
    fn of(op: &'a Op<'a>) -> Self {
        let cells = cells::of(op);
        let verdicts: BTreeSet<&str> = cells.iter().flat_map(Cell::words).collect();
        let selection = op.own.selection.document();
        let published = selection.and_then(|selection| selection.published.as_ref());
        let (chosen, why) = match (selection, published) {
            (_, Some(published)) => {
                // Why it was chosen, the device's own selection says.
                let there = op.there.as_ref().and_then(|there| there.selection.document());
                let there = there.filter(|there| published.chosen.is_some() && there.chosen == published.chosen);
                let why = published.why.as_deref().or_else(|| there.map(|there| there.why.as_str()));
                (published.chosen.as_deref(), why)
            }
            (Some(selection), None) => (selection.chosen.as_deref(), Some(selection.why.as_str())),
            (None, None) => (None, None),
        };
        let sizes = subjects::sizes(op);
        let subjects = subjects::of(op, &sizes);
        let history = history::steps(op.own.op, &op.history);
        let own = op.own.context();
        let there = op.there.as_ref().map(OpPage::context);
        let benchmark = &there.as_ref().unwrap_or(&own).benchmark;
        Self {
            name: op.own.op,
            verdicts: verdicts.into_iter().collect::<Vec<_>>().join(" "),
            chosen,
            why,
            published: published.map(|published| cells::whose(&published.place)),
            speedups: charts::speedups(op.own.op, &sizes, &subjects),
            runs: charts::runs(op.own.op, &sizes, &subjects),
            roofline: roofline::roofline(op.own.op, benchmark, &subjects),
            sweeps: op.sweeps.iter().map(|sweep| Curves::of(sweep, &subjects)).collect(),
            past: history::chart(op.own.op, &history),
            history,
            no_roofline: roofline::why_none(benchmark),
            is_tuned: benchmark.sizes.iter().any(|size| size.rows.iter().any(|row| row.config.is_some())),
            sizes: sizes.iter().map(|size| crate::render::sizes::title(size)).collect(),
            commands: commands(&op.own),
            changes: &op.changes,
            own,
            there,
            cells,
            subjects,
        }
    }
}

impl OpContext<'_> {
    /// Returns how many subjects its charts have at most: the roofline has torch, too, and the history two.
    fn marks(&self) -> usize {
        let swept = self.sweeps.iter().map(|curves| curves.marks);
        swept.chain([self.subjects.len() + 1, 2]).max().unwrap_or_default()
    }
}

/// Returns, by variant, the command that repeats each of its problems, in their order.
fn commands<'a>(page: &OpPage<'a>) -> BTreeMap<&'a str, Vec<String>> {
    let of_variant = |name: &str, phase: &str| format!("{}/{name}:{phase}", page.op);
    let told = page.variants.iter().map(|variant| {
        let name = variant.result.name.as_str();
        let problems = variant.problems();
        let commands = problems.iter().map(|problem| {
            let target = of_variant(name, &problem.phase);
            let alone = || format!("t2t repro {}/{name}", page.op);
            let again = || format!("t2t build {target} --force");
            let is_check = problem.phase == Phase::Check.name() && problem.class.as_deref() != Some("source");
            problem.repeats(&target).unwrap_or_else(|| if is_check { alone() } else { again() })
        });
        (name, commands.collect())
    });
    told.collect()
}

#[cfg(test)]
mod tests;
