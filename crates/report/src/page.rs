//! The page of a workspace for a browser: documents in, the text of one HTML file out, which needs nothing beside it.
//!
//! It reads no file and no clock, so equal documents give equal bytes. Everything that comes from kernels or from ops.yaml is escaped where it is put into the page.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::Serialize;
use t2t_model::action::Phase;
use t2t_model::foreign::printable;

use crate::page::cells::{Cell, Matrix};
use crate::page::subjects::Subject;
use crate::render::filters;
use crate::render::op_page::{LogContext, OpPage};
use crate::render::syntax;

mod cells;
mod charts;
mod coded;
mod roofline;
pub mod served;
mod subjects;

/// The page's own text; it has the form of minijinja's templates.
const TEMPLATE: &str = include_str!("page/page.html.jinja");

/// How the page looks. Nothing else may style it.
const STYLE: &str = include_str!("page/page.css");

/// The filters and the keyboard. Nothing else may run.
const SCRIPT: &str = include_str!("page/page.js");

/// The SHA-256 digests of [`STYLE`] and [`SCRIPT`] in base64: a browser uses no style and runs no script that has another.
const STYLE_DIGEST: &str = "yZ/jlRR85nzCLzOH7jH2e9QS2mTvxrIQpdqwTo9ec7A=";
const SCRIPT_DIGEST: &str = "XLWeaWE3cckZnyXYN+FhRvITx6lUCAuAoKnHVjf/5/w=";

/// All that the page is made from.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Where the figures are from, in words.
    pub place: String,
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
    /// Why there is no roofline.
    no_roofline: &'static str,
    /// Variant → the command that repeats each of its problems.
    commands: BTreeMap<&'a str, Vec<String>>,
    own: LogContext<'a>,
    there: Option<LogContext<'a>>,
}

/// Returns the page as HTML.
///
/// # Errors
///
/// Fails where a chart cannot be drawn.
pub fn html(page: &Page<'_>) -> Result<String, PageError> {
    let ops: Vec<OpContext<'_>> = page.ops.iter().map(OpContext::of).collect::<Result<_, _>>()?;
    let rows: Vec<(&str, &[Cell])> = ops.iter().map(|op| (op.name, op.cells.as_slice())).collect();
    let context = Context {
        style: STYLE,
        script: SCRIPT,
        style_digest: STYLE_DIGEST,
        script_digest: SCRIPT_DIGEST,
        place: &page.place,
        published: ops.iter().find_map(|op| op.published.clone()),
        matrix: Matrix::of(&rows),
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
    fn of(op: &'a Op<'a>) -> Result<Self, PageError> {
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
        let own = op.own.context();
        let there = op.there.as_ref().map(OpPage::context);
        let benchmark = &there.as_ref().unwrap_or(&own).benchmark;
        let drawn = |chart: Result<Option<String>, String>| chart.map_err(PageError);
        Ok(Self {
            name: op.own.op,
            verdicts: verdicts.into_iter().collect::<Vec<_>>().join(" "),
            chosen,
            why,
            published: published.map(|published| cells::whose(&published.place)),
            speedups: drawn(charts::speedups(op.own.op, &sizes, &subjects))?,
            runs: drawn(charts::runs(op.own.op, &sizes, &subjects))?,
            roofline: drawn(roofline::roofline(op.own.op, benchmark, &subjects))?,
            no_roofline: roofline::why_none(benchmark),
            sizes: sizes.iter().map(|size| crate::render::sizes::title(size)).collect(),
            commands: commands(&op.own),
            own,
            there,
            cells,
            subjects,
        })
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
