//! Attempts at generated kernels: which actions there are, what their keys hold, and what becomes of them.
//!
//! Nothing runs: actions end as a test says.

use std::collections::BTreeMap;

use t2t_model::action::{DeviceClass, Phase, Source, Target};
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::manifest::Manifest;
use t2t_model::path::RepoPath;
use t2t_model::record::{Blob, KERNEL, Outcome, Record, Seen};
use t2t_plan::attempts::{is_replaced, standing};
use t2t_plan::graph::expand::{Inventory, KernelFile, expand};
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::graph::{Graph, Wanted};
use t2t_plan::schedule::{Made, Schedule, Settled, Step};
use t2t_spec::Spec;

use crate::inventory::inventory;

const OPS: &str = "version: 1\nops:\n  softmax:\n    torch: torch.nn.functional.softmax\n    inputs: {input: [M, N]}\n    variants: [v1_baseline]\n    generator: template\n";

const FILE: &str = "kernels/softmax/v1_baseline.py";

/// A workspace with one variant, and what is known of earlier builds.
struct World {
    spec: Spec,
    inventory: Inventory,
    history: History,
    /// The kernel file, where a person wrote it.
    own: Option<&'static str>,
}

/// What became of an action: how it ended, and its key.
type Ended = BTreeMap<String, (Settled, Option<Digest>)>;

fn source(text: &str) -> BTreeMap<RepoPath, Source> {
    let digest = Digest::of(text.as_bytes());
    BTreeMap::from([(RepoPath::new(FILE).unwrap(), Source { meaning: digest, bytes: digest })])
}

impl World {
    fn new(class: DeviceClass, own: Option<&'static str>) -> Self {
        let spec = Spec::parse("ops.yaml", OPS.as_bytes(), None).unwrap();
        let mut inventory = inventory(&spec, class, "");
        if let Some(text) = own {
            let file = KernelFile { closure: source(text), ..KernelFile::default() };
            inventory.files.insert(FILE.to_owned(), file);
        } else {
            inventory.files.remove(FILE);
            inventory.generated.insert(FILE.to_owned());
        }
        Self { spec, inventory, history: History::default(), own }
    }

    fn graph(&self) -> Graph {
        Graph::seal(expand(&self.spec, &self.inventory)).unwrap()
    }

    /// Builds everything. `text` is what an attempt's kernel file holds, `class` why an action that runs is rejected, if it is.
    fn build(
        &mut self,
        text: &dyn Fn(u32) -> String,
        class: &dyn Fn(&Target) -> Option<&'static str>,
    ) -> (Ended, Vec<String>) {
        let graph = self.graph();
        let all = vec![true; graph.count()];
        let mut schedule = Schedule::new(&graph, Wanted { wanted: all.clone(), forced: vec![false; all.len()] });
        let mut ran = Vec::new();
        let tree = |_: &RepoPath, _: Seen| self.own.map_or(Seen::Absent, |own| Seen::Bytes(Digest::of(own.as_bytes())));
        while let Some(step) = schedule.next_step(&self.history, &tree) {
            match step {
                Step::Recall { .. } => unreachable!("the history is whole"),
                Step::Settled(index) => {
                    if let Some(Settled::Restored(record)) = schedule.settled(index) {
                        self.history.add(record.clone());
                    }
                }
                Step::Read { index, kernel, .. } => {
                    let attempt = graph.action(index).target().attempt;
                    assert_eq!(kernel.digest, Digest::of(text(attempt).as_bytes()));
                    schedule.supply(index, Made { closure: source(&text(attempt)), fault: None });
                }
                Step::Run { index, manifest, .. } => {
                    let target = graph.action(index).target().clone();
                    let record = ended(schedule.action(index).identity.clone(), &manifest, text, class(&target));
                    self.history.add(record.clone());
                    ran.push(target.to_string());
                    schedule.finish(index, Settled::Ran(record.into()));
                }
            }
        }
        let ends = graph.indices().map(|index| {
            let settled = schedule.settled(index).unwrap().clone();
            let key = settled.record().map(|record| record.key);
            (graph.action(index).target().to_string(), (settled, key))
        });
        (ends.collect(), ran)
    }
}

fn ended(
    identity: t2t_model::action::Identity,
    manifest: &Manifest,
    text: &dyn Fn(u32) -> String,
    class: Option<&str>,
) -> Record {
    let attempt = identity.target.attempt;
    let content = match identity.target.phase {
        Phase::Generate => text(attempt),
        phase => format!("{phase} {class:?}"),
    };
    let blob = |content: &str| Blob { digest: Digest::of(content.as_bytes()), size: content.len() as u64 };
    let name = match (class, identity.target.phase) {
        (Some(_), _) => "failure",
        (None, Phase::Generate) => KERNEL,
        (None, Phase::Check) => "verdict",
        (None, phase) => phase.name(),
    };
    let mut outputs = BTreeMap::from([(name.to_owned(), blob(&content))]);
    if identity.target.phase == Phase::Generate && class.is_none() {
        outputs.insert("attempt".to_owned(), blob(&format!("attempt {attempt}")));
    }
    let outcome = class.map_or(Outcome::Passed, |class| Outcome::Rejected { class: class.to_owned() });
    // A rejection cites lines, as most do.
    let lines = source(&text(attempt)).into_iter().map(|(path, source)| (path, Seen::Bytes(source.bytes)));
    let is_cited = class.is_some() && identity.target.phase != Phase::Generate;
    Record {
        identity,
        key: manifest.key(),
        outcome,
        outputs,
        discovered: lines.filter(|_| is_cited).collect(),
        deadline_ms: u64::from(u32::MAX),
        wall_ms: 0,
        device_ms: 0,
        circumstances: BTreeMap::new(),
    }
}

fn text(attempt: u32) -> String {
    format!("text {attempt}")
}

/// Rejects the checks of the first attempts.
fn rejecting(attempts: u32) -> impl Fn(&Target) -> Option<&'static str> {
    move |target| (target.phase == Phase::Check && target.attempt <= attempts).then_some("mismatch")
}

fn not_needed(ends: &Ended) -> Vec<&str> {
    ends.iter().filter(|(_, (settled, _))| *settled == Settled::NotNeeded).map(|(name, _)| name.as_str()).collect()
}

const INTERPRETER: DeviceClass = DeviceClass::Interpreter;

#[test]
fn a_variant_that_is_made_has_an_attempt_more_than_retries() {
    let graph = World::new(INTERPRETER, None).graph();
    let names: Vec<String> = graph.indices().map(|index| graph.action(index).target().to_string()).collect();
    let of = |attempt: &str| {
        ["generate", "compile", "check", "bench"].map(|phase| format!("softmax/v1_baseline{attempt}:{phase}"))
    };
    let attempts: Vec<String> = ["", "#2", "#3", "#4"].into_iter().flat_map(of).collect();
    assert_eq!(names[1..17], attempts);
    assert!(World::new(INTERPRETER, Some("mine")).graph().count() < names.len());
}

#[test]
fn what_was_accepted_at_once_needs_no_other_attempt() {
    let mut world = World::new(INTERPRETER, None);
    let (ends, ran) = world.build(&text, &rejecting(0));
    assert_eq!(not_needed(&ends).len(), 12);
    assert!(ran.iter().all(|name| !name.contains('#')), "{ran:?}");
    assert_eq!(world.build(&text, &rejecting(0)).1, Vec::<String>::new());
}

#[test]
fn attempts_go_on_until_one_is_accepted_and_nothing_runs_twice() {
    let mut world = World::new(INTERPRETER, None);
    let (ends, ran) = world.build(&text, &rejecting(2));
    assert!(ran.contains(&"softmax/v1_baseline#3:bench".to_owned()), "{ran:?}");
    let of = |attempt: &str, phases: &[&str]| {
        phases.iter().map(|phase| format!("softmax/v1_baseline{attempt}:{phase}")).collect::<Vec<_>>()
    };
    let last = of("#4", &["bench", "check", "compile", "generate"]);
    assert_eq!(not_needed(&ends), [of("#2", &["bench"]), last, of("", &["bench"])].concat());
    let graph = world.graph();
    let settled: Vec<_> =
        graph.indices().map(|index| ends[&graph.action(index).target().to_string()].0.clone()).collect();
    let target = Target::of_variant("softmax", "v1_baseline", Phase::Check);
    let end = |index: t2t_plan::graph::Index| settled.get(index.number());
    assert_eq!(standing(&graph, &end, &target), 3);
    let is_replaced = |attempt| is_replaced(&graph, &end, graph.find(&target.of_attempt(attempt)).unwrap());
    assert_eq!([1, 2, 3, 4].map(is_replaced), [true, true, false, false]);
    assert_eq!(
        world.build(&text, &rejecting(2)).1,
        Vec::<String>::new(),
        "a rejection stands whatever lies in the file's place"
    );
}

#[test]
fn after_the_last_attempt_there_is_no_other() {
    let mut world = World::new(INTERPRETER, None);
    let (ends, ran) = world.build(&text, &rejecting(9));
    assert!(not_needed(&ends).iter().all(|name| name.ends_with(":bench")));
    assert_eq!(not_needed(&ends).len(), 3, "nothing is said of what follows from a kernel that is made again");
    assert_eq!(ran.iter().filter(|name| name.ends_with(":generate")).count(), 4);
    assert!(matches!(ends["softmax/v1_baseline#4:bench"].0, Settled::Skipped(_)));
}

#[test]
fn a_generator_without_another_form_ends_the_attempts() {
    let mut world = World::new(INTERPRETER, None);
    let fails = |target: &Target| match (target.phase, target.attempt) {
        (Phase::Generate, 2) => Some("no-further-form"),
        _ => rejecting(9)(target),
    };
    let (ends, _) = world.build(&text, &fails);
    assert_eq!(not_needed(&ends).len(), 12, "what follows the second attempt's file is none of a rejected variant's");
}

#[test]
fn what_is_made_of_a_kernel_file_has_one_key_whoever_wrote_it() {
    for class in [INTERPRETER, DeviceClass::Cuda("nvidia-h100".to_owned())] {
        let mut made = World::new(class.clone(), None);
        let (made_ends, _) = made.build(&text, &rejecting(1));
        let mut own = World::new(class.clone(), Some("text 2"));
        let (own_ends, _) = own.build(&text, &rejecting(0));
        for phase in ["compile", "check", "tune", "bench"] {
            let Some((_, key)) = own_ends.get(&format!("softmax/v1_baseline:{phase}")) else { continue };
            assert_eq!(made_ends[&format!("softmax/v1_baseline#2:{phase}")].1, *key, "{phase} on {class}");
        }
        assert_eq!(made_ends["softmax:select"].1, own_ends["softmax:select"].1, "{class}");
        own.history = made.history.clone();
        let ran = own.build(&text, &rejecting(0)).1;
        let pages = ["softmax:log".to_owned(), "summary".to_owned()];
        assert!(ran.iter().all(|name| pages.contains(name)), "{ran:?} ran for a file that was made before");
    }
}

#[test]
fn a_source_that_failed_before_is_not_asked_again() {
    let mut own = World::new(INTERPRETER, Some("text 1"));
    own.build(&text, &rejecting(1));
    let mut made = World::new(INTERPRETER, None);
    made.history = own.history.clone();
    let ran = made.build(&text, &rejecting(1)).1;
    assert!(!ran.contains(&"softmax/v1_baseline:check".to_owned()), "{ran:?}");
    assert!(ran.contains(&"softmax/v1_baseline#2:check".to_owned()), "{ran:?}");
}

#[test]
fn another_failure_is_another_attempt() {
    let mut world = World::new(INTERPRETER, None);
    let key = |world: &mut World, class: &'static str| {
        let fails = move |target: &Target| rejecting(1)(target).map(|_| class);
        world.build(&text, &fails).0["softmax/v1_baseline#2:generate"].1.unwrap()
    };
    let first = key(&mut world, "mismatch");
    world.history = History::default();
    assert_ne!(key(&mut world, "dtype"), first);
}

#[test]
fn an_attempt_is_named_by_its_number() {
    let graph = World::new(INTERPRETER, None).graph();
    let picked = |text: &str| {
        let selection = Selection { targets: vec![text.to_owned()], ..Selection::default() };
        pick(&graph, &selection, Force::Named).map(|wanted| wanted.forced.iter().filter(|forced| **forced).count())
    };
    assert_eq!(picked("softmax/v1_baseline:check"), Ok(4));
    assert_eq!(picked("softmax/v1_baseline#2:check"), Ok(1));
    assert_eq!(picked("softmax/v1_baseline#1:check"), Ok(1));
    assert_eq!(picked("softmax/v*#3"), Ok(4));
    for wrong in ["softmax/v1_baseline#0", "softmax/v1_baseline#9", "softmax/v1_baseline#x"] {
        assert!(picked(wrong).unwrap_err().message.contains("has no variant `v1_baseline#"), "{wrong}");
    }
    for written in ["softmax/v1_baseline#2:check", "softmax/v1_baseline:generate"] {
        assert_eq!(Target::try_from(written.to_owned()).unwrap().to_string(), written);
    }
    assert_eq!(Target::try_from("a/v#1:check".to_owned()).unwrap().to_string(), "a/v:check");
    for wrong in ["a/v#0:check", "a/v#02:check", "a/v#:check", "a/v#-2:check"] {
        assert!(Target::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
}
