//! Prewarm: what gets ready while devices have nothing to do yet: children for kernels, as long as nothing is compiled, and for baselines, where torch compiles the op
//! beside checks; and servers, between two builds of one process.
//!
//! The dispatcher says for which. It does not know what such a child does, nor when it may use the device. Where none got ready, an action does all of it itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use t2t_host::device::{DeviceLock, Holder};
use t2t_model::action::DeviceClass;
use t2t_plan::dispatcher::{Dispatcher, Event, Wanted, of_device};
use t2t_plan::graph::Index;
use t2t_protocol::ServerKind;
use t2t_report::figures;
use t2t_store::fs;

use super::perform::prewarm_baseline;
use super::request::Given;
use super::settings::Children;
use super::{InFlight, Run, warm_pool};
use crate::session::Session;

/// How long the lock of a device is held at most while children get ready for it.
const START: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

impl Run<'_, '_> {
    /// Has so many children get ready for a device, until the first action takes one. Where somebody else has it now, none get ready.
    pub(super) fn prepare_device(&self, device: usize, awaited: usize) {
        let (uuid, locks) = (self.session.devices[device].uuid.clone(), self.settings.locks.clone());
        let (pool, dispatcher) = (Arc::clone(&self.session.pool), self.in_flight.dispatcher().clone());
        let cores = self.settings.shares.cpu.clone();
        let who = Holder {
            pid: std::process::id(),
            target: "a build that begins".to_owned(),
            workspace: self.session.root.to_string_lossy().into_owned(),
            since: figures::moment(fs::now()),
        };
        std::thread::spawn(move || {
            let is_taken = || dispatcher.ask(Dispatcher::has_used_device);
            // A server that does not start is told of by the first action that needs it.
            if pool.hello(ServerKind::Device).is_err() || is_taken() {
                return;
            }
            let Ok(Some(_lock)) = DeviceLock::take(&locks, &uuid, || who, |_| {}, || true) else { return };
            let begun = Instant::now();
            for wanted in of_device(&uuid, awaited) {
                let for_device = |key| warm_pool::for_device(&uuid, cores.as_ref(), key);
                let _ = dispatcher.keep_ready(&pool, ServerKind::Device, &wanted, for_device);
            }
            let get_ready = || {
                dispatcher.hear_devices(&pool);
                dispatcher.ask(Dispatcher::prepares_devices)
            };
            while get_ready() && !is_taken() && begun.elapsed() < START {
                std::thread::sleep(LOOK);
            }
        });
    }

    /// Returns whether children may get ready for actions that are not decided yet.
    pub(super) fn may_prewarm(&self) -> bool {
        !self.session.devices.is_empty()
            && self.settings.children == Children::All
            && self.settings.remote.is_none()
            && self.settings.nodes.is_none()
            && !self.stopped
    }

    /// Has a child get ready for a baseline on a device.
    pub(super) fn prepare_baseline(&self, index: Index, device: usize) {
        let action = self.session.graph.action(index);
        let given = Given { device: Some(self.session.devices[device].uuid.clone()), ..Given::default() };
        let scratch = self.scratch.join("ahead").join(format!("{device}-{}", action.target().op));
        let job = self.requests().job(action, &given, scratch);
        let (pool, dispatcher) = (Arc::clone(&self.session.pool), self.in_flight.dispatcher().clone());
        let Some(warm_child) = prewarm_baseline(&job) else {
            dispatcher.handle(Event::Asked);
            return;
        };
        // Without its folder the child fails, and the baseline does without it.
        let _ = warm_child.scratch.as_ref().map(|folder| fs::make_folder(folder.as_ref()));
        std::thread::spawn(move || {
            let wanted = Wanted { key: warm_child.key.clone(), most: 1 };
            // A server that does not start is told of by the first action that needs it.
            let _ = dispatcher.keep_ready(&pool, ServerKind::Device, &wanted, |_| warm_child.clone());
            dispatcher.handle(Event::Asked);
        });
    }
}

/// Has the servers run that the next build of this process needs, so that it does not wait for them. `in_flight` is what this one leaves, `salt` that of the next one where it is
/// known.
pub(crate) fn get_ready(session: &Session, in_flight: Option<&InFlight>, salt: Option<&str>) {
    let (pool, salt) = (Arc::clone(&session.pool), salt.map(str::to_owned));
    let dispatcher = in_flight.map(|in_flight| in_flight.dispatcher().clone()).unwrap_or_default();
    if session.toolchain.is_none() {
        return;
    }
    let has_devices = !session.devices.is_empty();
    let interprets = session.inventory.device.class == DeviceClass::Interpreter;
    std::thread::spawn(move || {
        // A failure is reported by the action that needs the server.
        if interprets {
            let _ =
                pool.rest(ServerKind::Interpreter).and_then(|()| dispatcher.prepare_a_check(&pool, salt.as_deref()));
        }
        let _ = pool.rest(ServerKind::Compiled);
        if has_devices {
            let _ = pool.rest(ServerKind::Device);
        }
    });
}
