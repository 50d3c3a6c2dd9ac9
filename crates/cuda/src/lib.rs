//! What t2t reads off a CUDA C++ file without compiling it: its meaning, and the files that it includes.
//!
//! The meaning is the sequence of tokens, so comments and whitespace between tokens have none. It does not know where files lie, nor what a macro stands for.

use t2t_model::digest::Digest;

mod lexer;
pub mod closure;

use self::lexer::{Kind, Token, tokens};

/// Stands before the tokens that are hashed; a new number makes all results of CUDA C++ a miss. 1: first.
const HEADER: &[u8] = b"t2t cuda 1\n";

/// The word that stands for the number of its line.
const LINE: &[u8] = b"__LINE__";

/// How the headers begin that a file of an extension of torch's includes.
const TORCH: [&str; 6] = ["torch/", "ATen/", "c10/", "caffe2/", "pybind11/", "Python.h"];

/// What is known of a CUDA C++ file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaFile {
    /// The digest of its tokens.
    meaning: Digest,
    /// The digest of its tokens, and of where whitespace parts them: a macro that makes a text of its argument shows it.
    spaced: Digest,
    /// Whether it defines such a macro.
    is_stringizing: bool,
    /// What it includes between quotes, in order. Angle brackets name files of the compiler.
    includes: Vec<String>,
    /// Whether it includes a header of torch's, or one that torch's include: then it is part of an extension of torch's.
    includes_torch: bool,
}

/// Reads `bytes` as CUDA C++. Never fails: what is no token is one byte after another, for the compiler to refuse.
#[must_use]
pub fn read(bytes: &[u8]) -> CudaFile {
    let tokens = tokens(bytes);
    CudaFile {
        meaning: digest(&tokens, Spaces::OfDirectives),
        spaced: digest(&tokens, Spaces::All),
        is_stringizing: lines(&tokens).any(is_stringizing),
        includes: lines(&tokens).filter_map(|line| included(line)?.strip_prefix('"').map(str::to_owned)).collect(),
        includes_torch: lines(&tokens)
            .filter_map(included)
            .any(|file| TORCH.iter().any(|own| file[1..].starts_with(own))),
    }
}

/// Which whitespace is hashed, as being there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spaces {
    /// That inside of directives: `#define F (x)` is no macro with a parameter.
    OfDirectives,
    /// All.
    All,
}

fn digest(tokens: &[Token<'_>], spaces: Spaces) -> Digest {
    let mut bytes = HEADER.to_vec();
    for token in tokens {
        let is_hashed = token.is_spaced && (spaces == Spaces::All || token.is_inside);
        bytes.extend([token.kind as u8, u8::from(is_hashed)]);
        put(&mut bytes, &token.text);
        if *token.text == *LINE {
            put(&mut bytes, token.line.to_string().as_bytes());
        }
    }
    Digest::of(&bytes)
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(text);
}

/// Yields the directives, each as its tokens after `#`.
fn lines<'a>(tokens: &'a [Token<'a>]) -> impl Iterator<Item = &'a [Token<'a>]> {
    let starts = tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Directive);
    starts.map(|(start, _)| {
        let rest = &tokens[start + 1..];
        let end = rest.iter().position(|token| token.kind == Kind::End).unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Tells whether a directive defines a macro that makes a text of what it is given.
fn is_stringizing(line: &[Token<'_>]) -> bool {
    let [name, rest @ ..] = line else { return false };
    let is_operator = |token: &Token<'_>| token.kind == Kind::Sign && matches!(&*token.text, b"#" | b"%:");
    *name.text == *b"define" && rest.iter().any(is_operator)
}

/// Returns the file that a directive includes, behind the `"` or `<` that stands before it.
fn included<'a>(line: &'a [Token<'_>]) -> Option<&'a str> {
    let [name, file, ..] = line else { return None };
    let text = std::str::from_utf8(&file.text).ok()?;
    let named = text.strip_suffix(if text.starts_with('<') { '>' } else { '"' })?;
    let is_one = named.starts_with(['"', '<']) && matches!(&*name.text, b"include" | b"include_next" | b"import");
    is_one.then_some(named)
}
