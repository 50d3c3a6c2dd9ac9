//! The driver of a model that this machine lacks, as nodes of a cluster told it last: `cache/nodes/MODEL.json`.
//!
//! It does not know how nodes are asked.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use t2t_store::fingerprint::Fingerprint;
use t2t_store::{fs, kept};

/// The format. 1: first.
const VERSION: u32 = 1;

/// The folder in the store.
const FOLDER: &str = "nodes";

/// What is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    driver: String,
}

/// Returns what nodes told last of the driver of the model `id`; None where none did.
pub(super) fn known(cache: &Path, id: &str) -> Option<String> {
    kept::read(&cache.join(place(id)), VERSION).map(|told: Told| told.driver)
}

/// Keeps what nodes told of the driver of the model `id`.
pub(crate) fn keep(cache: &Path, id: &str, driver: &str) -> io::Result<()> {
    fs::make_folder(&cache.join(FOLDER))?;
    kept::write(&cache.join(place(id)), VERSION, &Told { driver: driver.to_owned() })
}

/// Returns the fingerprint of what is kept of the model `id` in the workspace's own store.
pub(super) fn fingerprint(root: &Path, id: &str) -> Fingerprint<'static> {
    Fingerprint::of_file(root, &format!("cache/{}", place(id)))
}

fn place(id: &str) -> String {
    format!("{FOLDER}/{id}.json")
}
