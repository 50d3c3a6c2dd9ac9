//! The lines of MLIR and of PTX: what is shown of each, what of it is code, and which places of the source it names.
//!
//! It does not know files, nor what a place means.

use std::collections::{BTreeMap, BTreeSet};

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: u32,
}

/// A line of a stage.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    /// The line without its places.
    pub(super) shown: String,
    /// What another compile has to have as well: values are numbered anew, comments and places left out. Empty where it is no code.
    pub(super) code: String,
    pub(super) places: BTreeSet<Place>,
}

/// Returns the lines of MLIR but for those that define places.
pub(super) fn mlir(text: &str) -> Vec<Line> {
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("#loc")) {
        if let Some((name, told)) = line.split_once(" = ") {
            named.insert(name, told);
        }
    }
    let mut numbers = Numbers::default();
    let lines = text.lines().filter(|line| !line.starts_with("#loc"));
    lines
        .map(|line| {
            let mut places = BTreeSet::new();
            let mut bare = String::new();
            let mut rest = line;
            while let Some(at) = rest.find(" loc(") {
                let end = at + " loc".len() + closed(&rest[at + " loc".len()..]);
                resolve(&rest[at..end], &named, &mut places, 0);
                bare += &rest[..at];
                rest = &rest[end..];
            }
            bare += rest;
            Line { code: numbered(bare.trim(), &mut numbers), shown: bare, places }
        })
        .collect()
}

/// Returns how many bytes the text in parentheses has that `text` begins with.
fn closed(text: &str) -> usize {
    let (mut depth, mut is_quoted) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Adds the places that `told` names, by itself and by the names in it. Names in a circle end.
fn resolve(told: &str, named: &BTreeMap<&str, &str>, places: &mut BTreeSet<Place>, depth: usize) {
    const DEEPEST: usize = 16;
    // A path stands between quotes, then its line: "/a/b.py":27:19.
    let parts: Vec<&str> = told.split('"').collect();
    for pair in parts.windows(2).skip(1).step_by(2) {
        let line = pair[1].strip_prefix(':').and_then(|rest| rest.split(':').next()?.parse().ok());
        if let Some(line) = line {
            places.insert(Place { file: pair[0].to_owned(), line });
        }
    }
    for name in told.split("#loc").skip(1) {
        let digits = name.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(name.len());
        let name = format!("#loc{}", &name[..digits]);
        if let Some(more) = named.get(name.as_str()).filter(|_| depth < DEEPEST) {
            resolve(more, named, places, depth + 1);
        }
    }
}

/// The numbers of values. A compile with lines calls them after variables, and names come again in other regions: what is defined has a new number.
#[derive(Default)]
struct Numbers {
    known: BTreeMap<String, usize>,
    next: usize,
}

impl Numbers {
    fn of(&mut self, name: &str, is_defined: bool) -> usize {
        if !is_defined && let Some(known) = self.known.get(name) {
            return *known;
        }
        self.next += 1;
        self.known.insert(name.to_owned(), self.next);
        self.next
    }
}

/// Returns a line whose values have numbers in the order in which the text defines them.
fn numbered(line: &str, numbers: &mut Numbers) -> String {
    let mut told = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('%') {
        let after = &rest[at + 1..];
        let end =
            after.find(|letter: char| !(letter.is_alphanumeric() || "_$.".contains(letter))).unwrap_or(after.len());
        told += &rest[..at];
        told += &format!("%{}", numbers.of(&after[..end], is_definition(&after[end..])));
        rest = &after[end..];
    }
    told + rest
}

/// Returns whether a name that `rest` follows is defined there: as a result (`%1 = `, `%1:2 = `), or as an argument of a block (`%x: f32`).
fn is_definition(rest: &str) -> bool {
    let counted = rest.strip_prefix(':').map(|rest| rest.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    rest.starts_with(" = ") || rest.starts_with(": ") || counted.is_some_and(|rest| rest.starts_with(" = "))
}

/// Returns the lines of PTX but for those that say places, and without what debuggers read.
pub(super) fn ptx(text: &str) -> Vec<Line> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        if let Some(told) = line.trim_start().strip_prefix(".file") {
            let number = told.split_whitespace().next().unwrap_or_default();
            let quoted: Vec<&str> = told.split('"').skip(1).step_by(2).collect();
            files.insert(number, quoted.join("/"));
        }
    }
    let mut here = BTreeSet::new();
    let mut lines = Vec::new();
    for line in text.lines().take_while(|line| !line.trim_start().starts_with(".section")) {
        let told = line.trim_start();
        if let Some(told) = told.strip_prefix(".loc") {
            here = said(told, &files);
            continue;
        }
        let code = told.split("//").next().unwrap_or_default().trim_end();
        if told.starts_with(".file") || is_label_of_debuggers(code) {
            continue;
        }
        let is_instruction = line.starts_with('\t') && code.ends_with(';') && !code.starts_with('.');
        let places = if is_instruction { here.clone() } else { BTreeSet::new() };
        lines.push(Line { shown: line.to_owned(), code: code.replace(", debug", ""), places });
    }
    lines
}

/// Returns whether a line is a label that only tables for debuggers name.
fn is_label_of_debuggers(code: &str) -> bool {
    ["$L__tmp", "$L__func"].iter().any(|label| code.starts_with(label)) && code.ends_with(':')
}

/// Returns the places of a `.loc`: its own, and that of the call which was inlined.
fn said(told: &str, files: &BTreeMap<&str, String>) -> BTreeSet<Place> {
    let place = |told: &str| {
        let mut words = told.split_whitespace();
        let file = files.get(words.next()?)?.clone();
        Some(Place { file, line: words.next()?.parse().ok().filter(|line| *line > 0)? })
    };
    let call = told.split("inlined_at").nth(1);
    [Some(told), call].into_iter().flatten().filter_map(place).collect()
}
