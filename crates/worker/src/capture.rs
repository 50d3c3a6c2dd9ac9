//! Bounded output: the first and the last bytes of a stream of any length.
//!
//! It does not know where the bytes come from.

use t2t_protocol::Output;

/// The bytes that are kept at either end.
pub(crate) const KEPT: usize = 64 << 10;

/// Keeps both ends of a stream.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Capture {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * KEPT {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.tail.drain(..self.tail.len().saturating_sub(KEPT));
    }

    /// Returns how many bytes have come.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Ends the capture.
    pub(crate) fn finish(mut self) -> Output {
        self.shorten();
        let dropped = self.total - (self.head.len() + self.tail.len()) as u64;
        if dropped == 0 {
            // Together, so that a character on the border of the two is not torn.
            self.head.append(&mut self.tail);
        }
        Output { head: text(&self.head), tail: text(&self.tail), total: self.total, dropped }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
