//! An entry of ops.yaml as text, and where in a file it goes: what is there keeps its order, its comments and its bytes.
//!
//! It does not know whether the entry is right.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::Spec;

/// The sizes of an op with so many free dims, two apart, which the built-in ones suit: small, medium, large, for every dim.
const SIZES: [(usize, [u64; 3]); 3] = [(1, [1 << 16, 1 << 20, 1 << 24]), (3, [128, 256, 512]), (4, [16, 32, 64])];

/// Returns the text of an op's entry, its key without indentation. Of `fields`, `torch` or `reference`, `inputs`, `kwargs` and `mutates` are written; null ones are left out,
/// as are those of the variant.
#[must_use]
pub fn text(op: &str, fields: &Value, variant: &[(&str, &Value)]) -> String {
    let mut text = format!("{op}:\n");
    for key in ["torch", "reference"] {
        if !fields[key].is_null() {
            let _ = writeln!(text, "  {key}: {}", flow(&fields[key]));
        }
    }
    let inputs: Vec<String> = fields["inputs"].as_array().into_iter().flatten().map(input).collect();
    let _ = writeln!(text, "  inputs: {{{}}}", inputs.join(", "));
    if fields["kwargs"].as_object().is_some_and(|kwargs| !kwargs.is_empty()) {
        let _ = writeln!(text, "  kwargs: {}", flow(&fields["kwargs"]));
    }
    if fields["mutates"].as_array().is_some_and(|names| !names.is_empty()) {
        let _ = writeln!(text, "  mutates: {}", flow(&fields["mutates"]));
    }
    if let Some(sizes) = sizes(&fields["inputs"]) {
        let _ = writeln!(text, "  bench: {{sizes: {sizes}}}");
    }
    let _ = writeln!(text, "  variants:\n    - {}", entries(variant));
    text
}

/// Returns an input; one that is a shape and nothing else is written as one.
fn input(input: &Value) -> String {
    let name = input["name"].as_str().unwrap_or_default();
    let others = ["dtype", "init", "optional"];
    let written = if others.iter().all(|key| input[key].is_null()) {
        flow(&input["shape"])
    } else {
        let more = others.map(|key| (key, &input[key]));
        entries(&[("shape", &input["shape"])].into_iter().chain(more).collect::<Vec<_>>())
    };
    format!("{name}: {written}")
}

/// Returns a mapping in YAML's flow style, without what is null.
fn entries(entries: &[(&str, &Value)]) -> String {
    let there = entries.iter().filter(|(_, value)| !value.is_null());
    let written: Vec<String> = there.map(|(key, value)| format!("{key}: {}", flow(value))).collect();
    format!("{{{}}}", written.join(", "))
}

/// Returns whether an ops.yaml is valid but for its lack of an op.
#[must_use]
pub fn lacks_ops(file: &[u8]) -> bool {
    const ANY: &str = "any:\n  torch: torch.relu\n  inputs: {input: [M, N]}\n";
    let with = String::from_utf8(file.to_vec()).ok().and_then(|text| inserted(&text, ANY));
    let with = with.and_then(|text| Spec::parse("ops.yaml", text.as_bytes(), None).ok());
    with.is_some_and(|spec| spec.ops.len() == 1)
}

/// Returns `file`, an ops.yaml, with an entry at the end of its ops. An empty `ops: {}` becomes a block. None where there are ops that are not written as blocks of their own.
#[must_use]
pub fn inserted(file: &str, entry: &str) -> Option<String> {
    let end = if file.contains("\r\n") { "\r\n" } else { "\n" };
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let Some(ops) = lines.iter().position(|line| line.starts_with("ops:")) else {
        let before = if file.is_empty() || file.ends_with('\n') { "" } else { end };
        return Some(format!("{file}{before}ops:{end}{}", indented(entry, 2, end)));
    };
    let rest = &lines[ops]["ops:".len()..];
    if let Some(without) = without_nothing(rest) {
        let (above, below) = (lines[..ops].concat(), lines[ops + 1..].concat());
        return inserted(&format!("{above}ops:{without}{below}"), entry);
    }
    if !rest.trim().is_empty() && !rest.trim_start().starts_with('#') {
        return None;
    }
    let is_inside = |line: &&str| line.starts_with(' ') || line.starts_with('#') || line.trim().is_empty();
    let block: Vec<&str> = lines[ops + 1..].iter().copied().take_while(is_inside).collect();
    // Comments at the margin after the last op speak of what follows.
    let own = block.iter().rposition(|line| line.starts_with(' ') && !line.trim().is_empty()).map_or(0, |at| at + 1);
    let is_key = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let depth = block[..own].iter().find(is_key).map_or(2, |line| line.len() - line.trim_start_matches(' ').len());
    let at = ops + 1 + own;
    let before = lines[..at].concat();
    let gap = if before.ends_with('\n') { "" } else { end };
    Some(format!("{before}{gap}{}{}", indented(entry, depth, end), lines[at..].concat()))
}

/// Returns what follows `ops:` without the mapping that is empty there: `{}`, `null` or `~`. None where there is none.
fn without_nothing(rest: &str) -> Option<&str> {
    let value = rest.trim_start();
    let braces = value.strip_prefix('{').and_then(|inside| inside.trim_start().strip_prefix('}'));
    let after = braces.or_else(|| value.strip_prefix("null")).or_else(|| value.strip_prefix('~'))?;
    let is_all = after.trim().is_empty() || (after.starts_with([' ', '\t']) && after.trim_start().starts_with('#'));
    is_all.then_some(after)
}

fn indented(entry: &str, depth: usize, end: &str) -> String {
    let margin = " ".repeat(depth);
    entry.lines().flat_map(|line| [margin.as_str(), line, end]).collect()
}

/// Returns sizes for the free dims of the inputs, None where the built-in ones suit them.
fn sizes(inputs: &Value) -> Option<String> {
    let shapes = inputs.as_array()?.iter();
    let dims: BTreeSet<&str> =
        shapes.filter_map(|input| input["shape"].as_array()).flatten().filter_map(Value::as_str).collect();
    let (_, [small, medium, large]) = SIZES.iter().rfind(|(count, _)| *count <= dims.len() && dims.len() != 2)?;
    Some(format!("{{small: {small}, medium: {medium}, large: {large}}}"))
}

/// Returns a value in YAML's flow style, in quotes only where it must be. Null entries of a mapping are left out.
#[must_use]
pub fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => entries(&map.iter().map(|(key, value)| (key.as_str(), value)).collect::<Vec<_>>()),
        Value::String(text) => word(text),
        other => other.to_string(),
    }
}

/// Returns a text as YAML has it, in quotes only where it must be.
#[must_use]
pub fn word(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { Value::from(text).to_string() }
}

/// Letters, digits and what stands in paths and dotted names; no word that YAML takes for something else.
fn is_plain(text: &str) -> bool {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_reserved = matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "null");
    is_word
        && !is_reserved
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | ':' | '-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_reads_as_people_write_it() {
        let inputs = json!([{"name": "input", "shape": ["M", "N"]}, {"name": "bias", "shape": ["N"]}]);
        let fields = json!({"torch": "torch.softmax", "reference": null, "inputs": inputs, "kwargs": {"dim": -1}});
        let (name, path, call) = (json!("v1"), json!("lib/x.py"), json!("entry(input, dim)"));
        assert_eq!(
            text("softmax", &fields, &[("name", &name), ("path", &path), ("module", &Value::Null), ("call", &call)]),
            "softmax:\n  torch: torch.softmax\n  inputs: {input: [M, N], bias: [N]}\n  kwargs: {dim: -1}\n  variants:\n    - {name: v1, path: lib/x.py, call: \"entry(input, dim)\"}\n"
        );
        let places = json!([{"name": "x", "shape": ["N"], "dtype": "int64", "init": {"randint": [0, "N"]}}]);
        let one = json!({"torch": null, "reference": "a.py::f", "inputs": places, "kwargs": {}, "mutates": ["x"]});
        assert_eq!(
            text("f", &one, &[("name", &name)]),
            "f:\n  reference: a.py::f\n  inputs: {x: {shape: [N], dtype: int64, init: {randint: [0, N]}}}\n  mutates: [x]\n  bench: {sizes: {small: 65536, medium: 1048576, large: 16777216}}\n  variants:\n    - {name: v1}\n"
        );
    }

    #[test]
    fn a_file_that_lacks_an_op_alone_is_told_from_one_with_a_mistake() {
        for file in ["version: 1\n", "version: 1\nops: {}\n", "version: 1\ndefaults: {dtypes: [float16]}\nops: ~\n"] {
            assert!(lacks_ops(file.as_bytes()), "{file}");
        }
        for file in [
            "version: 1\nop: {}\n",
            "version: 9\nops: {}\n",
            "version: 1\nops:\n  a: {torch: relu, inputs: {x: [M, N]}}\n",
        ] {
            assert!(!lacks_ops(file.as_bytes()), "{file}");
        }
    }

    #[test]
    fn what_is_there_keeps_its_bytes() {
        let entry = "x:\n  torch: torch.add\n";
        let cases = [
            ("version: 1\n", "version: 1\nops:\n  x:\n    torch: torch.add\n"),
            (
                "ops:\n    # first\n    a: {}  # c\n\n# of the profiles\nprofiles: {}\n",
                "ops:\n    # first\n    a: {}  # c\n    x:\n      torch: torch.add\n\n# of the profiles\nprofiles: {}\n",
            ),
            ("ops: # all\n  a:\n    b: 1", "ops: # all\n  a:\n    b: 1\n  x:\n    torch: torch.add\n"),
            ("ops: {}  # none yet\nprofiles: {}\n", "ops:  # none yet\n  x:\n    torch: torch.add\nprofiles: {}\n"),
            ("ops: { }", "ops:\n  x:\n    torch: torch.add\n"),
            ("ops: ~\r\n# c\r\n", "ops:\r\n  x:\r\n    torch: torch.add\r\n# c\r\n"),
            ("ops:\r\n  a: {}\r\n", "ops:\r\n  a: {}\r\n  x:\r\n    torch: torch.add\r\n"),
        ];
        for (before, after) in cases {
            assert_eq!(inserted(before, entry).unwrap(), after);
        }
        assert_eq!(inserted("ops: {a: {}}\n", entry), None);
        assert_eq!(inserted("ops: {\n}\n", entry), None);
    }
}
