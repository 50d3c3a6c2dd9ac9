//! Reads YAML into the tree of [`node`](super::node), in which every key and every value knows its place.
//!
//! It knows YAML 1.2 and nothing of ops.yaml: names, types and defaults are the business of the modules beside it.
//!
//! The tree is built from the events of granit-parser and not through serde: serde stops at
//! the first mistake, and its maps lose the places of keys and the second of two equal keys. All of that is wanted here.

use std::collections::BTreeMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use t2t_model::problem::Position;

use super::fault::Fault;
use super::node::{Entry, Node, Value};

/// How deep lists and mappings may nest, aliases expanded. The schema itself needs 6 levels; the rest is for kwargs.
const DEPTH_LIMIT: usize = 64;

/// How many values aliases may add to a file. The tree is walked as if they had been written out.
const ALIAS_LIMIT: usize = 10_000;

/// Reads the one document in `text`. An empty file is `Value::Nothing`.
///
/// Faults after which reading can go on (a tag, a key that is no word) go to `faults`.
///
/// # Errors
/// A fault after which nothing can be read: a syntax error, or aliases without end.
pub(super) fn parse(text: &str, faults: &mut Vec<Fault>) -> Result<Node, Fault> {
    let options = granit_parser::options! { disallow_directives: true };
    let events = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { events, anchors: BTreeMap::new(), expanded: 0, faults };
    reader.document()
}

struct Reader<'text, 'faults> {
    events: Parser<'text, StrInput<'text>>,
    anchors: BTreeMap<usize, Node>,
    expanded: usize,
    faults: &'faults mut Vec<Fault>,
}

impl<'text> Reader<'text, '_> {
    fn document(&mut self) -> Result<Node, Fault> {
        let mut root = Node { place: Position { line: 1, column: 1 }, value: Value::Nothing };
        let mut documents = 0;
        loop {
            let (event, place) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(..) if documents > 0 => {
                    return Err(
                        Fault::new(place, "a second document begins").hint("ops.yaml is one document: remove `---`")
                    );
                }
                Event::DocumentStart(..) => documents += 1,
                Event::StreamStart | Event::DocumentEnd => {}
                event => root = self.node(event, place, 1)?,
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'text>, Position), Fault> {
        loop {
            return match self.events.next_event() {
                // Comments are events: serde-saphyr, by which tests read YAML, asks that of the parser, and both are built together.
                Some(Ok((Event::Comment(..), _))) => continue,
                Some(Ok((event, span))) => Ok((event, place(&span))),
                Some(Err(error)) => Err(syntax(&error)),
                None => Ok((Event::StreamEnd, Position { line: 1, column: 1 })),
            };
        }
    }

    /// Returns the next event inside a collection, which the parser always closes before the stream ends.
    fn inner(&mut self) -> Result<(Event<'text>, Position), Fault> {
        match self.next()? {
            (Event::StreamEnd, place) => Err(Fault::new(place, "the file ends inside a collection")),
            other => Ok(other),
        }
    }

    fn node(&mut self, event: Event<'text>, place: Position, depth: usize) -> Result<Node, Fault> {
        if depth > DEPTH_LIMIT {
            return Err(too_deep(place));
        }
        let (anchor, value) = match event {
            Event::Alias(anchor) => return self.alias(anchor, place, depth),
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), place);
                (anchor, scalar(&text, style))
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), place);
                (anchor, self.list(depth)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), place);
                (anchor, self.map(depth)?)
            }
            _ => (0, Value::Nothing),
        };
        let node = Node { place, value };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Copies the alias's value, after counting it: nine lines of aliases to aliases can expand to a gigabyte.
    fn alias(&mut self, anchor: usize, place: Position, depth: usize) -> Result<Node, Fault> {
        // An anchor is entered once its node is complete, so an alias inside of that node finds none. The parser refuses unknown anchors.
        let Some(target) = self.anchors.get(&anchor) else {
            return Err(Fault::new(place, "an alias refers to a value that contains it").hint("write the value out"));
        };
        self.expanded += target.count();
        if self.expanded > ALIAS_LIMIT {
            let fault = Fault::new(place, format!("aliases stand for more than {ALIAS_LIMIT} values"));
            return Err(fault.hint("write the values out, or put what ops share into `defaults`"));
        }
        if depth + target.height() > DEPTH_LIMIT {
            return Err(too_deep(place));
        }
        Ok(target.clone())
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        loop {
            match self.inner()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, place) => items.push(self.node(event, place, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut entries = Vec::new();
        loop {
            let (event, place) = self.inner()?;
            if event == Event::MappingEnd {
                return Ok(Value::Map(entries));
            }
            let key = self.key(event, place, depth)?;
            let (event, value_place) = self.inner()?;
            let node = self.node(event, value_place, depth + 1)?;
            if let Some(key) = key {
                entries.push(Entry { key, place, node });
            }
        }
    }

    /// Reads a key. Keys are words as written, whatever they would mean as values: `1` and `no` are fine.
    fn key(&mut self, event: Event<'text>, place: Position, depth: usize) -> Result<Option<String>, Fault> {
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<" => {
                let fault = Fault::new(place, "merge keys (`<<`) are not part of YAML 1.2");
                self.faults.push(fault.hint("put what ops share into `defaults`"));
                Ok(None)
            }
            Event::Scalar(text, ..) => Ok(Some(text.into_owned())),
            event => {
                self.node(event, place, depth + 1)?;
                self.faults.push(Fault::new(place, "a key must be a word").hint("write `key: value`"));
                Ok(None)
            }
        }
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, place: Position) {
        if let Some(tag) = tag {
            let fault = Fault::new(place, format!("the tag `{}` means nothing here", tag.original()));
            self.faults.push(fault.hint("remove it; quotes make a string"));
        }
    }
}

fn place(span: &Span) -> Position {
    place_of(&span.start)
}

fn place_of(marker: &granit_parser::Marker) -> Position {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Position { line: number(marker.line()), column: number(marker.col() + 1) }
}

fn too_deep(place: Position) -> Fault {
    Fault::new(place, format!("values nest deeper than {DEPTH_LIMIT} levels")).hint("close some brackets")
}

fn syntax(error: &ScanError) -> Fault {
    let hint = match error.kind() {
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation => "indent with spaces",
        ErrorKind::UnknownAnchor => "an alias `*name` needs an anchor `&name` before it",
        ErrorKind::DirectiveDisallowed => "remove the line",
        _ => "look for indentation, brackets and quotes, here and in the line before",
    };
    Fault::new(place_of(error.marker()), format!("not valid YAML: {}", error.info())).hint(hint)
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Nothing,
        "true" | "True" | "TRUE" => Value::Flag(true),
        "false" | "False" | "FALSE" => Value::Flag(false),
        _ => number(text).unwrap_or_else(|| Value::Text(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = [("0x", 16), ("0o", 8)].into_iter().find_map(|(prefix, radix)| {
        let digits = text.strip_prefix(prefix)?;
        digits.chars().all(|c| c.is_digit(radix)).then(|| i64::from_str_radix(digits, radix))
    });
    match (radix, digits) {
        (Some(whole), _) => whole.ok().map(Value::Whole),
        (None, ".inf" | ".Inf" | ".INF") if text.starts_with('-') => Some(Value::Number(f64::NEG_INFINITY)),
        (None, ".inf" | ".Inf" | ".INF") => Some(Value::Number(f64::INFINITY)),
        (None, ".nan" | ".NaN" | ".NAN") => Some(Value::Number(f64::NAN)),
        (None, _) => decimal(text, digits),
    }
}

/// Reads a decimal number; the first test keeps Rust's own words (`inf`, `nan`, `infinity`) text.
fn decimal(text: &str, digits: &str) -> Option<Value> {
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let whole = text.parse().map(Value::Whole);
    whole.ok().or_else(|| text.parse().map(Value::Number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Node {
        let mut faults = Vec::new();
        let node = parse(text, &mut faults).unwrap();
        assert_eq!(faults, []);
        node
    }

    fn value(text: &str) -> Value {
        read(text).value
    }

    #[test]
    fn plain_words_resolve_as_yaml_1_2_says() {
        for word in ["no", "yes", "on", "N", "inf", "nan", "1_000", "0b1", ".", "-", "1.2.3", "0x", "12:30", "e5"] {
            let expected = if word == "-" { continue } else { Value::Text(word.to_owned()) };
            assert_eq!(
                value(&format!("[{word}]")),
                Value::List(vec![Node { place: Position { line: 1, column: 2 }, value: expected }]),
                "{word}"
            );
        }
        assert_eq!(value("true"), Value::Flag(true));
        assert_eq!(value("~"), Value::Nothing);
        assert_eq!(value("'true'"), Value::Text("true".to_owned()));
    }

    #[test]
    fn numbers_resolve_as_yaml_1_2_says() {
        for (text, whole) in [("7", 7), ("-7", -7), ("+7", 7), ("007", 7), ("0x1f", 31), ("0o17", 15)] {
            assert_eq!(value(text), Value::Whole(whole), "{text}");
        }
        for (text, number) in
            [("1e-5", 1e-5), ("1.0e-5", 1e-5), (".5", 0.5), ("-1.", -1.0), ("-.inf", f64::NEG_INFINITY)]
        {
            assert_eq!(value(text), Value::Number(number), "{text}");
        }
    }

    #[test]
    fn keys_and_values_know_their_places() {
        let root = read("ops:\n  softmax: {torch: é, inputs: 3}\n");
        let softmax = root.get("ops").unwrap().entries()[0].clone();
        assert_eq!(softmax.place, Position { line: 2, column: 3 });
        assert_eq!(softmax.node.place, Position { line: 2, column: 12 });
        assert_eq!(softmax.node.entries()[1].place, Position { line: 2, column: 23 });
        assert_eq!(softmax.node.get("inputs").unwrap().place, Position { line: 2, column: 31 });
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_key() {
        assert_eq!(read("\u{feff}version: 1").entries()[0].key, "version");
    }

    #[test]
    fn aliases_are_copies() {
        let root = read("a: &x [1, 2]\nb: *x\n");
        assert_eq!(root.get("a"), root.get("b"));
    }

    #[test]
    fn deep_nesting_is_a_fault_and_no_overflow() {
        assert!(parse(&"[".repeat(100_000), &mut Vec::new()).is_err());
        let fault = parse(&format!("{}{}", "[".repeat(70), "]".repeat(70)), &mut Vec::new()).unwrap_err();
        assert_eq!(fault, too_deep(Position { line: 1, column: 65 }));
    }

    #[test]
    fn aliases_do_not_get_around_the_depth_limit() {
        let deep =
            format!("a: &a {}1{}\nb: &b {}*a{}\n", "[".repeat(40), "]".repeat(40), "[".repeat(40), "]".repeat(40));
        assert_eq!(parse(&deep, &mut Vec::new()).unwrap_err().message, "values nest deeper than 64 levels");
    }
}
