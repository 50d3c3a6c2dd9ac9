//! What a client can read without a tool: ops.yaml, the logs, and the pages that say what is asked of a kernel.
//!
//! It does not know who reads.

use std::path::Path;

use rmcp::model::{Resource, ResourceContents};
use t2t_store::fs;

use crate::session::OPS;

/// What the addresses of resources begin with: the workspace, whatever its folder is called.
const START: &str = "t2t:///";

/// The pages that the binary carries: path, title, text.
const PAGES: [(&str, &str, &str); 2] = [
    ("docs/guide/judging.md", "How a kernel is judged", include_str!("../../../docs/guide/judging.md")),
    ("docs/guide/ops-yaml.md", "Writing ops.yaml", include_str!("../../../docs/guide/ops-yaml.md")),
];

/// Longest file, in bytes.
const LONGEST: u64 = 16 << 20;

/// Returns the resources that there are now.
pub(super) fn list(root: &Path) -> Vec<Resource> {
    let pages = PAGES.iter().map(|(path, title, _)| resource(path, title));
    let own = files(root).into_iter().map(|path| resource(&path, &path));
    pages.chain(own).collect()
}

fn resource(path: &str, title: &str) -> Resource {
    Resource::new(format!("{START}{path}"), path).with_title(title).with_mime_type(kind(path))
}

fn kind(path: &str) -> &'static str {
    if path == OPS { "application/yaml" } else { "text/markdown" }
}

/// Returns the files of the workspace that are resources: no other is read, whatever a client asks for.
fn files(root: &Path) -> Vec<String> {
    let is_page = |name: &String| Path::new(name).extension().is_some_and(|ending| ending == "md");
    let logs = fs::names(&root.join("logs")).into_iter().filter(is_page);
    let mut logs: Vec<String> = logs.map(|name| format!("logs/{name}")).collect();
    logs.sort();
    let ops = root.join(OPS).is_file().then(|| OPS.to_owned());
    ops.into_iter().chain(logs).collect()
}

/// Returns the resource at an address; None where there is none.
pub(super) fn read(root: &Path, address: &str) -> Option<ResourceContents> {
    let path = address.strip_prefix(START)?;
    let page = PAGES.iter().find(|(known, _, _)| *known == path).map(|(_, _, text)| (*text).to_owned());
    let own = || {
        let path = files(root).into_iter().find(|known| known == path)?;
        let bytes = fs::read_below(root, Path::new(&path), LONGEST).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = page.or_else(own)?;
    Some(ResourceContents::text(text, address).with_mime_type(kind(path)))
}
