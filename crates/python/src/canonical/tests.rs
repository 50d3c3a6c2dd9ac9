use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::Mod;
use ruff_python_ast::comparable::ComparableMod;
use ruff_python_parser::{Mode, ParseOptions, parse};

use super::corpus::CORPUS;
use super::nodes::{NODES, WORDS};
use super::{Canonical, Form, digest};

/// Parses `text`, in which commands of a notebook may stand: no kernel file has any, and nodes for them exist.
fn tree(text: &str) -> Option<Mod> {
    parse(text, ParseOptions::from(Mode::Ipython)).ok().map(ruff_python_parser::Parsed::into_syntax)
}

/// Returns the canonical form of `text`, which is short.
fn form(text: &str) -> Vec<u8> {
    let Some(Mod::Module(module)) = tree(text) else { panic!("{text}") };
    let mut form = Form::default();
    module.write(&mut form);
    form.pending
}

fn short(text: &str) -> String {
    let Some(Mod::Module(module)) = tree(text) else { panic!("{text}") };
    digest("", &module).to_string()[..16].to_owned()
}

#[test]
fn digests_stay_what_they_are() {
    let found: Vec<(&str, String)> = CORPUS.iter().map(|(text, _)| (*text, short(text))).collect();
    let expected: Vec<(&str, String)> = CORPUS.iter().map(|(text, digest)| (*text, (*digest).to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_form_is_that_of_the_table() {
    let expected = [
        &b"\x06module\x01\0\0\0"[..],
        b"\x06assign\x01\0\0\0\x04name\x01\0\0\0x",
        b"\x06binary\x04name\x01\0\0\0y\x01+\x06number\x03int\x02\0\0\0\0\0\0\0",
    ];
    assert_eq!(form("x = y + 2  # two\n"), expected.concat());
}

/// Returns the tag with its length before it.
fn tagged(tag: &str) -> Vec<u8> {
    [&[u8::try_from(tag.len()).unwrap()], tag.as_bytes()].concat()
}

#[test]
fn the_corpus_has_every_node_and_every_word() {
    let forms: Vec<u8> = CORPUS.iter().flat_map(|(text, _)| form(text)).collect();
    let has = |tag: &str| forms.windows(tag.len() + 1).any(|window| window == tagged(tag));
    let numbers = ["int", "large", "float", "complex"];
    // The empty tag is that of a field alone, which the oracle below covers.
    let words = WORDS.iter().flat_map(|(_, tags)| *tags).filter(|tag| !tag.is_empty());
    let missing: Vec<&&str> = NODES.iter().chain(&numbers).chain(words).filter(|tag| !has(tag)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn no_two_nodes_and_no_two_words_of_a_kind_have_one_tag() {
    for tags in WORDS.iter().map(|(_, tags)| *tags).chain([NODES]) {
        assert_eq!(tags.iter().collect::<BTreeSet<_>>().len(), tags.len(), "{tags:?}");
    }
}

/// Returns every text that is `text` with one character taken out, doubled, or another in its place.
fn edits(text: &str) -> Vec<String> {
    let places = || text.char_indices().map(|(at, letter)| (&text[..at], letter, &text[at + letter.len_utf8()..]));
    let without = places().map(|(before, _, after)| format!("{before}{after}"));
    let doubled = places().map(|(before, letter, after)| format!("{before}{letter}{letter}{after}"));
    let others = ['z', '7', ' ', '*', ':', ',', '-', '\'', '"'];
    let replaced = places().flat_map(|(before, _, after)| others.map(|other| format!("{before}{other}{after}")));
    without.chain(doubled).chain(replaced).collect()
}

/// The oracle is the parser's own comparison of trees, which knows nothing of the form.
#[test]
fn the_form_tells_apart_exactly_the_programs_that_differ() {
    let (mut compared, mut equal) = (0, 0);
    for (text, _) in CORPUS {
        let original = tree(text).unwrap();
        let own = form(text);
        for edited in edits(text) {
            let Some(other) = tree(&edited) else { continue };
            let same = ComparableMod::from(&original) == ComparableMod::from(&other);
            assert_eq!(own == form(&edited), same, "{text}\nand\n{edited}");
            compared += 1;
            equal += usize::from(same);
        }
    }
    assert!(compared > 5000 && equal > 500, "{equal} of {compared} are equal");
}

#[test]
fn no_two_programs_of_the_corpus_have_one_form() {
    let mut forms = BTreeMap::new();
    for (text, _) in CORPUS {
        assert_eq!(forms.insert(form(text), text), None, "{text}");
    }
}

#[test]
fn what_python_reads_alike_has_one_form() {
    for (one, other) in [
        ("x = 'a'\n", "x = \"a\"\n"),
        ("x = 'a'\n", "x = '''a'''\n"),
        ("x = 'ab'\n", "x = 'a' \"b\"\n"),
        ("x = r'a'\n", "x = u'a'\n"),
        ("x = f'a{b}'\n", "x = 'a' f\"\"f'''{b}'''\n"),
        ("x = b'ab'\n", "x = b'a' b\"b\"\n"),
        ("x = (1, 2)\n", "x = 1, 2\n"),
        ("f(x for x in y)\n", "f((x for x in y))\n"),
        ("x = 255\n", "x = 0xff\n"),
        ("x = 1_0.0\n", "x = 10.\n"),
        ("if x:\n    y\n", "# c\nif (x):\n\n  # d\n  y  # e\n"),
        ("x = f'{y=}'\n", "x = f\"{y=}\"\n"),
        ("x = 1; y = 2\n", "x = 1\r\ny = 2"),
    ] {
        assert_eq!(form(one), form(other), "{one} and {other}");
    }
}

#[test]
fn what_moves_between_fields_has_another_form() {
    for (one, other) in [
        ("x = 'a', 'b'\n", "x = 'ab',\n"),
        ("x = f'{a}b'\n", "x = f'b{a}'\n"),
        ("x = f'{y=}'\n", "x = f'{y =}'\n"),
        ("x = 'a'\n", "x = b'a'\n"),
        ("x = 'a'\n", "x = f'a'\n"),
        ("x = a[b:]\n", "x = a[:b]\n"),
        ("x = {a: b}\n", "x = {a, b}\n"),
        ("def f(a, /): 0\n", "def f(*, a): 0\n"),
        ("def f(*a): 0\n", "def f(**a): 0\n"),
        ("try: a\nexcept: b\nelse: c\n", "try: a\nexcept: b\nfinally: c\n"),
        ("from .a import b\n", "from ..a import b\n"),
        ("import a.b\n", "import a as b\n"),
        ("if a: b\nelif c: d\n", "if a: b\nelse:\n  if c: d\n"),
        ("x = 1\n", "x = 1.0\n"),
        ("x = 0.0\n", "x = -0.0\n"),
        ("x = -1\n", "x = not 1\n"),
        ("x: int = 1\n", "(x): int = 1\n"),
    ] {
        assert_ne!(form(one), form(other), "{one} and {other}");
    }
}
