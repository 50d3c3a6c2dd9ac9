//! Published results of earlier commits, from git's history of their files.
//!
//! It does not know what results say, nor which of them stand.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use t2t_model::publication::{self, Entry};

use crate::git::{self, Change};
use crate::results;

/// In how many commits at most a change of an op's results is looked for, as a multiple of how many are asked for.
const FAR: usize = 8;

/// What a commit published of an op.
#[derive(Debug, Clone)]
pub struct Past {
    /// The commit, in full.
    pub commit: String,
    /// The day on which it was made.
    pub day: String,
    /// The records that are whole.
    pub entries: Vec<Entry>,
}

/// Returns what the last commits published of each of these ops for a device: the last `most` that changed it, the oldest first, and of these the records of
/// the targets whose names are `wanted`. An op of which nothing is known is left out; without git nothing is.
#[must_use]
pub fn of(
    root: &Path,
    device: &str,
    ops: &[&str],
    most: usize,
    wanted: &(dyn Fn(&str) -> bool + Sync),
) -> BTreeMap<String, Vec<Past>> {
    let folder = format!("{}/{device}/records", results::FOLDER);
    let changes = if most == 0 { Vec::new() } else { git::changes(root, &folder, most * FAR).unwrap_or_default() };
    let of_op = |op: &&str| {
        let path = format!("{folder}/{op}.json");
        let own: Vec<&Change> = changes.iter().filter(|change| change.paths.contains(&path)).take(most).collect();
        let read = |change: &&Change| {
            // A commit that removed it has none.
            let bytes = git::file(root, &change.commit, &path).ok()?;
            let entries = publication::read_of(&String::from_utf8_lossy(&bytes), wanted).entries;
            Some(Past { commit: change.commit.clone(), day: change.day.clone(), entries })
        };
        let past: Vec<Past> = own.iter().rev().filter_map(read).collect();
        (!past.is_empty()).then(|| ((*op).to_owned(), past))
    };
    ops.par_iter().filter_map(of_op).collect()
}
