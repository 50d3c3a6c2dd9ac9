//! An index of the journal by key: where the records of each key stand, in so few bytes that a whole build can afford to keep it.
//!
//! An entry has the first bytes of its key alone: whoever reads the line sees whether it is of the key. It does not know what records say.

use std::borrow::Cow;

use t2t_model::digest::Digest;

use crate::store::journal::LinePlace;

/// How many bytes of a key an entry has.
const START: usize = 8;

/// How many bytes an entry has: the start of its key, the offset and the length of its line.
const ENTRY: usize = START + 8 + 4;

/// Where the records of each key stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyIndex<'a>(Cow<'a, [u8]>);

impl<'a> KeyIndex<'a> {
    /// Returns the index that `bytes` are.
    #[must_use]
    pub fn read(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the index of these lines, which stand there in any order.
    #[must_use]
    pub fn of(lines: impl IntoIterator<Item = (Digest, LinePlace)>) -> Self {
        let mut entries: Vec<[u8; ENTRY]> = lines.into_iter().map(|(key, place)| entry(key, place)).collect();
        entries.sort_unstable();
        Self(Cow::Owned(entries.concat()))
    }

    /// Returns the index with these lines, which stand behind all others.
    #[must_use]
    pub fn with(&self, lines: impl IntoIterator<Item = (Digest, LinePlace)>) -> KeyIndex<'static> {
        let more = KeyIndex::of(lines);
        let mut merged = Vec::with_capacity(self.0.len() + more.0.len());
        let mut rest: &[u8] = &self.0;
        for entry in more.0.chunks_exact(ENTRY) {
            let (before, after) = rest.split_at(ENTRY * position(rest, entry));
            merged.extend_from_slice(before);
            merged.extend_from_slice(entry);
            rest = after;
        }
        merged.extend_from_slice(rest);
        KeyIndex(Cow::Owned(merged))
    }

    /// Returns where lines stand that may be of `key`, oldest first, every one that is among them.
    #[must_use]
    pub fn find(&self, key: Digest) -> Vec<LinePlace> {
        let start = &key.as_bytes()[..START];
        let entries = self.0.chunks_exact(ENTRY).skip(position(&self.0, start));
        entries.take_while(|entry| entry.starts_with(start)).map(place).collect()
    }

    /// Returns the bytes of the index.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes of the index, as they are.
    #[must_use]
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        self.0
    }
}

/// Returns how many entries come before `bytes`.
fn position(entries: &[u8], bytes: &[u8]) -> usize {
    let (mut low, mut high) = (0, entries.len() / ENTRY);
    while low < high {
        let middle = usize::midpoint(low, high);
        if &entries[middle * ENTRY..(middle + 1) * ENTRY] < bytes { low = middle + 1 } else { high = middle }
    }
    low
}

/// Numbers are written big end first, so that entries are in the order of their bytes.
fn entry(key: Digest, place: LinePlace) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes[..START].copy_from_slice(&key.as_bytes()[..START]);
    bytes[START..START + 8].copy_from_slice(&place.offset.to_be_bytes());
    bytes[START + 8..].copy_from_slice(&place.length.to_be_bytes());
    bytes
}

fn place(entry: &[u8]) -> LinePlace {
    let (offset, length) = entry[START..].split_at(8);
    LinePlace {
        offset: u64::from_be_bytes(offset.try_into().unwrap_or_default()),
        length: u32::from_be_bytes(length.try_into().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: std::ops::Range<u64>) -> Vec<(Digest, LinePlace)> {
        let key = |number: u64| Digest::of(&[u8::try_from(number % 5).unwrap()]);
        numbers.map(|number| (key(number), LinePlace { offset: number * 300, length: 300 })).collect()
    }

    #[test]
    fn the_lines_of_a_key_are_found_oldest_first() {
        let index = KeyIndex::of(lines(0..23));
        let offsets: Vec<u64> = index.find(Digest::of(&[3])).iter().map(|place| place.offset / 300).collect();
        assert_eq!(offsets, [3, 8, 13, 18]);
        assert_eq!(index.find(Digest::of(&[7])), []);
        assert_eq!(KeyIndex::read(index.bytes()), index);
    }

    #[test]
    fn an_index_with_more_lines_is_that_of_all() {
        for cut in 0..=23 {
            assert_eq!(KeyIndex::of(lines(0..cut)).with(lines(cut..23)), KeyIndex::of(lines(0..23)), "{cut}");
        }
    }
}
