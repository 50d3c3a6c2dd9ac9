//! Rendering: an op, a variant and a form in, a kernel file out.
//!
//! Equal requests give equal bytes. It does not know why a form was asked for.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalogue::{Catalogue, Fault, Op, Technique};
use crate::files::Files;
use crate::json::Json;
use crate::wrap;

/// The version of what is done to a template's text: equal requests of other versions may give other bytes. 1: first.
pub const VERSION: u32 = 1;

/// One of an op's four kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// The direct translation.
    Baseline,
    /// The family's first technique.
    First,
    /// The family's second technique.
    Second,
    /// Both.
    Both,
}

impl Variant {
    /// All variants, from the simplest on.
    pub const ALL: [Self; 4] = [Self::Baseline, Self::First, Self::Second, Self::Both];

    /// Tells whether the variant has the family's first technique.
    #[must_use]
    pub fn has_first(self) -> bool {
        matches!(self, Self::First | Self::Both)
    }

    /// Tells whether the variant has the family's second technique.
    #[must_use]
    pub fn has_second(self) -> bool {
        matches!(self, Self::Second | Self::Both)
    }
}

/// Returns the names of an op's variants in ops.yaml, in the order of [`Variant::ALL`].
#[must_use]
pub fn variant_names(catalogue: &Catalogue, op: &Op) -> [String; 4] {
    let [first, second] = &catalogue.family(op).techniques;
    ["v1_baseline".to_owned(), first.variant.clone(), second.variant.clone(), "v4_optimized".to_owned()]
}

/// What a later attempt changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// The family's own choice.
    Standard,
    /// Blocks of a half to a quarter of the size: after spills, or too much shared memory.
    Small,
    /// Every operand is written out contiguously first: after a failure of strides or dtypes.
    General,
    /// No technique, and arithmetic in float64: after a wrong value.
    Plain,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 4] = [Self::Standard, Self::Small, Self::General, Self::Plain];
}

/// What is rendered.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The op of the catalogue.
    pub op: &'a Op,
    /// Which of its kernels.
    pub variant: Variant,
    /// Which attempt at it.
    pub form: Form,
    /// The wrapper's name: `triton_gelu`.
    pub entry: String,
    /// Whether gradients are wanted. They are rendered if the op has them.
    pub backward: bool,
}

impl<'a> Request<'a> {
    /// Returns the request for an op as its entry in the catalogue has it.
    #[must_use]
    pub fn new(op: &'a Op, variant: Variant, form: Form) -> Self {
        let backward = op.entry().iter().any(|(key, value)| *key == "backward" && *value == Json::Flag(true));
        Self { op, variant, form, entry: format!("triton_{}", op.name), backward }
    }
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct TemplateFault {
    /// The template's file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// What a template may name; docs/reference/generators.md lists it.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question that templates ask")]
struct Context<'a> {
    /// The op of the catalogue: `op.title`, `op.math`, `op.torch`.
    op: &'a Op,
    /// What the op's record and its family give the template.
    with: &'a Map<String, Value>,
    /// The stem of the names of kernels.
    name: &'a str,
    /// The name of the wrapper.
    entry: &'a str,
    /// The family's techniques.
    techniques: &'a [Technique; 2],
    /// Whether the variant has the first one.
    first: bool,
    /// Whether the variant has the second one.
    second: bool,
    /// Whether blocks are to be smaller.
    small: bool,
    /// Whether every operand is written out contiguously first.
    general: bool,
    /// Whether the plainest form is asked for.
    plain: bool,
    /// The type of the arithmetic.
    float: &'static str,
    /// Whether gradients are wanted.
    backward: bool,
}

impl<'a> Context<'a> {
    /// Returns what a template may name for a request.
    fn new(request: &'a Request<'_>, techniques: &'a [Technique; 2]) -> Self {
        let plain = request.form == Form::Plain;
        Self {
            op: request.op,
            with: &request.op.with,
            name: request.entry.strip_prefix("triton_").unwrap_or(&request.entry),
            entry: &request.entry,
            techniques,
            first: request.variant.has_first() && !plain,
            second: request.variant.has_second() && !plain,
            small: request.form == Form::Small,
            general: matches!(request.form, Form::General | Form::Plain),
            plain,
            float: if plain { "tl.float64" } else { "tl.float32" },
            backward: request.backward,
        }
    }
}

/// The generator: its catalogue, and its templates, compiled once each.
#[derive(Debug)]
pub struct Generator {
    /// What it knows.
    pub catalogue: Catalogue,
    environment: Environment<'static>,
}

impl Generator {
    /// Returns the generator of `files`. Fails where a family cannot be read.
    pub fn new(files: &Files) -> Result<Self, Fault> {
        Ok(Self { catalogue: Catalogue::read(files)?, environment: environment(files) })
    }

    /// Returns the kernel file of a request for an op of this generator's catalogue. Fails where a template is wrong.
    pub fn render(&self, request: &Request<'_>) -> Result<String, TemplateFault> {
        let family = self.catalogue.family(request.op);
        let context = Context::new(request, &family.techniques);
        let template = self.environment.get_template(&family.template);
        let rendered = template.and_then(|template| template.render(Serde(&context)));
        rendered.map(|text| tidy(&text)).map_err(|error| TemplateFault {
            file: error.name().unwrap_or(&family.template).to_owned(),
            line: error.line().unwrap_or(1),
            message: error.detail().map_or_else(|| error.kind().to_string(), str::to_owned),
        })
    }

    /// Returns what a variant is rendered as in each form, in the order of [`Form::ALL`], without forms that are an earlier one again. Fails where a template is wrong.
    pub fn attempts(&self, request: &Request<'_>) -> Result<Vec<(Form, String)>, TemplateFault> {
        let mut attempts: Vec<(Form, String)> = Vec::new();
        for form in Form::ALL {
            let text = self.render(&Request { form, ..request.clone() })?;
            if attempts.iter().all(|(_, earlier)| *earlier != text) {
                attempts.push((form, text));
            }
        }
        Ok(attempts)
    }
}

/// Returns what templates may use: each other, and the functions of [`wrap`].
fn environment(files: &Files) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the standard delimiters differ"));
    let files = files.clone();
    environment.set_loader(move |name| Ok(files.get(name).map(str::to_owned)));
    environment.add_function("call", |indent: usize, head: &str, items: Vec<String>, tail: Option<&str>| {
        wrap::call(indent, head, &items, tail.unwrap_or_default())
    });
    environment.add_filter("fill", wrap::fill);
    environment.add_filter("camel", wrap::camel);
    environment.add_filter("suffixed", |text: &str, ending: &str| format!("{text}{ending}"));
    environment.add_filter("prefixed", |text: &str, beginning: &str| format!("{beginning}{text}"));
    environment.add_filter("names", |parameters: Vec<String>| -> Vec<String> {
        parameters.iter().filter(|one| *one != "*").map(|one| parameter_name(one)).collect()
    });
    environment
}

/// Returns the name of a parameter as it is declared: `dim` of `dim: int = -1`.
fn parameter_name(declared: &str) -> String {
    declared.split([':', '=']).next().unwrap_or_default().trim().to_owned()
}

/// What stands at the top of a file: the import, and what is in a file that needs it.
const IMPORTS: &[(&str, &str)] = &[
    ("import math", "math."),
    ("from collections.abc import Sequence", "Sequence["),
    ("from typing import Any", "Any"),
    ("", ""),
    ("import torch", "torch."),
    ("import triton", "triton."),
    ("import triton.language as tl", "tl."),
    ("from triton.language.extra import libdevice", "libdevice."),
];

/// Returns rendered text with its imports after the docstring, two empty lines above each definition and at most one elsewhere, no spaces at line ends, and one newline at its end.
fn tidy(text: &str) -> String {
    let (docstring, code) = match text.split_once("\n\"\"\"\n") {
        Some((docstring, code)) => (format!("{docstring}\n\"\"\"\n\n"), code),
        None => (String::new(), text),
    };
    let uses = |sign: &str| {
        code.match_indices(sign).any(|(place, _)| {
            let before = code[..place].chars().next_back().unwrap_or(' ');
            let after = code[place + sign.len()..].chars().next().unwrap_or(' ');
            let ends = !sign.ends_with(char::is_alphanumeric) || !after.is_alphanumeric();
            !before.is_alphanumeric() && before != '_' && before != '.' && before != '`' && ends
        })
    };
    let imports = IMPORTS.iter().filter(|(import, sign)| import.is_empty() || uses(sign)).map(|(import, _)| *import);
    let imports: Vec<&str> = imports.collect();
    let (imports, code) = (imports.join("\n"), code.trim_start());
    let whole = format!("{docstring}{}\n\n{code}", imports.trim_start());
    let mut lines: Vec<&str> = Vec::new();
    for line in whole.lines().map(str::trim_end) {
        let follows = lines.last().is_some_and(|above| above.starts_with('@'));
        let opens = ["@", "def ", "class "].iter().any(|word| line.starts_with(word)) && !follows;
        let gap = if opens { 2 } else { usize::from(line.is_empty()) };
        if opens || line.is_empty() {
            lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
            lines.extend(std::iter::repeat_n("", gap));
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned() + "\n"
}

#[cfg(test)]
mod tests;
