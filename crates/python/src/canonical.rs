//! The canonical form of a syntax tree: bytes that t2t defines. Two programs have the same bytes if and only if their trees mean the same.
//!
//! Every node is a tag and its fields in the order of [`nodes`]; a tag is a text that never changes. Positions, comments, quotes and parentheses are in no field. Every
//! structure is taken apart whole and every enumeration is matched whole: what a new version of the parser adds does not compile until it has a place here. It does not
//! know what the bytes are for.
//!
//! | what | bytes |
//! | --- | --- |
//! | tag | u8 length, text |
//! | text, bytes | u32 length, bytes |
//! | list | u32 length, items |
//! | what may be missing | 0, or 1 and the value |
//! | truth | 0 or 1 |
//! | number | tag `int` and u64; tag `large` and the text as written; tag `float` or `complex` and the bits of one or two IEEE doubles |
//! | f-string, t-string | u32 count of interpolations, the text before each and the interpolation, the text after the last |
//!
//! Lengths and numbers are little-endian.

use ruff_python_ast::ModModule;
use t2t_model::digest::{Digest, Running};

#[cfg(test)]
mod corpus;
mod nodes;
mod strings;
#[cfg(test)]
mod tests;

/// Returns the digest of `header` and the canonical form of `module`.
pub(crate) fn digest(header: &str, module: &ModModule) -> Digest {
    let mut form = Form::default();
    form.bytes(header.as_bytes());
    module.write(&mut form);
    form.running.add(&form.pending);
    form.running.digest()
}

/// How many bytes wait before they are hashed.
const PENDING: usize = 1 << 16;

/// A canonical form that is hashed piece by piece: it is longer than the file, and never whole in memory.
#[derive(Default)]
struct Form {
    running: Running,
    pending: Vec<u8>,
}

impl Form {
    fn bytes(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PENDING {
            self.running.add(&self.pending);
            self.pending.clear();
        }
    }

    fn tag(&mut self, tag: &str) {
        self.bytes(&[u8::try_from(tag.len()).expect("a tag is short")]);
        self.bytes(tag.as_bytes());
    }

    fn length(&mut self, length: usize) {
        self.number(u32::try_from(length).expect("a file is shorter than 4 GiB"));
    }

    fn number(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }
}

/// What has a canonical form.
trait Canonical {
    /// Appends the canonical form.
    fn write(&self, form: &mut Form);
}

impl<T: Canonical + ?Sized> Canonical for Box<T> {
    fn write(&self, form: &mut Form) {
        (**self).write(form);
    }
}

impl<T: Canonical> Canonical for Option<T> {
    fn write(&self, form: &mut Form) {
        self.is_some().write(form);
        if let Some(value) = self {
            value.write(form);
        }
    }
}

impl<T: Canonical> Canonical for [T] {
    fn write(&self, form: &mut Form) {
        form.length(self.len());
        for item in self {
            item.write(form);
        }
    }
}

impl Canonical for [u8] {
    fn write(&self, form: &mut Form) {
        form.length(self.len());
        form.bytes(self);
    }
}

impl Canonical for str {
    fn write(&self, form: &mut Form) {
        self.as_bytes().write(form);
    }
}

impl Canonical for bool {
    fn write(&self, form: &mut Form) {
        form.bytes(&[u8::from(*self)]);
    }
}

impl Canonical for u32 {
    fn write(&self, form: &mut Form) {
        form.number(*self);
    }
}
