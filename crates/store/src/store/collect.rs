//! Garbage collection: which records and blobs a store can do without, and removing them.
//!
//! The journal is rewritten before blobs are removed, so a concurrent reader, or a kill, leaves at worst blobs that no record names. It does not know what a
//! workspace needs: the caller gives the keys.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

use t2t_model::digest::Digest;
use t2t_model::record::Record;

use super::cas::{Cas, Listing};
use super::journal::{Journal, Lines};
use crate::fs;

/// How much may stay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// The length of all blobs together, in bytes.
    pub size: Option<u64>,
    /// How long ago a record may have been made, in nanoseconds.
    pub age: Option<i64>,
}

/// What is in a store, read once.
#[derive(Debug)]
pub struct Holdings {
    /// The journal.
    pub lines: Lines,
    /// The blobs.
    pub listing: Listing,
}

/// What a collection would do, or did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many records go: those beyond the limits.
    pub records: usize,
    /// How many lines of the journal go that no longer count, or are damaged.
    pub lines: usize,
    /// How many blobs go.
    pub blobs: usize,
    /// Their length together, in bytes.
    pub bytes: u64,
    /// The length of the blobs that stay, in bytes.
    pub left: u64,
}

impl Holdings {
    /// Reads the journal and lists the blobs of the store under `cache`.
    pub fn of(cache: &Path) -> io::Result<Self> {
        Ok(Self { lines: Journal::open(cache).lines()?, listing: Cas::open(cache).list() })
    }

    /// Returns the length of those of `digests` that are there, each counted once, in bytes.
    #[must_use]
    pub fn bytes_of(&self, digests: &BTreeSet<Digest>) -> u64 {
        digests.iter().filter_map(|digest| self.listing.blobs.get(digest)).map(|stat| stat.size).sum()
    }

    /// Returns when the newest file of a record was written, in nanoseconds since 1970; None where none of them is there.
    #[must_use]
    pub fn time_of(&self, record: &Record) -> Option<i64> {
        blobs_of(record).filter_map(|digest| self.listing.blobs.get(&digest)).map(|stat| stat.mtime).max()
    }
}

/// Returns the blobs that a record names: its manifest and its artifacts.
pub(crate) fn blobs_of(record: &Record) -> impl Iterator<Item = Digest> + '_ {
    std::iter::once(record.key).chain(record.outputs.values().map(|blob| blob.digest))
}

/// Returns the blobs that any of `records` names.
#[must_use]
pub fn named<'a>(records: impl IntoIterator<Item = &'a Record>) -> BTreeSet<Digest> {
    records.into_iter().flat_map(blobs_of).collect()
}

/// Returns the records that stay, oldest first: those of `needed` keys, and of the others those within `limits`, the oldest gone first.
#[must_use]
pub fn staying<'a>(holdings: &'a Holdings, needed: &BTreeSet<Digest>, limits: Limits, now: i64) -> Vec<&'a Record> {
    let live = holdings.lines.live();
    let is_old = |record: &Record| match (limits.age, holdings.time_of(record)) {
        (Some(age), Some(time)) => time < now.saturating_sub(age),
        _ => false,
    };
    let mut uses: HashMap<Digest, usize> = HashMap::new();
    for digest in live.iter().flat_map(|record| blobs_of(record)) {
        *uses.entry(digest).or_default() += 1;
    }
    let mut size = holdings.bytes_of(&uses.keys().copied().collect());
    let mut stays: Vec<&Record> = Vec::new();
    for record in live {
        let is_too_much = limits.size.is_some_and(|most| size > most);
        if needed.contains(&record.key) || !(is_too_much || is_old(record)) {
            stays.push(record);
            continue;
        }
        for digest in blobs_of(record) {
            let left = uses.get_mut(&digest).expect("it was counted above");
            *left -= 1;
            if *left == 0 {
                size -= holdings.listing.blobs.get(&digest).map_or(0, |stat| stat.size);
            }
        }
    }
    stays
}

/// Returns what goes where only the records `stays` stay.
#[must_use]
pub fn going(holdings: &Holdings, stays: &[&Record]) -> Collected {
    let named = named(stays.iter().copied());
    let gone = holdings.listing.blobs.iter().filter(|(digest, _)| !named.contains(digest));
    let bytes = gone.clone().map(|(_, stat)| stat.size).sum();
    let live = holdings.lines.live().len();
    Collected {
        records: live - stays.len(),
        lines: holdings.lines.records.len() - live + holdings.lines.damaged.len(),
        blobs: gone.count(),
        bytes,
        left: holdings.listing.bytes() - bytes,
    }
}

/// Removes all but the records `stays` and what they name. The caller holds the workspace's lock since before `holdings` were read.
pub fn collect(cache: &Path, holdings: &Holdings, stays: &[&Record]) -> io::Result<()> {
    if stays.len() < holdings.lines.records.len() || !holdings.lines.damaged.is_empty() {
        Journal::open(cache).rewrite(stays.iter().copied())?;
    }
    let named = named(stays.iter().copied());
    let cas = Cas::open(cache);
    for digest in holdings.listing.blobs.keys().filter(|digest| !named.contains(digest)) {
        cas.remove(*digest)?;
    }
    holdings.listing.unfinished.iter().try_for_each(|path| fs::remove(path))
}

/// What a part of the store holds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// How many records, or blobs.
    pub number: usize,
    /// Their blobs together, each counted once, in bytes.
    pub bytes: u64,
}

/// Returns what each group of records holds. A blob that two groups name counts in both.
#[must_use]
pub fn shares<'a>(
    holdings: &Holdings,
    records: &[&'a Record],
    group: impl Fn(&'a Record) -> String,
) -> BTreeMap<String, Share> {
    let mut groups: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        groups.entry(group(record)).or_default().push(record);
    }
    let share = |records: &[&Record]| Share {
        number: records.len(),
        bytes: holdings.bytes_of(&named(records.iter().copied())),
    };
    groups.into_iter().map(|(name, records)| (name, share(&records))).collect()
}

/// Returns what the artifacts of each name hold.
#[must_use]
pub fn artifacts(holdings: &Holdings, records: &[&Record]) -> BTreeMap<String, Share> {
    let mut by_name: BTreeMap<String, BTreeSet<Digest>> = BTreeMap::new();
    for record in records {
        by_name.entry("manifest".to_owned()).or_default().insert(record.key);
        for (name, blob) in &record.outputs {
            by_name.entry(name.clone()).or_default().insert(blob.digest);
        }
    }
    let there = |digests: &BTreeSet<Digest>| {
        digests.iter().filter(|digest| holdings.listing.blobs.contains_key(digest)).count()
    };
    by_name
        .into_iter()
        .map(|(name, digests)| (name, Share { number: there(&digests), bytes: holdings.bytes_of(&digests) }))
        .collect()
}
