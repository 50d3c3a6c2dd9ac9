//! Holds a tree against the table of fields: unknown and missing keys, wrong types, names that are none, things said twice.
//!
//! It looks at one value at a time. It does not know what must hold between two of them.

use std::collections::{BTreeMap, BTreeSet};

use t2t_model::problem::Position;

use super::fault::Fault;
use super::fields::{Absent, Field, INPUT_DTYPES, Kind, Section};
use super::names::{Form, nearest, quoted, suggestion};
use super::node::{Entry, Node, Value};

/// Notes everything in which the file's root differs from the table.
pub(super) fn conform(root: &Node, faults: &mut Vec<Fault>) {
    let top = Spot { path: String::new(), place: root.place };
    Conform { faults }.section(root, Section::File, &top);
}

/// What a value belongs to: its path in words, empty for the file itself, and the place of its key.
struct Spot {
    path: String,
    place: Position,
}

impl Spot {
    fn below(&self, entry: &Entry) -> Spot {
        let path = if self.path.is_empty() { entry.key.clone() } else { format!("{}.{}", self.path, entry.key) };
        Spot { path, place: entry.place }
    }

    fn item(&self, index: usize, node: &Node) -> Spot {
        Spot { path: format!("{}[{index}]", self.path), place: node.place }
    }

    /// Returns what messages call the value.
    fn name(&self) -> String {
        if self.path.is_empty() { "the file".to_owned() } else { format!("`{}`", self.path) }
    }

    /// Returns what messages call the owner of keys: "op `softmax`" where it is an op.
    fn owner(&self) -> String {
        match self.path.strip_prefix("ops.") {
            Some(op) if !op.contains(['.', '[']) => format!("op `{op}`"),
            _ => self.name(),
        }
    }
}

/// Returns the key of a section that YAML 1.1 reads as a flag, as which `key` was written.
fn meant_in_yaml_1_1(key: &str, section: Section) -> Option<&'static str> {
    let words: &[&str] = match key {
        "false" | "False" => &["off", "no"],
        "true" | "True" => &["on", "yes"],
        _ => return None,
    };
    keys(section).find(|known| words.contains(known))
}

struct Conform<'faults> {
    faults: &'faults mut Vec<Fault>,
}

impl Conform<'_> {
    fn value(&mut self, node: &Node, kind: &Kind, spot: &Spot) {
        match (kind, &node.value) {
            (Kind::Either(kinds), _) => match kinds.iter().find(|kind| has_shape(kind, &node.value)) {
                Some(kind) => self.value(node, kind, spot),
                None => self.wrong_type(node, &Kind::Either(kinds), spot),
            },
            (Kind::Any, _) => self.any(node, spot),
            (Kind::Section(section), Value::Map(_)) => self.section(node, *section, spot),
            (Kind::Map { .. }, Value::Map(_)) => self.map(node, kind, spot),
            (Kind::List { .. } | Kind::Set { .. }, Value::List(_)) => self.list(node, kind, spot),
            (Kind::Form(form), Value::Text(text)) if !form.fits(text) => self.misformed(node, text, *form, spot),
            (Kind::OneOf(what, words), Value::Text(text)) => self.word(node.place, text, what, words),
            _ if !is_scalar_of(kind, &node.value) => self.wrong_type(node, kind, spot),
            _ => {}
        }
    }

    fn section(&mut self, node: &Node, section: Section, spot: &Spot) {
        if !matches!(node.value, Value::Map(_)) {
            return self.wrong_type(node, &Kind::Section(section), spot);
        }
        self.twice(node, |key| format!("key `{key}` is given twice in {}", spot.owner()));
        let mut misspelt = Vec::new();
        for entry in node.entries() {
            if let Some(field) = section.fields().find(|field| field.key == entry.key) {
                self.value(&entry.node, &field.kind, &spot.below(entry));
            } else {
                self.unknown_key(entry, section, spot);
                let meant = meant_in_yaml_1_1(&entry.key, section);
                misspelt.extend(meant.or_else(|| nearest(&entry.key, keys(section))));
            }
        }
        // A required key that was misspelt is one mistake, not two.
        let is_missing = |field: &&Field| node.get(field.key).is_none() && !misspelt.contains(&field.key);
        section.fields().filter(is_missing).for_each(|field| self.missing(field, spot));
    }

    fn unknown_key(&mut self, entry: &Entry, section: Section, spot: &Spot) {
        let fault = Fault::new(entry.place, format!("unknown key `{}` in {}", entry.key, spot.owner()));
        let hint = match meant_in_yaml_1_1(&entry.key, section) {
            Some(word) => {
                format!("write `{word}`: a program that knows YAML 1.1 alone takes it for a flag, and wrote that")
            }
            None => suggestion(&entry.key, keys(section)),
        };
        self.faults.push(fault.hint(hint));
    }

    fn missing(&mut self, field: &Field, spot: &Spot) {
        if let Absent::Never(example) = field.absent {
            let fault = Fault::new(spot.place, format!("{} has no {}", spot.owner(), field.key));
            self.faults.push(fault.hint(format!("add `{example}`")));
        }
    }

    fn map(&mut self, node: &Node, kind: &Kind, spot: &Spot) {
        let Kind::Map { what, key, of, least } = kind else { return };
        if node.entries().len() < *least {
            self.empty(spot);
        }
        self.twice(node, |key| format!("{what} `{key}` is declared twice"));
        for entry in node.entries() {
            self.name(entry, what, key);
            self.value(&entry.node, of, &spot.below(entry));
        }
    }

    fn name(&mut self, entry: &Entry, what: &str, kind: &Kind) {
        match kind {
            Kind::OneOf(what, words) => self.word(entry.place, &entry.key, what, words),
            Kind::Form(form) if !form.fits(&entry.key) => {
                let fault = Fault::new(entry.place, format!("{what} name `{}` is no {}", entry.key, form.words()));
                self.faults.push(fault.hint(form.hint(&entry.key)));
            }
            _ => {}
        }
    }

    fn list(&mut self, node: &Node, kind: &Kind, spot: &Spot) {
        let items = node.items();
        let (Kind::List { of, least, .. } | Kind::Set { of, least }) = kind else { return };
        let most = if let Kind::List { most, .. } = kind { *most } else { usize::MAX };
        if items.is_empty() && *least > 0 {
            self.empty(spot);
        } else if items.len() < *least || items.len() > most {
            self.wrong_type(node, kind, spot);
        }
        for (index, item) in items.iter().enumerate() {
            self.value(item, of, &spot.item(index, item));
        }
        if matches!(kind, Kind::Set { .. }) {
            self.repeated(items, spot);
        }
    }

    fn repeated(&mut self, items: &[Node], spot: &Spot) {
        let mut seen = BTreeSet::new();
        for (item, word) in items.iter().filter_map(|item| Some((item, item.text()?))) {
            if !seen.insert(word) {
                let fault = Fault::new(item.place, format!("`{word}` is given twice in `{}`", spot.path));
                self.faults.push(fault.hint("remove one of them"));
            }
        }
    }

    fn empty(&mut self, spot: &Spot) {
        let fault = Fault::new(spot.place, format!("`{}` is empty", spot.path));
        self.faults.push(fault.hint("add something to it, or remove the key"));
    }

    /// Looks for what JSON cannot hold.
    fn any(&mut self, node: &Node, spot: &Spot) {
        if let Value::Number(number) = node.value
            && !number.is_finite()
        {
            let fault = Fault::new(node.place, format!("`{}` is not finite", spot.path));
            self.faults.push(fault.hint("give such an argument in the op's `cases`"));
        }
        self.twice(node, |key| format!("key `{key}` is given twice in `{}`", spot.path));
        for entry in node.entries() {
            self.any(&entry.node, &spot.below(entry));
        }
        for (index, item) in node.items().iter().enumerate() {
            self.any(item, &spot.item(index, item));
        }
    }

    fn twice(&mut self, node: &Node, message: impl Fn(&str) -> String) {
        let mut first: BTreeMap<&str, Position> = BTreeMap::new();
        for entry in node.entries() {
            match first.get(entry.key.as_str()) {
                Some(place) => {
                    let fault = Fault::new(entry.place, message(&entry.key));
                    self.faults.push(fault.hint(format!("the first is in line {}", place.line)));
                }
                None => _ = first.insert(&entry.key, entry.place),
            }
        }
    }

    fn word(&mut self, place: Position, text: &str, what: &str, words: &[&'static str]) {
        if !words.contains(&text) {
            let fault = Fault::new(place, format!("unknown {what} `{text}`"));
            let hint = if what == "dtype" && INPUT_DTYPES.contains(&text) {
                format!(
                    "only an input has it, as in `x: {{shape: [M, N], dtype: {text}}}`: here stands what the op computes in"
                )
            } else {
                suggestion(text, words.iter().copied())
            };
            self.faults.push(fault.hint(hint));
        }
    }

    fn misformed(&mut self, node: &Node, text: &str, form: Form, spot: &Spot) {
        let fault = Fault::new(node.place, format!("`{}`: `{text}` is no {}", spot.path, form.words()));
        self.faults.push(fault.hint(form.hint(text)));
    }

    fn wrong_type(&mut self, node: &Node, kind: &Kind, spot: &Spot) {
        // Nothing has no place of its own to show, so its key is shown.
        let place = if node.value == Value::Nothing { spot.place } else { node.place };
        let fault = Fault::new(place, format!("{}: expected {kind}, found {}", spot.name(), found(&node.value)));
        self.faults.push(fault.hint(remedy(kind, &node.value)));
    }
}

fn keys(section: Section) -> impl Iterator<Item = &'static str> + Clone {
    section.fields().map(|field| field.key)
}

/// Returns how to write a value of this kind, where another was found.
fn remedy(kind: &Kind, found: &Value) -> String {
    match (kind, found) {
        (_, Value::Nothing) => "give a value, or remove the key".to_owned(),
        (Kind::Either(kinds), _) => remedy(&kinds[0], found),
        (Kind::Form(Form::Duration), Value::Whole(count)) => format!("write the unit: `{count}s`"),
        (Kind::Form(_), Value::Flag(_) | Value::Whole(_) | Value::Number(_)) => {
            "put it in quotes to make it a string".to_owned()
        }
        (Kind::Form(form), _) => form.hint(""),
        (Kind::OneOf(_, words), _) => format!("known: {}", quoted(words.iter().copied())),
        (Kind::Flag, _) => "write `true` or `false`, without quotes".to_owned(),
        (Kind::Whole(least), _) => format!("write it in digits, without quotes, such as `{}`", (*least).max(1)),
        (Kind::Number | Kind::Amount, _) => "write it without quotes, such as `0.5` or `1e-5`".to_owned(),
        (Kind::List { least: 2, most: 2, .. }, _) => "write two items: `[…, …]`".to_owned(),
        (Kind::List { .. } | Kind::Set { .. }, _) => "write a list: `[…]`".to_owned(),
        (Kind::Section(section), _) => format!("its keys are {}", quoted(keys(*section))),
        (Kind::Map { what, .. }, _) => format!("write a mapping by {what}: `{{…: …}}`"),
        (Kind::Any, _) => "write any value".to_owned(),
    }
}

/// Returns whether a value could be of this kind, judged by its outermost shape alone.
fn has_shape(kind: &Kind, value: &Value) -> bool {
    match value {
        Value::Map(_) => matches!(kind, Kind::Section(_) | Kind::Map { .. }),
        Value::List(_) => matches!(kind, Kind::List { .. } | Kind::Set { .. }),
        Value::Text(_) => matches!(kind, Kind::Form(_) | Kind::OneOf(..)),
        Value::Whole(_) | Value::Number(_) => matches!(kind, Kind::Whole(_) | Kind::Number | Kind::Amount),
        Value::Nothing | Value::Flag(_) => false,
    }
}

fn is_scalar_of(kind: &Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Whole(least), Value::Whole(whole)) => whole >= least,
        (Kind::Amount, Value::Whole(whole)) => *whole >= 0,
        (Kind::Amount, Value::Number(number)) => number.is_finite() && *number >= 0.0,
        (Kind::Number, Value::Number(number)) => number.is_finite(),
        (Kind::Flag, Value::Flag(_))
        | (Kind::Number, Value::Whole(_))
        | (Kind::Form(_) | Kind::OneOf(..), Value::Text(_)) => true,
        _ => false,
    }
}

fn found(value: &Value) -> String {
    match value {
        Value::Nothing => "nothing".to_owned(),
        Value::Flag(flag) => format!("`{flag}`"),
        Value::Whole(whole) => format!("integer `{whole}`"),
        Value::Number(number) => format!("number `{number:?}`"),
        Value::Text(text) => format!("string `{text}`"),
        Value::List(items) if items.is_empty() => "an empty list".to_owned(),
        Value::List(items) => format!("a list of {}", items.len()),
        Value::Map(_) => "a mapping".to_owned(),
    }
}
