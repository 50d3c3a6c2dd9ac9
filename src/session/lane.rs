//! The device lane of a session: this machine's devices, or the requested model, and the targets that kernels are compiled for.
//!
//! It does not know what runs on the lane.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use t2t_host::device::{self, Models};
use t2t_model::action::DeviceClass;
use t2t_plan::graph::expand::Device;
use t2t_spec::Spec;
use t2t_spec::names::nearest;
use t2t_store::assets;
use t2t_store::fingerprint::Fingerprint;
use t2t_store::results::{self, Published};

use super::{DeviceChoice, NoSession, Options, driver};

pub(crate) fn models(root: &Path) -> Result<Models, NoSession> {
    let bytes = assets::read(root, assets::DEVICES).unwrap_or_default();
    Models::read(&bytes).map_err(|error| NoSession::Use {
        message: format!("`{}` is not a table of devices: {error}", assets::DEVICES),
        hint: "restore the file, or remove it to use the one that t2t carries".to_owned(),
    })
}

pub(crate) fn devices(options: &Options) -> Result<Vec<device::Device>, NoSession> {
    if options.device == DeviceChoice::Cpu {
        return Ok(Vec::new());
    }
    let mut found = device::devices(options.visible.as_deref(), options.driver.as_deref());
    if let DeviceChoice::CudaNumber(number) = options.device {
        found.retain(|device| device.number == number);
    }
    // Results of different models are not one build's: the lane has the devices of the first model.
    if let Some(name) = found.first().map(|device| device.name.clone()) {
        found.retain(|device| device.name == name);
    }
    if found.is_empty() && options.device != DeviceChoice::Auto {
        return Err(NoSession::Use {
            message: "this machine has no such CUDA device".to_owned(),
            hint: "`--device cpu` uses Triton's interpreter; `t2t doctor` lists what there is".to_owned(),
        });
    }
    Ok(found)
}

/// Returns the device lane of a model that this machine need not have, with what is published of it, as `read` takes it from a folder. Its driver is that of the nodes of a
/// cluster, where one is named, and that of what is published where one is not; where the one does not say it, that of the other. Adds what was looked at to
/// `fingerprints`.
pub(crate) fn elsewhere(
    [root, cache]: [&Path; 2],
    (name, is_on_cluster): (&str, bool),
    models: &Models,
    (fingerprints, read): (&mut Vec<Fingerprint<'static>>, impl Fn(&Path) -> Published),
) -> Result<(Device, Published), NoSession> {
    let published = |id: &str| read(&results::folder(root, id));
    if name == DeviceClass::Interpreter.to_string() {
        return Ok((device_of(&[], models), published(name)));
    }
    let found = models.find(name).filter(|(id, row)| id == name || row["name"] == name);
    let Some((id, row)) = found else {
        return Err(NoSession::Use {
            message: format!("no device model `{name}`"),
            hint: if name.contains(',') {
                "name one: only a build takes several, with commas between them".to_owned()
            } else {
                known_models(name, &["interpreter"], models)
            },
        });
    };
    let published = published(&id);
    fingerprints.push(driver::fingerprint(root, &id));
    let there = driver::known(cache, &id);
    let said = published.facts.as_ref().and_then(|facts| facts.driver.clone());
    let driver = if is_on_cluster { there.or(said) } else { said.or(there) };
    Ok((Device { class: DeviceClass::Cuda(id), architecture: device::architecture(&row), driver }, published))
}

/// Returns what to say of a `name` that no model has, where also the `others` are known.
fn known_models(name: &str, others: &[&str], models: &Models) -> String {
    let ids = models.ids();
    let known: Vec<&str> = others.iter().copied().chain(ids).collect();
    let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    format!("{}known are {}; `{}` can name more", near.unwrap_or_default(), known.join(", "), assets::DEVICES)
}

pub(crate) fn device_of(devices: &[device::Device], models: &Models) -> Device {
    let Some(first) = devices.first() else {
        let class = DeviceClass::Interpreter;
        return Device { architecture: class.to_string(), class, driver: None };
    };
    let (id, row) = known_model(first, models);
    Device {
        class: DeviceClass::Cuda(id),
        architecture: device::architecture(&row),
        driver: Some(first.driver.clone()),
    }
}

/// Returns the model of a device: its row of the table, or a row with nothing but the name.
fn known_model(device: &device::Device, models: &Models) -> (String, Value) {
    models.find(&device.name).unwrap_or_else(|| (device::plain_id(&device.name), json!({"name": device.name})))
}

pub(crate) fn targets(
    spec: &Spec,
    lane: &Device,
    models: &Models,
    devices: &[device::Device],
) -> Result<BTreeMap<String, Value>, NoSession> {
    let elsewhere = || Some(lane.class.to_string()).filter(|_| lane.class != DeviceClass::Interpreter);
    let present = devices.first().map(|device| device.name.clone()).or_else(elsewhere);
    let wanted = if spec.targets.is_empty() {
        vec![present.unwrap_or_else(|| "sm_90".to_owned())]
    } else {
        spec.targets.clone()
    };
    let unknown = |name: &str| NoSession::Use {
        message: format!("ops.yaml: no device model `{name}` to compile for"),
        hint: known_models(name, &[], models),
    };
    wanted.iter().map(|name| models.find(name).ok_or_else(|| unknown(name))).collect()
}
