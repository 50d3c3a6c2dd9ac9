//! A build: runs of the loop, one after another as long as results turn out to be lost.

use std::collections::HashMap;

use t2t_host::interrupt::Interrupt;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_plan::graph::Wanted;
use t2t_store::store::journal::Journal;
use t2t_store::store::leftovers;

use super::in_flight::LaneOfDevice;
use super::lost::lost_text;
use super::nodes::SeatKind;
use super::{Control, EngineError, InFlight, Kept, Report, Run, Settings, Spent, Stop};
use crate::session::Session;

/// How often a build starts over because of one result, which it has made anew each time.
const RESTARTS: usize = 4;

/// Builds the wanted part of the session's graph. `emit` is told what happens, on this thread.
pub(crate) fn build(
    session: &Session,
    wanted: &Wanted,
    settings: &Settings,
    interrupt: &Interrupt,
    emit: &mut dyn FnMut(Event),
) -> Result<Report, EngineError> {
    build_on(session, wanted, settings, interrupt, &mut in_flight(session, settings), &mut Control::None, emit)
}

/// Returns the lanes of builds of `session`, with nothing in them.
#[must_use]
pub(crate) fn in_flight(session: &Session, settings: &Settings) -> InFlight {
    let of_nodes = |kind: SeatKind| {
        let seats = settings.nodes.iter().flat_map(|nodes| &nodes.seats).filter(move |seat| seat.kind == kind);
        seats.map(|seat| LaneOfDevice { name: seat.lane.clone(), uuid: None })
    };
    // Where nodes perform what depends on a device, those of this machine are left alone.
    let own = session.devices.iter().enumerate().filter(|_| settings.nodes.is_none());
    let own =
        own.map(|(number, device)| LaneOfDevice { name: format!("cuda:{number}"), uuid: Some(device.uuid.clone()) });
    let devices = of_nodes(SeatKind::Device).chain(own).collect();
    InFlight::new(settings.jobs, devices, of_nodes(SeatKind::Cores).collect(), settings.shares.clone())
}

/// Builds the wanted part of the session's graph on top of what is in flight from earlier builds of the workspace, as `control` directs it.
pub(crate) fn build_on(
    session: &Session,
    wanted: &Wanted,
    settings: &Settings,
    interrupt: &Interrupt,
    in_flight: &mut InFlight,
    control: &mut Control<'_>,
    emit: &mut dyn FnMut(Event),
) -> Result<Report, EngineError> {
    if in_flight.is_idle() {
        leftovers::sweep_scratch(&session.cache);
    }
    let mut journal = Journal::open(&session.cache);
    let loaded = session.history()?;
    if loaded.damaged > 0 {
        emit(Event::Warning { text: format!("{} damaged lines of cache/journal are ignored", loaded.damaged) });
    }
    if loaded.is_worn {
        // One that cannot be written anew is as good: it costs time, nothing else.
        let _ = journal.shed();
    }
    let cas = session.cas();
    let mut history = loaded.history;
    let mut wanted = wanted.clone();
    let mut losses: HashMap<Digest, usize> = HashMap::new();
    let mut spent = Spent::default();
    loop {
        let kept = Kept { history: &mut history, journal: &mut journal, cas: &cas, spent: &mut spent };
        let mut run = Run::new(session, kept, settings, interrupt, wanted.clone(), in_flight, control, emit);
        match run.until_all_settled() {
            Ok(report) => return Ok(Report { damaged: loaded.damaged, ..report }),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Outdated(path)) => return Err(EngineError::Changed(path)),
            Err(Stop::Lost { blob, source }) => {
                let (ran, others) = (run.ran(), run.not_whole());
                emit(Event::Warning {
                    text: lost_text(&blob, others.iter().filter(|other| **other != source).count()),
                });
                for lost in others.into_iter().chain([source]) {
                    history.forget(lost);
                }
                let count = losses.entry(source).or_default();
                *count += 1;
                if *count > RESTARTS {
                    return Err(EngineError::Vanishing(source));
                }
                // What was forced and has run is not forced again.
                wanted.forced.iter_mut().zip(ran).for_each(|(forced, ran)| *forced &= !ran);
            }
        }
    }
}
