//! The stages of a compiled kernel side by side, as one HTML file for a browser: source, TTGIR, PTX, with lines that belong together.
//!
//! Stages are shown as they were kept, without lines. Those are of a second compile, and count only where its code is the same. It reads no file and starts no compiler.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::Serialize;
use t2t_model::foreign::printable;

use self::lines::{Line, Place, mlir, ptx};
use crate::render::syntax;

mod lines;

const TEMPLATE: &str = include_str!("stages/stages.html.jinja");
const STYLE: &str = include_str!("stages/stages.css");
const SCRIPT: &str = include_str!("stages/stages.js");

/// The SHA-256 digests of [`STYLE`] and [`SCRIPT`] in base64.
const STYLE_DIGEST: &str = "MT1T6P6lPrJmiA60AZ5JxMYGXFRE4RfLz6J8XnM1HEY=";
const SCRIPT_DIGEST: &str = "cVvYYIq6F/riGyL+na0/10aIVGmj93RgUvgpQQtsJI4=";

/// A kernel and what it was compiled to.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// The device that it was compiled for, with its configuration and constants.
    pub about: String,
    /// Stage → text, as it was kept, in the order in which they are shown.
    pub stages: Vec<(String, String)>,
    /// The same of a second compile with lines; else why there is none.
    pub lined: Result<BTreeMap<String, String>, String>,
}

/// Returns the page of a variant as HTML. `files` are those of the workspace that lines may be of, the kernel's first, with their texts; places in them are told
/// by the end of their path.
///
/// # Errors
///
/// Fails where the template cannot be rendered.
pub fn html(place: &str, files: &[(String, String)], kernels: &[Kernel]) -> Result<String, String> {
    let context = Context {
        style: STYLE,
        script: SCRIPT,
        style_digest: STYLE_DIGEST,
        script_digest: SCRIPT_DIGEST,
        place,
        kernels: kernels.iter().map(|kernel| Shown::of(kernel, files)).collect(),
    };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(syntax());
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => minijinja::escape_formatter(out, state, &Value::from(printable(text))),
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.render_named_str("stages.html", TEMPLATE, Serde(&context)).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Context<'a> {
    style: &'static str,
    script: &'static str,
    style_digest: &'static str,
    script_digest: &'static str,
    place: &'a str,
    kernels: Vec<Shown<'a>>,
}

/// A kernel as the template sees it.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    about: &'a str,
    /// Why lines are not linked, a sentence each.
    why: Vec<String>,
    panes: Vec<Pane<'a>>,
}

#[derive(Serialize)]
struct Pane<'a> {
    title: &'a str,
    is_source: bool,
    lines: Vec<Told<'a>>,
}

/// A line of a pane.
#[derive(Serialize)]
struct Told<'a> {
    text: Cow<'a, str>,
    /// The places that it belongs to, as `FILE.LINE`.
    keys: Vec<String>,
    /// The number of the first of them.
    number: Option<u32>,
}

impl<'a> Shown<'a> {
    fn of(kernel: &'a Kernel, files: &'a [(String, String)]) -> Self {
        let mut why = Vec::new();
        if let Err(reason) = &kernel.lined {
            why.push(format!("Lines are not linked: {reason}."));
        }
        let mut panes = Vec::new();
        let mut reached: BTreeSet<(usize, u32)> = BTreeSet::new();
        for (stage, text) in &kernel.stages {
            let read = if stage == "ptx" { ptx } else { mlir };
            let kept = read(text);
            let again = kernel.lined.as_ref().ok().and_then(|told| told.get(stage)).map(|text| read(text));
            let places = again.map(|again| matched(&kept, &again, files));
            if let Some(None) = places {
                why.push(format!("Lines of {stage} are not linked: a compile with lines makes other code."));
            }
            let places = places.flatten().unwrap_or_else(|| vec![Vec::new(); kept.len()]);
            reached.extend(places.iter().flatten());
            let told = kept.iter().zip(&places).map(|(line, places)| Told {
                text: Cow::Owned(line.shown.clone()),
                keys: places.iter().map(|(file, number)| format!("{file}.{number}")).collect(),
                number: places.first().map(|(_, number)| *number),
            });
            panes.push(Pane { title: stage, is_source: false, lines: told.collect() });
        }
        // The kernel's file, and others that lines are of.
        let is_shown = |file: &usize| *file == 0 || reached.iter().any(|(other, _)| other == file);
        let sources = (0..files.len()).filter(is_shown).map(|file| {
            let (path, text) = &files[file];
            let line = |(number, text): (u32, &'a str)| {
                let is_linked = reached.contains(&(file, number));
                Told {
                    text: Cow::Borrowed(text),
                    keys: is_linked.then(|| format!("{file}.{number}")).into_iter().collect(),
                    number: None,
                }
            };
            Pane { title: path, is_source: true, lines: (1..).zip(text.lines()).map(line).collect() }
        });
        let panes = sources.chain(panes).collect();
        Self { name: &kernel.name, about: &kernel.about, why, panes }
    }
}

/// Returns, for each kept line, the places in `files` that the same line of the second compile belongs to; None where the two are not the same code.
fn matched(kept: &[Line], lined: &[Line], files: &[(String, String)]) -> Option<Vec<Vec<(usize, u32)>>> {
    let code = |lines: &[Line]| -> Vec<usize> { (0..lines.len()).filter(|at| !lines[*at].code.is_empty()).collect() };
    let (ours, theirs) = (code(kept), code(lined));
    let is_same = ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(own, other)| kept[*own].code == lined[*other].code);
    let found = |place: &Place| {
        let file = files.iter().position(|(path, _)| place.file.ends_with(path.as_str()))?;
        Some((file, place.line))
    };
    is_same.then(|| {
        let mut all = vec![Vec::new(); kept.len()];
        for (own, other) in ours.into_iter().zip(theirs) {
            let places: BTreeSet<(usize, u32)> = lined[other].places.iter().filter_map(found).collect();
            all[own] = places.into_iter().collect();
        }
        all
    })
}

#[cfg(test)]
mod tests;
