//! The subjects of an op's figures: its variants and its baselines, as `torch.compile`, each against torch at each size, with its runs.
//!
//! It does not know where figures are from. Intervals are the selection's; those of baselines are made as those are.

use std::collections::BTreeMap;

use serde::Serialize;
use t2t_protocol::{Baseline, Binding, Figure};

use super::Op;
use crate::rank::bootstrap::{Interval, Pairing};
use crate::rank::ratio::{Runs, ratio};
use crate::rank::{STEADY, SelectedFigures, Selection};
use crate::render::op_page::OpPage;
use crate::render::sizes::ordered;

/// The baseline that all others are compared with.
pub(crate) const TORCH: &str = "torch";

/// One subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) final_ms: Option<f64>,
    pub(crate) torch_final_ms: Option<f64>,
    pub(crate) speedup: Option<f64>,
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) unstable: bool,
    pub(crate) why_unstable: Option<String>,
    /// By size; none where it was not measured.
    pub(crate) points: Vec<Option<Point>>,
}

/// A subject at a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) ms: Option<f64>,
    /// How many times as fast as torch.
    pub(crate) speedup: Option<f64>,
    /// Its 95 % interval.
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) unstable: bool,
    /// Each run's mean as a part of the mean of all.
    #[serde(skip)]
    pub(crate) runs: Vec<f64>,
}

/// Returns the figures of a variant: those that a device published where there are such, else its own.
pub(crate) fn figures<'a>(selection: &'a Selection, name: &str) -> Option<&'a SelectedFigures> {
    match &selection.published {
        Some(published) => published.variants.iter().find(|row| row.name == name)?.figures.as_ref(),
        None => selection.variants.iter().find(|row| row.name == name)?.figures.as_ref(),
    }
}

/// Returns the page that has the benches and baselines behind the figures.
fn measured<'a>(op: &'a Op<'a>) -> &'a OpPage<'a> {
    op.there.as_ref().unwrap_or(&op.own)
}

/// Returns the sizes at which something was measured, small ones first.
pub(crate) fn sizes(op: &Op<'_>) -> Vec<String> {
    let page = measured(op);
    let baseline = page.baseline.document().into_iter().flat_map(|baseline| &baseline.sizes);
    let benches = page.variants.iter().filter_map(|variant| variant.result.bench.document());
    let told: Vec<(&String, &Binding)> = baseline
        .map(|(name, size)| (name, &size.binding))
        .chain(benches.flat_map(|bench| &bench.sizes).map(|(name, size)| (name, &size.binding)))
        .collect();
    let mut names = ordered(told);
    let selection = op.own.selection.document();
    let rest = selection
        .into_iter()
        .flat_map(|selection| op.own.variants.iter().filter_map(|variant| figures(selection, &variant.result.name)));
    for name in rest.flat_map(|figures| figures.sizes.keys()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns the variants with figures, in declared order, then the baselines that were measured beside torch.
pub(crate) fn of(op: &Op<'_>, sizes: &[String]) -> Vec<Subject> {
    let page = measured(op);
    let Some(selection) = op.own.selection.document() else { return Vec::new() };
    let variants = op.own.variants.iter().filter_map(|variant| {
        let name = &variant.result.name;
        let figures = figures(selection, name)?;
        let result = page.variants.iter().find(|variant| variant.result.name == *name);
        let bench = result.and_then(|variant| variant.result.bench.document());
        let runs = |size: &String| runs(bench?.sizes.get(size)?.variant.as_ref()?);
        Some(Subject::of(name, figures, sizes, &|size| runs(size).unwrap_or_default()))
    });
    let baselines = page.baseline.document().into_iter().flat_map(|baseline| {
        let names = baseline.finals.keys().filter(|name| *name != TORCH);
        names.filter_map(|name| beside_torch(baseline, name, sizes))
    });
    variants.chain(baselines).collect()
}

impl Subject {
    fn of(name: &str, figures: &SelectedFigures, sizes: &[String], runs: &dyn Fn(&String) -> Vec<f64>) -> Self {
        let points = sizes.iter().map(|size| {
            let at = figures.sizes.get(size)?;
            let (speedup, interval) = (at.speedup, at.interval);
            Some(Point { ms: at.ms, speedup, interval, unstable: at.unstable, runs: runs(size) })
        });
        Self {
            name: name.to_owned(),
            kind: "variant",
            final_ms: Some(figures.final_ms),
            torch_final_ms: figures.torch_final_ms,
            speedup: figures.speedup,
            interval: figures.interval,
            unstable: figures.unstable,
            why_unstable: figures.why_unstable.clone(),
            points: points.collect(),
        }
    }
}

/// Returns the baseline of this name against torch, as both were measured.
fn beside_torch(baseline: &Baseline, name: &str, sizes: &[String]) -> Option<Subject> {
    let at = |size: &String| {
        let size = baseline.sizes.get(size)?;
        Some((size.figure(TORCH)?, size.figure(name)?))
    };
    let found: BTreeMap<&String, (&Figure, &Figure)> =
        sizes.iter().filter_map(|size| Some((size, at(size)?))).collect();
    if found.is_empty() {
        return None;
    }
    let interval = |torch: &[&Figure], own: &[&Figure]| {
        let [torch, own] = [torch, own].map(|figures| figures.iter().map(|figure| Runs::from(*figure)).collect());
        let (torch, own): (Vec<Runs>, Vec<Runs>) = (torch, own);
        ratio(&torch.iter().collect::<Vec<_>>(), &own.iter().collect::<Vec<_>>(), Pairing::Interleaved)
            .map(Interval::bounds)
    };
    let points = sizes.iter().map(|size| {
        let (torch, own) = *found.get(size)?;
        Some(Point {
            ms: Some(own.mean),
            speedup: Some(torch.mean / own.mean),
            interval: interval(&[torch], &[own]),
            unstable: baseline.unstable && own.cv > STEADY,
            runs: runs(own).unwrap_or_default(),
        })
    });
    let finals = |name: &str| baseline.finals.get(name).copied().flatten();
    let (torch, own): (Vec<&Figure>, Vec<&Figure>) = found.values().copied().unzip();
    Some(Subject {
        name: name.to_owned(),
        kind: "baseline",
        final_ms: finals(name),
        torch_final_ms: finals(TORCH),
        speedup: finals(TORCH).zip(finals(name)).map(|(torch, own)| torch / own),
        interval: interval(&torch, &own),
        unstable: baseline.unstable,
        why_unstable: baseline.why_unstable.clone(),
        points: points.collect(),
    })
}

/// Returns each run's mean as a part of the mean of all.
fn runs(figure: &Figure) -> Option<Vec<f64>> {
    (figure.mean > 0.0).then(|| figure.runs.iter().map(|run| run.mean / figure.mean).collect())
}
