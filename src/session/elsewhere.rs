//! What is published of a device that this machine lacks, for a session whose kernels run in Triton's interpreter: which device, and which files tell of which op.
//!
//! It does not know what they say.

use std::collections::BTreeMap;
use std::iter;
use std::path::Path;

use t2t_host::device::{self, Models};
use t2t_model::action::DeviceClass;
use t2t_model::digest::Digest;
use t2t_plan::graph::expand::{Device, Elsewhere};
use t2t_spec::Spec;
use t2t_store::fingerprint::{Fingerprint, Observed};
use t2t_store::fs;
use t2t_store::results::{self, Published};

use super::Options;

/// Returns what is published of the ops by a device, where kernels run in Triton's interpreter because this machine has none. Adds what was looked at to `fingerprints`.
pub(super) fn found(
    root: &Path,
    spec: &Spec,
    models: &Models,
    lane: &Device,
    options: &Options,
    fingerprints: &mut Vec<Fingerprint<'static>>,
) -> Option<Elsewhere> {
    if lane.class != DeviceClass::Interpreter || options.as_device.is_some() {
        return None;
    }
    fingerprints.push(folder(root, results::FOLDER.to_owned()));
    let device = device(root, spec, models)?;
    let id = device.class.to_string();
    fingerprints.extend(looked_at(root, &id));
    let ops: BTreeMap<String, Digest> =
        spec.ops.iter().filter_map(|op| Some((op.name.clone(), digest(root, &id, &op.name)?))).collect();
    Some(Elsewhere { device, ops })
}

/// Returns the device whose published results are shown: the first that kernels are compiled for and that has any, or the first that has any where ops.yaml names none.
fn device(root: &Path, spec: &Spec, models: &Models) -> Option<Device> {
    let known = results::devices(root);
    let wanted = if spec.targets.is_empty() { &known } else { &spec.targets };
    let mut found = wanted.iter().filter_map(|name| models.find(name)).filter(|(id, _)| known.contains(id));
    let (id, row) = found.next()?;
    Some(Device { class: DeviceClass::Cuda(id), architecture: device::architecture(&row), driver: None })
}

/// Returns fingerprints of the files that tell of a device, and of the folders that get new ones.
fn looked_at(root: &Path, device: &str) -> Vec<Fingerprint<'static>> {
    let home = format!("{}/{device}", results::FOLDER);
    let records = format!("{home}/records");
    let names = fs::names(&root.join(&records)).into_iter().map(|name| format!("{records}/{name}"));
    let files = names.chain(iter::once(format!("{home}/{}", results::DEVICE)));
    let files = files.map(|path| Fingerprint::of_file(root, &path));
    files.chain([folder(root, home.clone()), folder(root, records.clone())]).collect()
}

fn folder(root: &Path, path: String) -> Fingerprint<'static> {
    let was = Observed::Time(fs::folder_time(&root.join(&path)));
    Fingerprint { path: path.into(), was }
}

/// Returns the place of a device's published records of an op in the workspace.
pub(crate) fn records_path(device: &str, op: &str) -> String {
    format!("{}/{device}/records/{op}.json", results::FOLDER)
}

/// Returns what is published of an op by a device, with the digest of the files that tell it. None where nothing is.
pub(crate) fn published_of(root: &Path, device: &str, op: &str) -> Option<(Digest, Published)> {
    let published = results::read(&root.join(records_path(device, op)), None);
    Some((digest(root, device, op)?, published))
}

/// Returns what is published of no op by a device: what it calibrated, and with what.
pub(crate) fn published_of_no_op(root: &Path, device: &str) -> Published {
    results::read(&results::folder(root, device).join(results::BUILD), None)
}

/// Returns the digest of the records of an op and of what is known of the device.
fn digest(root: &Path, device: &str, op: &str) -> Option<Digest> {
    let records = fs::read(&root.join(records_path(device, op))).ok()?;
    let facts = fs::read(&results::folder(root, device).join(results::DEVICE)).ok()?;
    Some(Digest::of([Digest::of(&records), Digest::of(&facts)].map(|digest| digest.to_string()).concat().as_bytes()))
}
