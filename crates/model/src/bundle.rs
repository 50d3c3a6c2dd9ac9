//! A bundle: all that another machine needs to perform one action, named by digests, as one JSON document.
//!
//! It does not know where the bytes lie that it names, nor how they travel.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::action::{DeviceClass, Target};
use crate::digest::Digest;
use crate::path::RepoPath;

/// The format; another number is refused. 1: first.
const VERSION: u32 = 1;

/// Folders of a workspace that are t2t's own: no bundle has files there.
const OWN: [&str; 2] = ["cache/", "logs/"];

/// All that another machine needs to perform one action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    version: u32,
    /// Which action, of whichever attempt as of the first: its kernel file is there like one that a person wrote.
    pub target: Target,
    /// The device class of the build that asks.
    pub device: DeviceClass,
    /// The key that the action has there. The manifest lies under this digest, so the two sides can say in which facts they differ.
    pub key: Digest,
    /// Whether autotuned kernels are compiled in every configuration.
    pub all_configurations: bool,
    /// What `$TORCH_CUDA_ARCH_LIST` says there.
    pub architectures: Option<String>,
    /// The files of the workspace that the action takes, by place, and their bytes.
    pub files: BTreeMap<RepoPath, Digest>,
    /// The results that the action rests on, as the bytes of a journal.
    pub records: Digest,
    /// The manifests and artifacts of those results.
    pub blobs: BTreeSet<Digest>,
}

/// Why a text is no bundle.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBundle {
    /// It is not such a document.
    #[error("it is no bundle: {0}")]
    Malformed(String),
    /// It is of another format.
    #[error("its format is {0}, and this t2t reads {VERSION}")]
    Version(u64),
    /// It has a file where only t2t itself writes.
    #[error("it has the file `{0}`, which lies in a folder of t2t's own")]
    Own(RepoPath),
}

impl Bundle {
    /// Returns the bundle of an action with this key, which takes nothing yet and rests on `records`.
    #[must_use]
    pub fn of(target: Target, device: DeviceClass, key: Digest, records: Digest) -> Self {
        Self {
            version: VERSION,
            target,
            device,
            key,
            all_configurations: true,
            architectures: None,
            files: BTreeMap::new(),
            records,
            blobs: BTreeSet::new(),
        }
    }

    /// Returns the bundle that `text` is. Fails where it is none, or one of another format, or would overwrite what t2t keeps.
    pub fn read(text: &[u8]) -> Result<Self, NoBundle> {
        let malformed = |error: serde_json::Error| NoBundle::Malformed(error.to_string());
        let value: serde_json::Value = serde_json::from_slice(text).map_err(malformed)?;
        match value["version"].as_u64() {
            Some(version) if version != u64::from(VERSION) => return Err(NoBundle::Version(version)),
            _ => {}
        }
        let bundle: Self = serde_json::from_value(value).map_err(malformed)?;
        let is_own = |path: &&RepoPath| OWN.iter().any(|folder| path.as_str().starts_with(folder));
        match bundle.files.keys().find(is_own) {
            Some(path) => Err(NoBundle::Own(path.clone())),
            None => Ok(bundle),
        }
    }

    /// Returns the text of the bundle, one line of JSON with a newline: the same bytes for the same bundle.
    #[must_use]
    pub fn write(&self) -> String {
        serde_json::to_string(self).expect("a bundle is JSON") + "\n"
    }

    /// Returns the digests of all that must be there before the action can be performed.
    #[must_use]
    pub fn digests(&self) -> BTreeSet<Digest> {
        let own = [self.key, self.records];
        own.into_iter().chain(self.files.values().copied()).chain(self.blobs.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Bundle {
        let target = Target::of_variant("softmax", "v1", crate::action::Phase::Check);
        let mut bundle = Bundle::of(target, DeviceClass::Interpreter, Digest::of(b"key"), Digest::of(b"records"));
        bundle.files.insert(RepoPath::new("ops.yaml").unwrap(), Digest::of(b"ops"));
        bundle.blobs.insert(Digest::of(b"blob"));
        bundle
    }

    #[test]
    fn what_is_written_is_read_again_and_names_each_digest_once() {
        let bundle = bundle();
        assert_eq!(Bundle::read(bundle.write().as_bytes()), Ok(bundle.clone()));
        assert_eq!(bundle.digests().len(), 4);
    }

    #[test]
    fn what_is_no_bundle_says_why() {
        let text = bundle().write();
        let refused = |text: &str| Bundle::read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused(&text.replace("\"version\":1", "\"version\":2")), "its format is 2, and this t2t reads 1");
        assert!(refused(&text.replace("\"version\":1,", "")).contains("missing field `version`"));
        assert!(refused("{").starts_with("it is no bundle: "));
        assert!(refused(&text.replace("ops.yaml", "../ops.yaml")).contains("is no path inside the workspace"));
        assert!(refused(&text.replace("\"key\"", "\"kee\"")).contains("unknown field `kee`"));
        for own in ["cache/journal", "logs/summary.md"] {
            let expected = format!("it has the file `{own}`, which lies in a folder of t2t's own");
            assert_eq!(refused(&text.replace("ops.yaml", own)), expected);
        }
    }
}
