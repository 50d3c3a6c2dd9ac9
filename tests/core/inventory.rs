//! What a workspace and a machine hold, made up: enough to make a graph of.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use t2t_model::action::{DeviceClass, Source};
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_model::problem::Problem;
use t2t_plan::graph::expand::{Configurations, Device, Inventory, KernelFile};
use t2t_spec::Spec;

/// Returns what a machine with a device of `class` and usable kernel files would hold; the file named `broken` is not usable.
pub fn inventory(spec: &Spec, class: DeviceClass, broken: &str) -> Inventory {
    let digest = Digest::of(b"anything");
    let file = |name: &str| KernelFile {
        is_extension: false,
        closure: [(RepoPath::new(name).unwrap(), Source { meaning: digest, bytes: digest })].into(),
        docstring: None,
        fault: (name == broken).then(|| Problem::of_file(name, "no such file")),
        binds: None,
    };
    let variants = spec.ops.iter().flat_map(|op| &op.variants);
    let driver = matches!(class, DeviceClass::Cuda(_)).then(|| "570.1".to_owned());
    Inventory {
        configurations: match class {
            DeviceClass::Interpreter => Configurations::First,
            DeviceClass::Cuda(_) => Configurations::All,
        },
        generated: BTreeSet::new(),
        generator: None,
        prompt: Digest::of(b"prompt"),
        rounds: BTreeMap::new(),
        elsewhere: None,
        files: variants.map(|variant| (variant.file.clone(), file(&variant.file))).collect(),
        templates: BTreeMap::new(),
        summary_template: digest,
        catalogue: digest,
        harness: ["calibrate", "analyze", "compile", "check", "tune", "bench", "baseline"]
            .map(|phase| (phase.parse().unwrap(), digest))
            .into(),
        harness_of_cuda: digest,
        harness_of_inline: digest,
        architectures: vec!["sm_90a".to_owned()],
        toolchain: BTreeMap::new(),
        sources: Vec::new(),
        device: Device { architecture: "sm_90".to_owned(), class, driver },
        targets: [("nvidia-h200".to_owned(), json!({}))].into(),
    }
}
