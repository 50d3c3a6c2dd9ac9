//! The lexer: the tokens of a C++ file before its macros are replaced, as the standard parts a text into them (\[lex.phases\], \[lex.pptoken\]).
//!
//! It joins lines that end in a backslash, but for those of raw strings, and knows CUDA's `<<<` and `>>>`. It does not know what a token means.

use std::borrow::Cow;

/// The kind of a token. The numbers are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// An identifier or a keyword.
    Word = 1,
    /// A number.
    Number = 2,
    /// A string, a character, or the file of an `#include`, as written.
    Literal = 3,
    /// An operator, or anything else.
    Sign = 4,
    /// The `#` that begins a directive.
    Directive = 5,
    /// The end of a directive's line.
    End = 6,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Its bytes. Those of a raw string are as written; of others the joints of lines are left out.
    pub(crate) text: Cow<'a, [u8]>,
    /// Whether whitespace or a comment stands before it.
    pub(crate) is_spaced: bool,
    /// Whether it stands in a directive, after its name.
    pub(crate) is_inside: bool,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// What begins a raw string.
const RAW: [&[u8]; 5] = [b"R", b"LR", b"uR", b"UR", b"u8R"];

/// What may stand before a string or a character.
const PREFIXES: [&[u8]; 4] = [b"L", b"u", b"U", b"u8"];

/// The signs of more than one character, long ones first.
const SIGNS: [&[u8]; 34] = [
    b"%:%:", b"<<<", b">>>", b"<<=", b">>=", b"...", b"->*", b"<=>", b"::", b".*", b"->", b"++", b"--", b"<<", b">>",
    b"<=", b">=", b"==", b"!=", b"&&", b"||", b"+=", b"-=", b"*=", b"/=", b"%=", b"^=", b"&=", b"|=", b"##", b"<%",
    b"%>", b"<:", b":>",
];

/// Directives after which `<` begins the name of a file.
const INCLUDES: [&[u8]; 3] = [b"include", b"include_next", b"import"];

/// Returns the tokens of `bytes`.
pub(crate) fn tokens(bytes: &[u8]) -> Vec<Token<'_>> {
    let mut lexer = Lexer::of(bytes);
    while lexer.next() {}
    lexer.found
}

/// Where the lexer is in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing but whitespace stands before.
    Start,
    /// In a directive, before its name.
    Name,
    /// In a directive that includes a file, before that.
    Header,
    /// Elsewhere in a directive.
    Directive,
    /// In any other line.
    Code,
}

impl Place {
    fn is_directive(self) -> bool {
        matches!(self, Self::Name | Self::Header | Self::Directive)
    }
}

struct Lexer<'a> {
    /// The file.
    written: &'a [u8],
    /// The file with its lines joined.
    joined: Vec<u8>,
    /// Where each byte of `joined` stands in `written`, and at last its end.
    places: Vec<usize>,
    /// The line of the last token, and where its line was counted up to.
    counted: (usize, usize),
    at: usize,
    place: Place,
    is_spaced: bool,
    found: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn of(written: &'a [u8]) -> Self {
        let (mut joined, mut places) = (Vec::with_capacity(written.len()), Vec::with_capacity(written.len() + 1));
        let mut at = 0;
        while at < written.len() {
            if let Some(length) = joint(&written[at..]) {
                at += length;
                continue;
            }
            joined.push(written[at]);
            places.push(at);
            at += 1;
        }
        places.push(written.len());
        let (place, found) = (Place::Start, Vec::new());
        Self { written, joined, places, counted: (1, 0), at: 0, place, is_spaced: false, found }
    }

    fn rest(&self) -> &[u8] {
        &self.joined[self.at..]
    }

    /// Takes the next token, comment or whitespace. Returns whether there was one.
    fn next(&mut self) -> bool {
        let rest = self.rest();
        let Some(&first) = rest.first() else {
            self.end_line();
            return false;
        };
        match first {
            b'\n' => {
                self.end_line();
                self.skip(1);
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.skip(1),
            b'/' if rest.starts_with(b"//") => {
                let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                self.skip(length);
            }
            b'/' if rest.starts_with(b"/*") => {
                let end = rest[2..].windows(2).position(|pair| pair == b"*/");
                let length = end.map_or(rest.len(), |end| end + 4);
                self.skip(length);
            }
            _ => self.token(first),
        }
        true
    }

    fn skip(&mut self, length: usize) {
        self.at += length;
        self.is_spaced = true;
    }

    fn end_line(&mut self) {
        if self.place.is_directive() {
            self.push(Kind::End, Cow::Borrowed(b""));
        }
        self.place = Place::Start;
    }

    fn token(&mut self, first: u8) {
        let rest = self.rest();
        let is_number = first.is_ascii_digit() || (first == b'.' && rest.get(1).is_some_and(u8::is_ascii_digit));
        if self.place == Place::Start && (first == b'#' || rest.starts_with(b"%:")) {
            let length = if first == b'#' { 1 } else { 2 };
            self.take(Kind::Directive, length);
        } else if self.place == Place::Header && first == b'<' {
            let length = rest.iter().position(|byte| matches!(byte, b'>' | b'\n')).map_or(rest.len(), |end| end + 1);
            self.take(Kind::Literal, length);
        } else if is_number {
            let length = number(rest);
            self.take(Kind::Number, length);
        } else if is_word(first) {
            self.word();
        } else if matches!(first, b'"' | b'\'') {
            let length = literal(rest, 0, self.place == Place::Header);
            self.take(Kind::Literal, length);
        } else {
            let length = sign(rest);
            self.take(Kind::Sign, length);
        }
    }

    /// Takes a word, or the string or character that it is the beginning of.
    fn word(&mut self) {
        let rest = self.rest();
        let length = word(rest);
        let (name, quote) = (&rest[..length], rest.get(length));
        if quote == Some(&b'"') && RAW.contains(&name) {
            self.raw(length);
        } else if matches!(quote, Some(b'"' | b'\'')) && PREFIXES.contains(&name) {
            let length = literal(rest, length, false);
            self.take(Kind::Literal, length);
        } else {
            self.take(Kind::Word, length);
        }
    }

    /// Takes a raw string, whose quote stands after `prefix` bytes: as written, with its lines as they are.
    fn raw(&mut self, prefix: usize) {
        let (start, quote) = (self.places[self.at], self.places[self.at + prefix]);
        let body = &self.written[quote + 1..];
        let open = body.iter().position(|byte| *byte == b'(');
        let closing = open.map(|open| [b")", &body[..open], b"\""].concat());
        let close = closing.and_then(|closing| {
            let after = body.windows(closing.len()).position(|window| window == closing)?;
            Some(quote + 1 + after + closing.len())
        });
        // One that does not end is for the compiler to refuse.
        let close = close.unwrap_or(self.written.len());
        let past = self.places.partition_point(|place| *place < close);
        let suffix = word(&self.joined[past.min(self.joined.len())..]);
        let end = self.places[past + suffix];
        let text = Cow::Borrowed(&self.written[start..end]);
        self.push(Kind::Literal, text);
        self.at = past + suffix;
    }

    fn take(&mut self, kind: Kind, length: usize) {
        let text = Cow::Owned(self.rest()[..length].to_vec());
        self.push(kind, text);
        self.at += length;
    }

    fn push(&mut self, kind: Kind, text: Cow<'a, [u8]>) {
        let start = self.places[self.at];
        let (line, counted) = self.counted;
        self.counted = (line + self.written[counted..start].split(|byte| *byte == b'\n').skip(1).count(), start);
        let place = self.place;
        self.place = match place {
            Place::Start if kind == Kind::Directive => Place::Name,
            Place::Name if INCLUDES.contains(&&*text) => Place::Header,
            Place::Name | Place::Header | Place::Directive => Place::Directive,
            Place::Start | Place::Code => Place::Code,
        };
        let is_inside = matches!(place, Place::Header | Place::Directive) && kind != Kind::End;
        self.found.push(Token { kind, text, is_spaced: self.is_spaced, is_inside, line: self.counted.0 });
        self.is_spaced = false;
    }
}

/// Returns how long the joint of two lines is that `rest` begins with: a backslash and the end of its line. Compilers pass over blanks between the two.
fn joint(rest: &[u8]) -> Option<usize> {
    let after = rest.strip_prefix(b"\\")?;
    let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)).count();
    (after.get(blanks) == Some(&b'\n')).then_some(blanks + 2)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Returns how long the word is that `rest` begins with.
fn word(rest: &[u8]) -> usize {
    rest.iter().take_while(|byte| is_word(**byte)).count()
}

/// Returns how long the number is that `rest` begins with, in the wide sense of the standard: `1e+5`, `0x1p-3`, `1'000`, `1.f`.
fn number(rest: &[u8]) -> usize {
    let mut length = 1;
    while let Some(&byte) = rest.get(length) {
        let is_sign = matches!(byte, b'+' | b'-') && matches!(rest[length - 1], b'e' | b'E' | b'p' | b'P');
        let is_mark = byte == b'\'' && rest.get(length + 1).is_some_and(|next| is_word(*next));
        if !(is_word(byte) || byte == b'.' || is_sign || is_mark) {
            break;
        }
        length += 1;
    }
    length
}

/// Returns how long the string or character is whose quote stands after `prefix` bytes, with the suffix that makes it one of somebody's own type. One that does not
/// end goes to the end of its line. In the name of a file (`is_plain`) a backslash is a character like any other.
fn literal(rest: &[u8], prefix: usize, is_plain: bool) -> usize {
    let quote = rest[prefix];
    let mut at = prefix + 1;
    while let Some(&byte) = rest.get(at) {
        if byte == b'\n' {
            return at;
        }
        at += 1 + usize::from(byte == b'\\' && !is_plain && rest.get(at + 1).is_some_and(|next| *next != b'\n'));
        if byte == quote {
            return at + word(&rest[at..]);
        }
    }
    rest.len()
}

/// Returns how long the sign is that `rest` begins with.
fn sign(rest: &[u8]) -> usize {
    // `<::x` is `<` and `::x`, though `<:` is `[`.
    if rest.starts_with(b"<::") && !matches!(rest.get(3), Some(b':' | b'>')) {
        return 1;
    }
    let of = |sign: &&[u8]| rest.starts_with(sign);
    SIGNS.into_iter().find(of).map_or(1, <[u8]>::len)
}
