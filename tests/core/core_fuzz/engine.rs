//! A simulated engine: drives the schedule over a model world, several actions at a time, and notes what ran.
//!
//! It performs actions by asking the world, never the manifest. What it notes, it judges by what a run truly saw, never by a key.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use t2t_model::action::{Action, Dependency, Identity, Lane, Phase, Source, Target};
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::manifest::Fact;
use t2t_model::path::RepoPath;
use t2t_model::record::{Blob, Outcome, Record, Seen};
use t2t_plan::decide::Why;
use t2t_plan::graph::{Graph, Index, Wanted};
use t2t_plan::schedule::{Schedule, Settled, Step};

use crate::core_fuzz::flaw::{Flaw, seconds};
use crate::world::random::Dice;
use crate::world::{Deadlines, End, Inputs, Run, World, from, is_python};

/// What a build is asked for, and what the machine will do to it.
#[derive(Clone, Default, Debug)]
pub struct Orders {
    /// With all they need.
    pub wanted: BTreeSet<usize>,
    pub forced: BTreeSet<usize>,
    /// Those that the machine loses, if they run.
    pub doomed: BTreeSet<usize>,
}

/// What a build did.
#[derive(Default, Debug)]
pub struct Build {
    pub ends: BTreeMap<usize, End>,
    pub ran: Vec<usize>,
    pub lost: BTreeSet<usize>,
    /// Those that ran although an earlier run had seen the same.
    pub needless: Vec<usize>,
}

/// The engine, between builds.
pub struct Engine {
    pub flaw: Flaw,
    pub dice: Dice,
    /// How often each thing happened that the code under test can do.
    pub tally: BTreeMap<&'static str, usize>,
    /// Under which deadline each run that was not lost ended.
    pub made: Deadlines,
    history: History,
    contents: HashMap<Digest, String>,
    keys: Vec<(Digest, usize, Inputs)>,
    runs: usize,
    keeps_lost: bool,
}

/// An action that is being performed.
struct Job {
    number: usize,
    index: Index,
    key: Digest,
    run: Run,
}

impl Engine {
    pub fn new(flaw: Flaw, mut dice: Dice) -> Self {
        let keeps_lost = flaw == Flaw::LostReused || dice.once_in(2);
        let (history, tally, made) = Default::default();
        Self { flaw, dice, tally, made, history, contents: HashMap::new(), keys: Vec::new(), runs: 0, keeps_lost }
    }

    /// Builds what is wanted of `world`.
    pub fn build(&mut self, world: &World, orders: &Orders) -> Build {
        let actions = world.order.iter().map(|&number| self.flaw.action(action(world, number))).collect();
        let graph = Graph::seal(actions).unwrap();
        let mut schedule = Schedule::new(&graph, wanted(world, orders));
        let mut build = Build::default();
        let mut jobs = Vec::new();
        let slots = 1 + self.dice.below(4);
        loop {
            if jobs.len() < slots
                && let Some(step) =
                    schedule.next_step(&self.history, &|path, old| self.flaw.seen(old, seen(world, path, old)))
            {
                jobs.extend(self.take(world, orders, &schedule, &graph, step, &mut build));
            } else if jobs.is_empty() {
                break;
            } else {
                let job = jobs.swap_remove(self.dice.below(jobs.len()));
                let index = job.index;
                schedule.finish(index, self.perform(world, orders, job, &mut build));
            }
        }
        build.ends = ends(world, &graph, &schedule, &self.contents);
        build
    }

    /// Loses an earlier result, as a damaged store does.
    pub fn damage(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let (lost, ..) = *self.dice.pick(&self.keys);
        self.history.forget(lost);
        for (_, number, inputs) in self.keys.extract_if(.., |(key, ..)| *key == lost) {
            self.made.remove(&(number, inputs));
        }
    }

    fn take(
        &mut self,
        world: &World,
        orders: &Orders,
        schedule: &Schedule<'_>,
        graph: &Graph,
        step: Step,
        build: &mut Build,
    ) -> Option<Job> {
        match step {
            Step::Recall { .. } => unreachable!("the history is whole"),
            Step::Read { .. } => unreachable!("no kernel file is made"),
            Step::Settled(index) => {
                let settled = schedule.settled(index).unwrap();
                self.count(word(settled));
                if let Settled::Restored(record) = settled {
                    self.flaw.add(&mut self.history, (**record).clone());
                }
                None
            }
            Step::Run { index, manifest, why } => {
                self.count(reason(&why));
                let number = number(graph, index);
                let upstream = upstream(world, number, graph, schedule, &self.contents);
                if !orders.forced.contains(&number) && self.saw_before(world, number, &upstream) {
                    build.needless.push(number);
                }
                build.ran.push(number);
                let run = world.run(number, upstream, world.steps[number].deadline);
                Some(Job { number, index, key: manifest.key(), run })
            }
        }
    }

    /// Returns whether an earlier run of the action saw the same, and more time would not change how it ended.
    fn saw_before(&self, world: &World, number: usize, upstream: &Inputs) -> bool {
        let deadline = world.steps[number].deadline;
        let run = world.run(number, upstream.clone(), deadline);
        self.made.get(&(number, run.inputs)).is_some_and(|&past| {
            let end = world.run(number, upstream.clone(), past).end;
            past >= deadline || !matches!(end, End::Result { rejected: Some("timeout"), .. })
        })
    }

    fn perform(&mut self, world: &World, orders: &Orders, job: Job, build: &mut Build) -> Settled {
        self.runs += 1;
        let deadline = world.steps[job.number].deadline;
        let mut record = record(world, &job, deadline);
        if orders.doomed.contains(&job.number) {
            build.lost.insert(job.number);
            if self.keeps_lost {
                record.outcome = Outcome::Lost { reason: "the power went".to_owned() };
                self.flaw.add(&mut self.history, record);
            }
            return Settled::Lost("the power went".to_owned());
        }
        if let End::Result { artifacts, .. } = &job.run.end {
            record.outputs = artifacts.iter().map(|(&name, content)| (name.to_owned(), self.keep(content))).collect();
        }
        self.keys.push((job.key, job.number, job.run.inputs.clone()));
        self.made.insert((job.number, job.run.inputs), deadline);
        self.flaw.add(&mut self.history, record.clone());
        Settled::Ran(record.into())
    }

    fn keep(&mut self, content: &str) -> Blob {
        let salted = format!("{content} {}", self.flaw.salt(self.runs));
        let digest = Digest::of(salted.as_bytes());
        self.contents.insert(digest, content.to_owned());
        Blob { digest, size: salted.len() as u64 }
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }
}

fn target(number: usize) -> Target {
    Target::of_op(&number.to_string(), Phase::Check)
}

fn number(graph: &Graph, index: Index) -> usize {
    graph.action(index).target().op.parse().unwrap()
}

fn path(name: &str) -> RepoPath {
    RepoPath::new(name).unwrap()
}

/// Returns the action as t2t would declare it.
fn action(world: &World, number: usize) -> Action {
    let step = &world.steps[number];
    let mut facts = BTreeMap::from([
        ("recipe".to_owned(), Fact::Text(step.recipe.number.to_string())),
        ("param".to_owned(), Fact::Text(step.param.to_string())),
    ]);
    facts.extend(step.sources.iter().map(|name| (format!("source.{name}"), source_fact(world, name))));
    let sources = step.sources.iter().filter_map(|name| Some((path(name), source(world, name)?))).collect();
    let dependency = |edge: &crate::world::Edge| Dependency { on: target(edge.on), need: edge.need, reads: edge.reads };
    Action {
        identity: Identity { target: target(number), device: None },
        lane: Lane::Cpu,
        facts,
        sources,
        generated: None,
        judging: None,
        dependencies: step.edges.iter().map(dependency).collect(),
        deadline: seconds(step.deadline),
    }
}

fn source(world: &World, name: &str) -> Option<Source> {
    world.files.contains_key(name).then(|| Source {
        meaning: Digest::of(world.meaning(name).as_bytes()),
        bytes: Digest::of(world.bytes(name).as_bytes()),
    })
}

fn source_fact(world: &World, name: &str) -> Fact {
    source(world, name).map_or_else(|| Fact::Text("absent".to_owned()), |source| Fact::Digest(source.meaning))
}

/// Returns what a file is now, in the terms in which it was seen.
fn seen(world: &World, path: &RepoPath, old: Seen) -> Seen {
    match (source(world, path.as_str()), old) {
        (None, _) => Seen::Absent,
        (Some(source), Seen::Bytes(_)) => Seen::Bytes(source.bytes),
        (Some(source), Seen::Meaning(_)) => Seen::Meaning(source.meaning),
        (Some(_), Seen::Absent) => as_discovered(world, path.as_str()),
    }
}

/// Returns what a record keeps of a file that was looked at.
fn as_discovered(world: &World, name: &str) -> Seen {
    match source(world, name) {
        None => Seen::Absent,
        Some(source) if is_python(name) => Seen::Meaning(source.meaning),
        Some(source) => Seen::Bytes(source.bytes),
    }
}

fn as_cited(world: &World, name: &str) -> Seen {
    source(world, name).map_or(Seen::Absent, |source| Seen::Bytes(source.bytes))
}

fn discovered(world: &World, job: &Job) -> BTreeMap<RepoPath, Seen> {
    let looked = job.run.looked.iter();
    if job.run.cites {
        let cited = looked.chain(&world.steps[job.number].sources);
        return cited.map(|name| (path(name), as_cited(world, name))).collect();
    }
    looked.map(|name| (path(name), as_discovered(world, name))).collect()
}

/// Returns the record of a job, with no artifacts yet.
fn record(world: &World, job: &Job, deadline: usize) -> Record {
    let outcome = match job.run.end {
        End::Result { rejected: Some(class), .. } => Outcome::Rejected { class: class.to_owned() },
        _ => Outcome::Passed,
    };
    Record {
        identity: Identity { target: target(job.number), device: None },
        key: job.key,
        outcome,
        outputs: BTreeMap::new(),
        discovered: discovered(world, job),
        deadline_ms: 1000 * deadline as u64,
        wall_ms: 0,
        device_ms: 0,
        circumstances: BTreeMap::new(),
    }
}

fn wanted(world: &World, orders: &Orders) -> Wanted {
    let among = |numbers: &BTreeSet<usize>| world.order.iter().map(|number| numbers.contains(number)).collect();
    Wanted { wanted: among(&orders.wanted), forced: among(&orders.forced) }
}

/// Returns what an action truly sees of those it reads.
fn upstream(
    world: &World,
    number: usize,
    graph: &Graph,
    schedule: &Schedule<'_>,
    contents: &HashMap<Digest, String>,
) -> Inputs {
    let mut seen = Inputs::new();
    for edge in &world.steps[number].edges {
        let source = graph.find(&target(edge.on)).unwrap();
        let end = end(schedule.settled(source).unwrap(), contents);
        seen.extend(edge.reads.iter().map(|name| (from(edge.on, name), end.shows(name))));
    }
    seen
}

fn ends(
    world: &World,
    graph: &Graph,
    schedule: &Schedule<'_>,
    contents: &HashMap<Digest, String>,
) -> BTreeMap<usize, End> {
    let settled = |number: usize| schedule.settled(graph.find(&target(number)).unwrap());
    (0..world.steps.len()).filter_map(|number| Some((number, end(settled(number)?, contents)))).collect()
}

/// Returns how an action ended, in the world's terms.
fn end(settled: &Settled, contents: &HashMap<Digest, String>) -> End {
    match settled {
        Settled::Skipped(_) | Settled::Withheld(_) | Settled::NotNeeded => End::Skipped,
        Settled::Lost(_) => End::Lost,
        Settled::Planned | Settled::Missing => unreachable!("nothing is only planned here, or missing"),
        Settled::Fresh(record) | Settled::Restored(record) | Settled::Ran(record) => End::Result {
            rejected: class(&record.outcome),
            artifacts: record
                .outputs
                .iter()
                .map(|(name, blob)| (artifact(name), contents[&blob.digest].clone()))
                .collect(),
        },
    }
}

fn class(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Rejected { class } if class == Outcome::TIMEOUT => Some("timeout"),
        Outcome::Rejected { .. } => Some("mismatch"),
        Outcome::Passed | Outcome::NotJudged { .. } | Outcome::Lost { .. } => None,
    }
}

fn artifact(name: &str) -> &'static str {
    crate::world::ARTIFACTS.into_iter().find(|known| *known == name).unwrap()
}

fn word(settled: &Settled) -> &'static str {
    match settled {
        Settled::Fresh(_) => "fresh",
        Settled::Restored(_) => "restored",
        Settled::Skipped(_) | Settled::Withheld(_) | Settled::NotNeeded => "skipped",
        Settled::Ran(_) | Settled::Lost(_) | Settled::Planned | Settled::Missing => {
            unreachable!("these were handed out")
        }
    }
}

fn reason(why: &Why) -> &'static str {
    match why {
        Why::Forced => "forced",
        Why::NeverRan => "never ran",
        Why::Changed { .. } => "changed",
        Why::Objection { deadline: None, .. } => "discovered",
        Why::Objection { .. } => "deadline",
        Why::Lost => "lost",
    }
}
