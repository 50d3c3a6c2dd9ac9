//! Filters: how values stand in a log.
//!
//! They do not know which section they serve. A value that is missing reads as a dash in figures and as "not known" in text.

use std::fmt::Write as _;
use std::time::Duration;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use t2t_model::foreign::printable;

use crate::figures;

/// How much captured text a log shows.
const SHOWN_LINES: usize = 200;

/// Adds all filters to `environment`.
pub(crate) fn add(environment: &mut Environment<'_>) {
    environment.add_filter("ms", |value: Value| number(&value, figures::milliseconds));
    environment.add_filter("ratio", |value: Value| number(&value, figures::ratio));
    environment.add_filter("figure", |value: Value| number(&value, figures::figure));
    environment.add_filter("scaled", |value: Value| number(&value, figures::scaled));
    environment.add_filter("percent", |value: Value| number(&value, figures::percent));
    environment.add_filter("time", |value: Value| number(&value, wall));
    environment.add_filter("known", known);
    environment.add_filter("shape", |value: Value| shape(&value));
    environment.add_filter("pairs", |value: Value| pairs(&value));
    environment.add_filter("cell", |value: Value| cell(&value));
    environment.add_filter("prose", |value: Value| prose(&value));
    // Nothing that stands in a log can turn into a terminal's commands, whatever field it came by.
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) => Ok(out.write_str(&printable(text))?),
        None => minijinja::escape_formatter(out, state, value),
    });
    environment.add_filter("fence", |value: Value| fence(&value));
    environment.add_filter("quote", |value: Value| quote(&value));
    environment.add_filter("math", |value: Value| format!("$$\n{value}\n$$"));
}

fn number(value: &Value, written: fn(f64) -> String) -> Result<String, Error> {
    if is_missing(value) {
        return Ok("–".to_owned());
    }
    if value.kind() == ValueKind::String {
        return Ok(value.to_string());
    }
    f64::try_from(value.clone())
        .map(written)
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("`{value}` is no number")))
}

fn wall(milliseconds: f64) -> String {
    figures::time(Duration::from_secs_f64(milliseconds.max(0.0) / 1000.0))
}

fn is_missing(value: &Value) -> bool {
    value.is_undefined() || value.is_none()
}

/// Returns the value, or "not known" (or what `instead` says) where there is none or it is empty.
#[expect(clippy::needless_pass_by_value, reason = "a filter is given its arguments")]
fn known(value: Value, options: Kwargs) -> Result<Value, Error> {
    let instead: Option<&str> = options.get("instead")?;
    options.assert_all_used()?;
    let empty = is_missing(&value) || value.len() == Some(0);
    Ok(if empty { Value::from(instead.unwrap_or("not known")) } else { value })
}

/// Returns a list of lengths and names as `[M, N]`, with `?` for a length that is not known.
fn shape(value: &Value) -> Result<String, Error> {
    if is_missing(value) {
        return Ok("?".to_owned());
    }
    let lengths: Vec<String> =
        value.try_iter()?.map(|length| if is_missing(&length) { "?".to_owned() } else { length.to_string() }).collect();
    Ok(format!("[{}]", lengths.join(", ")))
}

/// Returns a mapping as `BLOCK_M=64, num_warps=4`, in the order of names, one of mappings as `kernel: BLOCK_M=64`, and a dash for none.
fn pairs(value: &Value) -> Result<String, Error> {
    if is_missing(value) {
        return Ok("–".to_owned());
    }
    let mut told = Vec::new();
    for name in value.try_iter()? {
        let inner = value.get_item(&name)?;
        told.push(if inner.kind() == ValueKind::Map {
            format!("{name}: {}", pairs(&inner)?)
        } else {
            format!("{name}={inner}")
        });
    }
    Ok(if told.is_empty() { "–".to_owned() } else { told.join(", ") })
}

/// Returns text that stays in its cell of a table.
fn cell(value: &Value) -> String {
    if is_missing(value) {
        return "–".to_owned();
    }
    prose(value).replace('|', "\\|")
}

/// Returns foreign text as one line in which nothing is markup but code between backticks.
fn prose(value: &Value) -> String {
    let line = printable(&value.to_string()).split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<&str> = line.split('`').collect();
    // What follows the last backtick is no code where none closes it.
    let is_code = |place: usize| place % 2 == 1 && place + 1 < parts.len();
    let told = parts.iter().enumerate();
    let told = told.map(|(place, part)| if is_code(place) { (*part).to_owned() } else { untagged(part) });
    told.collect::<Vec<_>>().join("`")
}

/// Returns text in which no tag of HTML begins.
fn untagged(text: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let begins = |next: &char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?');
        if letter == '<' && letters.peek().is_some_and(begins) {
            told.push('\\');
        }
        told.push(letter);
    }
    told
}

/// Returns the last lines of a text as a block that no text can end early.
fn fence(value: &Value) -> String {
    let text = printable(&value.to_string());
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let hidden = lines.len().saturating_sub(SHOWN_LINES);
    let ticks = "`".repeat(longest_run(&text).max(2) + 1);
    let mut block = format!("{ticks}text\n");
    if hidden > 0 {
        let _ = writeln!(block, "… {hidden} lines before");
    }
    for line in &lines[hidden..] {
        let _ = writeln!(block, "{line}");
    }
    block + &ticks
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

fn quote(value: &Value) -> String {
    let text = printable(&value.to_string());
    text.trim().lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}
