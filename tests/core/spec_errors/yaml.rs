//! Files that are no YAML, or not the YAML that is read.
//!
//! It does not know what keys mean.

use std::fmt::Write;
use std::time::{Duration, Instant};

use t2t_spec::FILE_LIMIT;

use super::{errors_in, refused};

#[test]
fn a_key_is_given_once() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N], input: [M, N]}
    kwargs: {x: {a: 1, a: 2}}
    torch: add
";
    let expected = "\
error: ops.yaml:5:29: input `input` is declared twice
  |
5 |     inputs: {input: [M, N], input: [M, N]}
  |                             ^
hint: the first is in line 5

error: ops.yaml:6:24: key `a` is given twice in `ops.add.kwargs.x`
  |
6 |     kwargs: {x: {a: 1, a: 2}}
  |                        ^
hint: the first is in line 6

error: ops.yaml:7:5: key `torch` is given twice in op `add`
  |
7 |     torch: add
  |     ^
hint: the first is in line 4
";
    refused(text, expected);
}

#[test]
fn tags_merge_keys_and_odd_keys_are_refused() {
    let text = "\
version: 1
ops:
  add: &add {torch: !!str add, inputs: {input: [M, N]}}
  sub:
    <<: *add
    torch: sub
    inputs: {input: [M, N]}
    ? [a]
    : 1
";
    let expected = "\
error: ops.yaml:3:27: the tag `!!str` means nothing here
  |
3 |   add: &add {torch: !!str add, inputs: {input: [M, N]}}
  |                           ^
hint: remove it; quotes make a string

error: ops.yaml:5:5: merge keys (`<<`) are not part of YAML 1.2
  |
5 |     <<: *add
  |     ^
hint: put what ops share into `defaults`

error: ops.yaml:8:7: a key must be a word
  |
8 |     ? [a]
  |       ^
hint: write `key: value`
";
    refused(text, expected);
}

#[test]
fn a_syntax_error_has_a_place() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N}}
";
    let expected = "\
error: ops.yaml:3:37: not valid YAML: mismatched bracket '[' closed by '}'
  |
3 |   add: {torch: add, inputs: {input: [M, N}}
  |                                     ^
hint: look for indentation, brackets and quotes, here and in the line before
";
    refused(text, expected);
}

#[test]
fn tabs_do_not_indent() {
    let text = "\
version: 1
ops:
	add: 1
";
    let expected = "\
error: ops.yaml:3:2: not valid YAML: tabs disallowed within this context (block indentation)
  |
3 | 	add: 1
  | 	^
hint: indent with spaces
";
    refused(text, expected);
}

#[test]
fn an_alias_has_an_anchor() {
    let text = "\
version: 1
ops: *ops
";
    let expected = "\
error: ops.yaml:2:6: not valid YAML: while parsing node, found unknown anchor
  |
2 | ops: *ops
  |      ^
hint: an alias `*name` needs an anchor `&name` before it
";
    refused(text, expected);
}

#[test]
fn there_is_one_document() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N]}}
---
version: 1
";
    let expected = "\
error: ops.yaml:4:1: a second document begins
  |
4 | ---
  | ^
hint: ops.yaml is one document: remove `---`
";
    refused(text, expected);
}

#[test]
fn an_empty_file_is_told_how_to_begin() {
    let text = "";
    let expected = "\
error: ops.yaml:1:1: the file is empty
hint: begin with `version: 1`
";
    refused(text, expected);
}

#[test]
fn a_file_of_comments_is_empty() {
    let text = "\
# nothing yet
";
    let expected = "\
error: ops.yaml:1:1: the file is empty
  |
1 | # nothing yet
  | ^
hint: begin with `version: 1`
";
    refused(text, expected);
}

#[test]
fn a_file_that_is_no_mapping_is_told_its_keys() {
    let text = "\
- add
- softmax
";
    let expected = "\
error: ops.yaml:1:1: the file: expected file mapping, found a list of 2
  |
1 | - add
  | ^
hint: its keys are `version`, `targets`, `sources`, `log`, `cache`, `executor`, `trust`, `generators`, `jobs`, `budget`, `defaults`, `profiles`, `ops`
";
    refused(text, expected);
}

#[test]
fn another_version_is_the_only_error() {
    let text = "\
version: 2
kernels: 7
";
    let expected = "\
error: ops.yaml:1:10: version 2 is not supported
  |
1 | version: 2
  |          ^
hint: this t2t reads `version: 1`
";
    refused(text, expected);
}

#[test]
fn aliases_that_stand_for_a_gigabyte_are_refused_at_once() {
    let mut text = "version: 1\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..10 {
        let alias = format!("*a{}", level - 1);
        writeln!(text, "a{level}: &a{level} [{}]", [alias.as_str(); 10].join(", ")).unwrap();
    }
    let start = Instant::now();
    let expected = "\
error: ops.yaml:5:45: aliases stand for more than 10000 values
  |
5 | a3: &a3 [*a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2]
  |                                             ^
hint: write the values out, or put what ops share into `defaults`
";
    refused(&text, expected);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_file_that_is_not_utf8_shows_the_byte() {
    let expected = "\
error: ops.yaml:2:7: not UTF-8: byte 0xff at offset 17
  |
2 | ops: {\u{fffd}: 1}
  |       ^
hint: save the file as UTF-8
";
    let found = errors_in(b"version: 1\nops: {\xff: 1}\n");
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let found = errors_in(&vec![b' '; FILE_LIMIT + 1]);
    assert_eq!(
        found,
        "error: ops.yaml: the file has 16777217 bytes, more than the 16777216 that are read\nhint: split the repository, or move cases into `cases.py` files\n"
    );
}

#[test]
fn after_a_hundred_errors_the_rest_is_counted() {
    let ops: Vec<String> = (0..150).map(|number| format!("  op{number}: {{}}\n")).collect();
    let found = errors_in(format!("version: 1\nops:\n{}", ops.concat()).as_bytes());
    assert_eq!(found.matches("error: ").count(), 101);
    assert!(
        found.ends_with("error: ops.yaml:53:3: 200 more problems from here on\n   |\n53 |   op50: {}\n   |   ^\n"),
        "{found}"
    );
}
