//! Assets: templates and tables, the workspace's own where it has them, else those that the binary carries.
//!
//! It does not know what they are for.

use std::path::Path;

use crate::fs;

const CARRIED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The catalogue of what ops compute.
pub const CATALOGUE: &str = "assets/ops_catalogue.json";
/// The table of device models.
pub const DEVICES: &str = "assets/devices.json";
/// The template of the summary.
pub const SUMMARY_TEMPLATE: &str = "assets/summary_template.md";

/// The template of what authors of kernels are asked.
pub const PROMPT: &str = "assets/prompts/kernel.md";

/// The template of what they are asked beside that, where a kernel is to be improved.
pub const IMPROVE: &str = "assets/prompts/improve.md";

/// Returns the bytes of the asset at `path`: the file in the workspace at `root`, or the carried one of the same name. None where there is neither.
#[must_use]
pub fn read(root: &Path, path: &str) -> Option<Vec<u8>> {
    fs::read(&root.join(path)).ok().or_else(|| carried(path).map(<[u8]>::to_vec))
}

/// Returns the asset at `path` that the binary carries.
#[must_use]
pub fn carried(path: &str) -> Option<&'static [u8]> {
    let name = path.strip_prefix("assets/")?;
    CARRIED.iter().find(|(carried, _)| *carried == name).map(|(_, bytes)| *bytes)
}
