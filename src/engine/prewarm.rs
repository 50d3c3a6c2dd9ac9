//! Prewarm: what gets ready while devices have nothing to do yet: children for kernels, as long as nothing is compiled, and for baselines, where torch compiles the op
//! beside checks.
//!
//! It does not know what such a child does, nor when it may use the device. Where none got ready, an action does all of it itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use t2t_host::device::{DeviceLock, Holder};
use t2t_model::action::{Phase, Target};
use t2t_plan::graph::Index;
use t2t_protocol::ServerKind;
use t2t_report::figures;
use t2t_store::fs;

use super::order::predicted;
use super::perform::prewarm_baseline;
use super::request::Given;
use super::settings::Children;
use super::warm_pool;
use super::{Run, Stop};

/// How much of a device's memory children may hold together that are ready for kernels, and for baselines: one part of so many. A kernel that finds too little left is called
/// again without them.
const PART_FOR_KERNELS: u64 = 3;
const PART_FOR_BASELINES: u64 = 16;

/// How many bytes such a child holds: what CUDA keeps of a process, and what torch and Triton loaded there.
const HELD: u64 = 3 << 28;

/// How long the lock of a device is held at most while children get ready for it.
const START: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// What a build knows of what is to come.
#[derive(Debug, Default)]
pub(super) struct Prewarm {
    /// Baselines for which children may yet get ready.
    unprepared: Vec<Index>,
    /// For how many of them a server is being asked.
    preparing: Arc<AtomicUsize>,
    /// Whether an action took a device.
    pub(crate) is_taken: Arc<AtomicBool>,
    /// Checks, measurements of kernels and calibrations on devices that have neither begun nor settled.
    coming: BTreeSet<Index>,
    /// Since when what measures could begin on a device; none since something last began there.
    pub(crate) idle_since: Option<Instant>,
}

impl Prewarm {
    /// Takes note that an action has begun or settled.
    pub(super) fn forget(&mut self, index: Index) {
        self.coming.remove(&index);
    }
}

impl Run<'_, '_> {
    /// Finds out what is to come on devices, and has children get ready for it.
    pub(super) fn begin_prewarm(&mut self) {
        if !self.session.devices.is_empty() {
            let phases = [Phase::Check, Phase::Bench, Phase::Calibrate];
            self.prewarm.coming = phases.into_iter().flat_map(|phase| self.wanted_of(phase)).collect();
        }
        if self.may_prepare() {
            self.prewarm.unprepared = self.wanted_of(Phase::Baseline).filter(|index| self.is_unknown(*index)).collect();
            self.prepare_devices();
        }
    }

    fn wanted_of(&self, phase: Phase) -> impl Iterator<Item = Index> {
        let is_of = move |index: &Index| self.session.graph.action(*index).target().phase == phase;
        self.session.graph.indices().filter(move |index| self.wanted[index.number()] && is_of(index))
    }

    /// Has children get ready for each device that will measure a kernel without a known result, until the first action takes the device. Where somebody else has a
    /// device now, none get ready.
    fn prepare_devices(&self) {
        let unknown: Vec<Index> = self.prewarm.coming.iter().copied().filter(|index| self.is_unknown(*index)).collect();
        if !unknown.iter().any(|index| self.session.graph.action(*index).target().phase == Phase::Bench) {
            return;
        }
        let awaited = self.of_one(unknown.len());
        for device in &self.session.devices {
            let (uuid, locks) = (device.uuid.clone(), self.settings.locks.clone());
            let warm_children = warm_pool::for_device(&uuid, self.settings.shares.cpu.as_ref(), awaited);
            let (pool, is_taken) = (Arc::clone(&self.session.pool), Arc::clone(&self.prewarm.is_taken));
            let who = Holder {
                pid: std::process::id(),
                target: "a build that begins".to_owned(),
                workspace: self.session.root.to_string_lossy().into_owned(),
                since: figures::moment(fs::now()),
            };
            std::thread::spawn(move || {
                // A server that does not start is told of by the first action that needs it.
                if pool.hello(ServerKind::Device).is_err() || is_taken.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(Some(_lock)) = DeviceLock::take(&locks, &uuid, || who, |_| {}, || true) else { return };
                let begun = Instant::now();
                for warm_child in &warm_children {
                    let _ = pool.keep_ready(ServerKind::Device, warm_child);
                }
                while pool.get_ready(ServerKind::Device) && !is_taken.load(Ordering::Relaxed) && begun.elapsed() < START
                {
                    std::thread::sleep(LOOK);
                }
            });
        }
    }

    /// Returns whether children may get ready for actions that are not decided yet.
    fn may_prepare(&self) -> bool {
        !self.session.devices.is_empty()
            && self.settings.children == Children::All
            && self.settings.remote.is_none()
            && !self.stopped
    }

    /// Returns whether an action will run as far as that is known before anything has been decided: nothing is remembered of it.
    fn is_unknown(&self, index: Index) -> bool {
        self.history.last(&self.session.graph.action(index).identity).is_none()
    }

    /// Has children get ready for baselines, for as many as there may be. With several devices it waits until it is known which op has how much to measure.
    pub(super) fn prepare_baselines(&mut self) -> Result<(), Stop> {
        if self.prewarm.unprepared.is_empty() || (self.binding.matters() && !self.are_all_analyzed()) {
            return Ok(());
        }
        let unprepared = std::mem::take(&mut self.prewarm.unprepared);
        let most = self.most_prewarmed();
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, device) in self.homes(unprepared)? {
            let count = counts.entry(device).or_default();
            if *count < most && self.schedule.settled(index).is_none() {
                *count += 1;
                self.prepare_baseline(index, device);
            }
        }
        Ok(())
    }

    /// Returns whether children get ready for devices, or will.
    pub(super) fn get_ready(&self) -> bool {
        self.prewarm.preparing.load(Ordering::Relaxed) > 0 || self.session.pool.get_ready(ServerKind::Device)
    }

    /// Returns how many children may get ready for baselines of one device: each takes a core and some of the device's memory.
    fn most_prewarmed(&self) -> usize {
        self.fitting(PART_FOR_BASELINES).min(self.settings.jobs / 2 / self.session.devices.len().max(1))
    }

    /// Returns how many children may be ready for one device: as many as checks and measurements are to come there, and a few where a build follows.
    pub(super) fn awaited(&self) -> usize {
        let coming = self.of_one(self.prewarm.coming.len());
        if self.control.is_controlled() { coming.max(warm_pool::AT_REST) } else { coming }
    }

    /// Returns how many children may be ready for one device where so many actions are to come on all.
    fn of_one(&self, left: usize) -> usize {
        left.div_ceil(self.session.devices.len().max(1)).min(self.fitting(PART_FOR_KERNELS))
    }

    /// Returns how many children may hold one part of so many of a device's memory.
    fn fitting(&self, part: u64) -> usize {
        let memory = self.session.inventory.targets.values().filter_map(|row| row["memory"].as_u64()).min();
        usize::try_from(memory.unwrap_or(0) / part / HELD).unwrap_or(usize::MAX)
    }

    /// Returns each baseline with the device on which it is likely to run.
    fn homes(&mut self, baselines: Vec<Index>) -> Result<Vec<(Index, usize)>, Stop> {
        if !self.binding.matters() {
            return Ok(baselines.into_iter().map(|index| (index, 0)).collect());
        }
        self.count_left()?;
        let left = |index: &Index| {
            let Target { op, .. } = self.session.graph.action(*index).target();
            self.left.get(op).copied().unwrap_or(Duration::ZERO)
        };
        let homes = predicted(self.session.devices.len(), &baselines.iter().map(left).collect::<Vec<_>>());
        Ok(baselines.into_iter().zip(homes).collect())
    }

    fn prepare_baseline(&mut self, index: Index, device: usize) {
        let action = self.session.graph.action(index);
        let op = action.target().op.clone();
        let given = Given { device: Some(self.session.devices[device].uuid.clone()), ..Given::default() };
        let scratch = self.scratch.join("ahead").join(format!("{device}-{op}"));
        let job = self.requests().job(action, &given, scratch);
        let Some(warm_child) = prewarm_baseline(&job) else { return };
        // Without its folder the child fails, and the baseline does without it.
        let _ = warm_child.scratch.as_ref().map(|folder| fs::make_folder(folder.as_ref()));
        self.binding.expect(&op, device);
        let (pool, preparing) = (Arc::clone(&self.session.pool), Arc::clone(&self.prewarm.preparing));
        preparing.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || {
            // A server that does not start is told of by the first action that needs it.
            let _ = pool.keep_ready(ServerKind::Device, &warm_child);
            preparing.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
