//! The end of `t2t bench`'s output: the figures of the requested benches.

use std::collections::BTreeSet;

use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::record::Outcome;
use t2t_plan::attempts::standing;
use t2t_plan::graph::{Index, Wanted};
use t2t_plan::schedule::Settled;
use t2t_protocol::read;
use t2t_report::render::bench_table::{Bench, Measured, text};

use super::streams::width;
use crate::engine::Report;
use crate::session::Session;

/// Returns a table for each op with a wanted bench.
pub(crate) fn figures(session: &Session, wanted: &Wanted, report: &Report) -> String {
    let measured = match session.inventory.device.class {
        DeviceClass::Interpreter => Measured::Interpreted,
        DeviceClass::Cuda(_) => Measured::OnADevice,
    };
    let benches: BTreeSet<&Target> = session
        .graph
        .indices()
        .filter(|index| wanted.wanted[index.number()])
        .map(|index| session.graph.action(index).target())
        .filter(|target| target.phase == Phase::Bench)
        .collect();
    let mut tables = String::new();
    for op in &session.spec.ops {
        let named = op.variants.iter().map(|variant| variant.name.as_str());
        let wanted = named.filter(|name| benches.contains(&Target::of_variant(&op.name, name, Phase::Bench)));
        let rows: Vec<(&str, Bench)> = wanted.map(|name| (name, bench(session, report, &op.name, name))).collect();
        if !rows.is_empty() {
            tables += &text(&op.name, &rows, measured, width());
        }
    }
    tables
}

fn bench(session: &Session, report: &Report, op: &str, variant: &str) -> Bench {
    let ends = |index: Index| report.settled[index.number()].as_ref();
    let first = Target::of_variant(op, variant, Phase::Bench);
    let index = session.graph.find(&first.of_attempt(standing(&session.graph, &ends, &first)));
    let settled = index.and_then(|index| report.settled[index.number()].as_ref());
    let record = match settled {
        Some(Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record)) => record,
        Some(Settled::Skipped(on)) => return Bench::Missing(format!("{on} did not pass")),
        Some(Settled::Withheld(reason)) => return Bench::Missing(reason.clone()),
        Some(Settled::Lost(reason)) => return Bench::Missing(format!("lost: {reason}")),
        Some(Settled::Planned | Settled::Missing | Settled::NotNeeded) | None => {
            return Bench::Missing("it did not run".to_owned());
        }
    };
    match &record.outcome {
        Outcome::Rejected { class } => return Bench::Missing(format!("rejected ({class})")),
        Outcome::NotJudged { reason } => return Bench::Missing(format!("not judged: {reason}")),
        Outcome::Passed | Outcome::Lost { .. } => {}
    }
    let Some(blob) = record.outputs.get("bench") else { return Bench::Missing("it was not measured".to_owned()) };
    let document = session.cas().get(blob.digest).map(|bytes| read::document(&bytes));
    match document {
        Ok(Ok(document)) => Bench::Measured(Box::new(document)),
        Ok(Err(misfit)) => Bench::Missing(format!("its figures cannot be read: {misfit}")),
        Err(_) => Bench::Missing("its figures are not in the store any more".to_owned()),
    }
}
