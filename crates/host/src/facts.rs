//! What a machine tells of itself to who would use it: t2t's version, and its devices. `t2t perform facts` prints it on a node of a cluster.
//!
//! It starts nothing, and does not know who asks.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::device::{self, Models};

/// The format; a change that readers must know gives another number. 1: first.
const VERSION: u32 = 1;

/// What a machine tells of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The format.
    version: u32,
    /// The version of t2t.
    pub t2t: String,
    /// The CUDA devices that are visible, in their order.
    pub devices: Vec<Told>,
}

/// What is told of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The model's name, as in `NVIDIA H200`.
    pub name: String,
    /// The device class, as in `nvidia-h200`, by the table that the machine's t2t carries.
    pub class: String,
    /// The driver's version.
    pub driver: String,
}

impl Facts {
    /// Returns the facts of this machine, whose t2t has the version `t2t`. `visible` and `driver_folder` are as for [`device::devices`].
    #[must_use]
    pub fn here(t2t: &str, visible: Option<&str>, driver_folder: Option<&Path>, models: &Models) -> Self {
        let told = |device: device::Device| {
            let class = models.id_of(&device.name);
            Told { name: device.name, class, driver: device.driver }
        };
        let devices = device::devices(visible, driver_folder).into_iter().map(told).collect();
        Self { version: VERSION, t2t: t2t.to_owned(), devices }
    }

    /// Returns the facts that a document tells; None where it has another format.
    #[must_use]
    pub fn read(document: &serde_json::Value) -> Option<Self> {
        serde_json::from_value(document.clone()).ok().filter(|facts: &Self| facts.version == VERSION)
    }

    /// Returns how many devices there are of each class, by the table `models`.
    #[must_use]
    pub fn classes(&self, models: &Models) -> BTreeMap<String, usize> {
        let mut classes = BTreeMap::new();
        for told in &self.devices {
            *classes.entry(models.id_of(&told.name)).or_insert(0) += 1;
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use t2t_store::fs;

    use super::*;

    #[test]
    fn facts_come_back_as_they_were_told_and_those_of_another_format_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::make_folder(path.parent().unwrap()).unwrap();
            fs::write(&path, text.as_bytes()).unwrap();
        };
        file("version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n");
        for (bus, name) in [("a", "NVIDIA H200"), ("b", "NVIDIA H200"), ("c", "Tesla Z9")] {
            file(&format!("gpus/{bus}/information"), &format!("Model: \t {name}\nGPU UUID: \t GPU-{bus}\n"));
        }
        let models = Models::read(br#"{"nvidia-h200": {"name": "NVIDIA H200"}}"#).unwrap();
        let facts = Facts::here("1.2", None, Some(folder.path()), &models);
        assert_eq!(facts.classes(&models), [("nvidia-h200".to_owned(), 2), ("tesla-z9".to_owned(), 1)].into());
        let document = serde_json::to_value(&facts).unwrap();
        let last = json!({"name": "Tesla Z9", "class": "tesla-z9", "driver": "580.95.05"});
        assert_eq!(document["devices"][2], last);
        assert_eq!(Facts::read(&document), Some(facts));
        let seen = Facts::here("1.2", Some("2"), Some(folder.path()), &models);
        assert_eq!(serde_json::to_value(&seen).unwrap()["devices"], json!([last]));
        for (field, value) in [("version", json!(2)), ("devices", json!(1)), ("more", json!(1))] {
            let mut other = document.clone();
            other[field] = value;
            assert_eq!(Facts::read(&other), None);
        }
    }
}
