//! How long the pure core takes for 10 to 10,000 ops of three variants: ops.yaml is parsed, expanded to the graph of all actions, each action is decided with a
//! result that stands, and the summary is rendered. `cargo bench --bench core`; a word behind `--` chooses benches, as in `-- decide/1000`.
//!
//! It reads no file of a workspace and starts no process.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde::de::DeserializeOwned;
use t2t_model::action::DeviceClass;
use t2t_model::history::History;
use t2t_model::record::{Blob, Outcome, Record};
use t2t_plan::graph::expand::{Inventory, expand};
use t2t_plan::graph::{Graph, Wanted};
use t2t_plan::schedule::{Schedule, Settled, Step};
use t2t_protocol::read;
use t2t_report::rank::{Found, Lane, Selection, VariantResult, select};
use t2t_report::render::build_page::{BuildPage, OpSummary};
use t2t_report::render::{Template, summary};
use t2t_spec::Spec;

#[path = "../../tests/core/inventory.rs"]
#[allow(unreachable_pub, reason = "the tests of the core, whose file it is, need it so")]
mod inventory;

/// Numbers of ops.
const COUNTS: [usize; 4] = [10, 100, 1_000, 10_000];

/// The template of a workspace that has none of its own.
const TEMPLATE: Template<'_> =
    Template { path: "assets/summary_template.md", text: include_str!("../../assets/summary_template.md") };

/// Returns an ops.yaml of `count` ops.
fn ops(count: usize) -> String {
    let mut text = String::from("version: 1\ndefaults: {variants: [v1_baseline, v2_tiling, v3_coalesced]}\nops:\n");
    for number in 0..count {
        let op = format!(
            "  op{number}: {{torch: torch.nn.functional.softmax, inputs: {{input: [M, N]}}, kwargs: {{dim: -1}}}}"
        );
        writeln!(text, "{op}").expect("a text takes all");
    }
    text
}

fn spec(text: &str) -> Spec {
    Spec::parse("ops.yaml", text.as_bytes(), None).expect("the ops are right")
}

fn machine(spec: &Spec) -> Inventory {
    inventory::inventory(spec, DeviceClass::Cuda("nvidia-h200".to_owned()), "")
}

/// Decides every action of a graph, and returns how many had a last result that stands. What has none passes, or gets that of its like, and `history` learns of it.
fn decide(graph: &Graph, history: &mut History) -> usize {
    let wanted = Wanted { wanted: vec![true; graph.count()], forced: vec![false; graph.count()] };
    let mut schedule = Schedule::new(graph, wanted);
    let mut standing = 0;
    while let Some(step) = schedule.next_step(history, &|_, seen| seen) {
        match step {
            Step::Settled(index) => match schedule.settled(index) {
                Some(Settled::Fresh(_)) => standing += 1,
                Some(Settled::Restored(record)) => history.add(record.clone()),
                _ => {}
            },
            Step::Recall { .. } | Step::Read { .. } => {
                unreachable!("the history has all results, and no kernel is made")
            }
            Step::Run { index, manifest, .. } => {
                let action = graph.action(index);
                let reads = graph.dependents(index).into_iter().flat_map(|dependent| graph.dependencies(dependent));
                let names = reads.filter(|(on, _)| *on == index).flat_map(|(_, dependency)| dependency.reads);
                let record = Record {
                    identity: action.identity.clone(),
                    key: manifest.key(),
                    outcome: Outcome::Passed,
                    outputs: names.map(|name| ((*name).to_owned(), Blob { digest: manifest.key(), size: 1 })).collect(),
                    discovered: BTreeMap::new(),
                    deadline_ms: 60_000,
                    wall_ms: 1,
                    device_ms: 0,
                    circumstances: BTreeMap::new(),
                };
                history.add(record.clone());
                schedule.finish(index, Settled::Ran(record.into()));
            }
        }
    }
    standing
}

fn sample<T: DeserializeOwned>(text: &str) -> T {
    read::document(text.as_bytes()).expect("the sample is such a document")
}

/// Returns the document `selection` of an op of which one variant was measured.
fn selection() -> Found<Selection> {
    let passed = sample(include_str!("../../tests/it/samples/verdict_passed.json"));
    let bench = sample(include_str!("../../tests/it/samples/bench_v4.json"));
    let baseline = sample(include_str!("../../tests/it/samples/baseline.json"));
    let variant = VariantResult {
        name: "v3_coalesced".to_owned(),
        verdict: Found::Document(passed),
        bench: Found::Document(bench),
    };
    Found::Document(select(&[variant], Some(&baseline), Lane::Device))
}

/// Benches `work` on what `prepared` makes of a number of ops, for each of [`COUNTS`].
fn bench<P>(
    criterion: &mut Criterion,
    name: &str,
    prepared: impl Fn(usize) -> P,
    mut work: impl FnMut(&mut P) -> usize,
) {
    let mut group = criterion.benchmark_group(name);
    // Ten thousand ops take up to a second, and a hundred samples of that would take minutes.
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    for count in COUNTS {
        group.throughput(Throughput::Elements(count as u64));
        // Only what was chosen is prepared, and once: criterion asks for many samples.
        let mut value = None;
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            let value = value.get_or_insert_with(|| prepared(count));
            bencher.iter(|| black_box(work(value)));
        });
    }
    group.finish();
}

fn core(criterion: &mut Criterion) {
    bench(criterion, "parse", ops, |text| spec(text).ops.len());
    let declared = |count| {
        let spec = spec(&ops(count));
        let machine = machine(&spec);
        (spec, machine)
    };
    bench(criterion, "expand", declared, |(spec, machine)| {
        Graph::seal(expand(spec, machine)).expect("the graph has no circle").count()
    });
    let built = |count| {
        let (spec, machine) = declared(count);
        let graph = Graph::seal(expand(&spec, &machine)).expect("the graph has no circle");
        let mut history = History::default();
        assert_eq!(decide(&graph, &mut history), 0, "nothing is known at first");
        assert_eq!(decide(&graph, &mut history), graph.count(), "then each result stands");
        (graph, history)
    };
    bench(criterion, "decide", built, |(graph, history)| decide(graph, history));
    let pages = |count: usize| -> Vec<OpSummary> {
        let selection = selection();
        (0..count).map(|number| OpSummary::of(&format!("op{number}"), &selection)).collect()
    };
    let calibration = Found::Lost;
    bench(criterion, "render", pages, |pages| {
        let page = BuildPage {
            ops: pages.iter().collect(),
            files: pages.iter().map(|page| format!("logs/{}_log.md", page.op())).collect(),
            calibration: &calibration,
            wall: Duration::from_mins(1),
            device: Duration::from_secs(30),
        };
        summary(TEMPLATE, &page).expect("the template is right").len()
    });
}

criterion_group!(benches, core);
criterion_main!(benches);
