//! Rendering: documents in, text out. The log of an op and the summary of a build, from templates; tables for a terminal.
//!
//! It reads no file and no clock: templates and documents are given, so equal inputs give equal bytes. docs/reference/log-templates.md lists what a
//! template may name.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde::Serialize;

use crate::render::build_page::BuildPage;
use crate::render::op_page::OpPage;

pub mod against;
pub mod profile;
pub mod counters;
pub mod attempts;
pub mod bench_table;
pub mod build_page;
pub(crate) mod benchmark;
mod ceilings;
pub mod comparison;
mod defects;
pub(crate) mod filters;
pub mod op_page;
pub mod problem;
mod resources;
pub mod prompt;
pub(crate) mod sizes;
pub mod missed;
pub mod standing;
pub mod sweep;
pub mod speedups;
pub mod rounds;
pub mod improving;
pub(crate) mod table;
mod telemetry;

/// The version of what rendering makes of documents and templates. A new one renders every log again. 1: first. 2: ceilings, variants against the first,
/// telemetry, a table a size, what was compiled on a device's time. 4: a template's `benchmark.ablation` is `benchmark.against`.
/// 5: a row's `stopped`: how many runs each size had, where the number was not fixed, and why.
/// 6: the rounds of a variant (`rounds`). 7: variants that were not reached count as not right.
pub const VERSION: u32 = 7;

/// A template and where it lies, for errors.
#[derive(Clone, Copy, Debug)]
pub struct Template<'a> {
    /// The workspace path.
    pub path: &'a str,
    /// What the file holds.
    pub text: &'a str,
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {message}")]
pub struct RenderError {
    /// The template's workspace path.
    pub(crate) path: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// What is wrong there.
    pub(crate) message: String,
    /// The line itself.
    pub(crate) excerpt: String,
    /// What may help.
    pub hint: Option<String>,
}

/// Returns the log of an op. Fails where the template is wrong.
pub fn log(template: Template<'_>, page: &OpPage<'_>) -> Result<String, RenderError> {
    render(template, &page.context())
}

/// Returns the summary of a build. Fails where the template is wrong.
pub fn summary(template: Template<'_>, page: &BuildPage<'_>) -> Result<String, RenderError> {
    render(template, &page.context())
}

fn render(template: Template<'_>, context: &impl Serialize) -> Result<String, RenderError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_syntax(syntax());
    filters::add(&mut environment);
    let rendered = environment
        .add_template(template.path, template.text)
        .and_then(|()| environment.get_template(template.path)?.render(Serde(context)));
    rendered.map(|text| tidy(&text)).map_err(|error| describe(template, &error))
}

/// Lets a block tag stand on a line of its own without leaving one.
pub(crate) fn syntax() -> SyntaxConfig {
    let builder = &mut SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true).build().expect("the standard delimiters differ")
}

/// Returns `text` with at most one empty line in a row outside fenced blocks, no spaces at line ends, and one newline at its end.
fn tidy(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        fence = match fence {
            Some(open) if line == open => None,
            None if ticks.len() >= 3 => Some(ticks),
            unchanged => unchanged,
        };
        let line = if fence.is_none() { line.trim_end() } else { line };
        if fence.is_some() || !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    lines.join("\n").trim_end().to_owned() + "\n"
}

fn describe(template: Template<'_>, error: &minijinja::Error) -> RenderError {
    let line = error.line().unwrap_or(1);
    let said = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let message = if error.kind() == ErrorKind::UndefinedError { undefined(template, error, &said) } else { said };
    let names = matches!(error.kind(), ErrorKind::UndefinedError | ErrorKind::UnknownFilter);
    RenderError {
        path: template.path.to_owned(),
        line,
        message,
        excerpt: template.text.lines().nth(line - 1).unwrap_or_default().to_owned(),
        hint: names.then(|| "docs/reference/log-templates.md lists what a template may name".to_owned()),
    }
}

fn undefined(template: Template<'_>, error: &minijinja::Error, said: &str) -> String {
    match error.range().and_then(|range| template.text.get(range)) {
        Some(expression) => format!("`{}` is not defined", expression.trim()),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests;
