//! A play: a few actions over a few files, built again and again, and the log of what was decided, with reasons.
//!
//! A file's text may end in a comment, `x = 1 # like this`, which its bytes show and its meaning does not.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use t2t_model::action::{Action, Dependency, DeviceClass, Identity, Lane, Need, Phase, Source, Target};
use t2t_model::digest::Digest;
use t2t_model::history::History;
use t2t_model::manifest::Fact;
use t2t_model::path::RepoPath;
use t2t_model::record::{Blob, Outcome, Record, Seen};
use t2t_plan::decide::{FileChange, Why};
use t2t_plan::graph::{Graph, Index, Wanted};
use t2t_plan::schedule::{Schedule, Settled, Step};

/// What an action finds when it runs.
pub struct View<'a> {
    files: &'a BTreeMap<String, String>,
    /// What it reads of others: `name.artifact` → content.
    pub inputs: BTreeMap<String, String>,
    /// In seconds.
    pub deadline: u64,
    discovered: BTreeMap<RepoPath, Seen>,
}

/// What a run made.
pub struct Made {
    outcome: Outcome,
    artifacts: Vec<(&'static str, String)>,
}

type Doing = Box<dyn Fn(&mut View<'_>) -> Made>;

struct Part {
    needs: Vec<Dependency>,
    parameter: String,
    sources: Vec<String>,
    deadline: u64,
    doing: Doing,
}

/// The files, the actions, and what is known of earlier builds.
#[derive(Default)]
pub struct Play {
    files: BTreeMap<String, String>,
    order: Vec<String>,
    parts: HashMap<String, Part>,
    device: Option<DeviceClass>,
    history: History,
    contents: HashMap<Digest, String>,
}

/// Returns a run that passed and made `content`.
pub fn passes(content: &str) -> Made {
    Made { outcome: Outcome::Passed, artifacts: vec![("out", content.to_owned())] }
}

/// Returns a run that was rejected, with evidence.
pub fn rejects(class: &str, evidence: &str) -> Made {
    Made { outcome: Outcome::Rejected { class: class.to_owned() }, artifacts: vec![("evidence", evidence.to_owned())] }
}

/// Returns a run that the machine lost.
pub fn loses() -> Made {
    Made { outcome: Outcome::Lost { reason: "the power went".to_owned() }, artifacts: Vec::new() }
}

/// Returns the name of the action that tests call `name`.
pub fn target(name: &str) -> Target {
    Target::of_op(name, Phase::Check)
}

/// Returns the need of a pass of `on`, whose artifact `out` is read.
pub fn pass(on: &str) -> Dependency {
    Dependency { on: target(on), need: Need::Pass, reads: &["out"] }
}

/// Returns the need of any end of `on`, whose artifact `out` is read.
pub fn settle(on: &str) -> Dependency {
    Dependency { on: target(on), need: Need::Settle, reads: &["out"] }
}

/// Returns the need of a rejection of `on`, whose evidence is read.
pub fn reject(on: &str) -> Dependency {
    Dependency { on: target(on), need: Need::Reject, reads: &["evidence"] }
}

/// Returns the need of a pass of `on`, of which nothing is read.
pub fn order_only(on: &str) -> Dependency {
    Dependency { on: target(on), need: Need::Pass, reads: &[] }
}

/// Returns an action with nothing but a name and needs.
pub fn action(name: &str, dependencies: Vec<Dependency>) -> Action {
    Action {
        identity: Identity { target: target(name), device: None },
        lane: Lane::Cpu,
        facts: BTreeMap::from([("kind".to_owned(), Fact::Text("check".to_owned()))]),
        sources: BTreeMap::new(),
        generated: None,
        judging: None,
        dependencies,
        deadline: Duration::from_mins(1),
    }
}

impl View<'_> {
    /// Returns the text of a file without its comment, and notes that it was looked for.
    pub fn look_at(&mut self, name: &str) -> Option<String> {
        let seen = seen(self.files, &path(name), Seen::Absent);
        self.discovered.insert(path(name), seen);
        self.files.get(name).map(|text| meaning(text).to_owned())
    }

    /// Notes that the evidence cites lines of a file, and returns the text with its comment.
    pub fn cite(&mut self, name: &str) -> String {
        let text = self.files[name].clone();
        self.discovered.insert(path(name), Seen::Bytes(Digest::of(text.as_bytes())));
        text
    }

    /// Returns the text of a file that the action declared, without its comment.
    pub fn source(&self, name: &str) -> &str {
        meaning(&self.files[name])
    }

    fn all_inputs(&self) -> String {
        self.inputs.values().cloned().collect::<Vec<_>>().join("+")
    }
}

impl Play {
    /// Adds an action, which passes and makes `out` of what it reads of others, until told otherwise.
    pub fn add<const COUNT: usize>(&mut self, name: &str, needs: [Dependency; COUNT]) -> &mut Self {
        let doing: Doing = Box::new(|view| passes(&view.all_inputs()));
        let part = Part { needs: needs.into(), parameter: String::new(), sources: Vec::new(), deadline: 60, doing };
        self.order.push(name.to_owned());
        self.parts.insert(name.to_owned(), part);
        self
    }

    /// Says what an action does from now on.
    pub fn does(&mut self, name: &str, doing: impl Fn(&mut View<'_>) -> Made + 'static) -> &mut Self {
        self.part(name).doing = Box::new(doing);
        self
    }

    /// Declares that a file is in the closure of an action.
    pub fn source(&mut self, name: &str, file: &str) -> &mut Self {
        self.part(name).sources.push(file.to_owned());
        self
    }

    pub fn parameter(&mut self, name: &str, value: &str) -> &mut Self {
        value.clone_into(&mut self.part(name).parameter);
        self
    }

    pub fn deadline(&mut self, name: &str, seconds: u64) -> &mut Self {
        self.part(name).deadline = seconds;
        self
    }

    pub fn device(&mut self, device: DeviceClass) -> &mut Self {
        self.device = Some(device);
        self
    }

    pub fn declare_in_reverse(&mut self) -> &mut Self {
        self.order.reverse();
        self
    }

    pub fn write(&mut self, file: &str, text: &str) -> &mut Self {
        self.files.insert(file.to_owned(), text.to_owned());
        self
    }

    pub fn delete(&mut self, file: &str) -> &mut Self {
        self.files.remove(file);
        self
    }

    /// Builds everything, and returns what was decided, in order.
    pub fn build(&mut self) -> Vec<String> {
        let all: Vec<String> = self.order.clone();
        self.build_wanted(&all.iter().map(String::as_str).collect::<Vec<_>>(), &[])
    }

    /// Builds everything, some of it whatever is known.
    pub fn force(&mut self, forced: &[&str]) -> Vec<String> {
        let all: Vec<String> = self.order.clone();
        self.build_wanted(&all.iter().map(String::as_str).collect::<Vec<_>>(), forced)
    }

    /// Builds these only.
    pub fn build_only(&mut self, wanted: &[&str]) -> Vec<String> {
        self.build_wanted(wanted, &[])
    }

    /// Asks what a build would run, and runs nothing.
    pub fn plan(&self) -> Vec<String> {
        let graph = self.graph();
        let all = vec![true; graph.count()];
        let mut schedule = Schedule::new(&graph, Wanted { wanted: all, forced: vec![false; graph.count()] });
        let mut log = Vec::new();
        while let Some(step) = schedule.next_step(&self.history, &|path, like| seen(&self.files, path, like)) {
            match step {
                Step::Recall { .. } => unreachable!("the history is whole"),
                Step::Read { .. } => unreachable!("no kernel file is made"),
                Step::Settled(index) => log.push(settled_line(&graph, &schedule, index)),
                Step::Run { index, why, .. } => {
                    log.push(format!("{}: would run, {}", name(&graph, index), words(&why)));
                    schedule.finish(index, Settled::Planned);
                }
            }
        }
        log
    }

    /// Returns the content of an artifact of an action's last result.
    pub fn made(&self, name: &str, artifact: &str) -> &str {
        let identity = Identity { target: target(name), device: self.device.clone() };
        &self.contents[&self.history.last(&identity).unwrap().outputs[artifact].digest]
    }

    fn build_wanted(&mut self, wanted: &[&str], forced: &[&str]) -> Vec<String> {
        let graph = self.graph();
        let among = |names: &[&str]| self.order.iter().map(|name| names.contains(&name.as_str())).collect();
        let mut schedule = Schedule::new(&graph, Wanted { wanted: among(wanted), forced: among(forced) });
        let mut log = Vec::new();
        let files = self.files.clone();
        while let Some(step) = schedule.next_step(&self.history, &|path, like| seen(&files, path, like)) {
            match step {
                Step::Recall { .. } => unreachable!("the history is whole"),
                Step::Read { .. } => unreachable!("no kernel file is made"),
                Step::Settled(index) => {
                    log.push(settled_line(&graph, &schedule, index));
                    if let Some(Settled::Restored(record)) = schedule.settled(index) {
                        self.history.add(record.clone());
                    }
                }
                Step::Run { index, manifest, why } => {
                    log.push(format!("{}: ran, {}", name(&graph, index), words(&why)));
                    let record = self.perform(graph.action(index), manifest.key(), &schedule.inputs(index));
                    self.history.add(record.clone());
                    schedule.finish(index, settled(record));
                }
            }
        }
        log
    }

    fn perform(&mut self, action: &Action, key: Digest, inputs: &BTreeMap<String, Blob>) -> Record {
        let part = &self.parts[&action.target().op];
        let input = |(name, blob): (&String, &Blob)| (plain(name), self.contents[&blob.digest].clone());
        let inputs = inputs.iter().map(input).collect();
        let mut view = View { files: &self.files, inputs, deadline: part.deadline, discovered: BTreeMap::new() };
        let made = (part.doing)(&mut view);
        let discovered = view.discovered;
        let outputs = made.artifacts.into_iter().map(|(name, content)| (name.to_owned(), self.keep(content))).collect();
        Record {
            identity: action.identity.clone(),
            key,
            outcome: made.outcome,
            outputs,
            discovered,
            deadline_ms: u64::try_from(action.deadline.as_millis()).unwrap(),
            wall_ms: 0,
            device_ms: 0,
            circumstances: BTreeMap::new(),
        }
    }

    fn keep(&mut self, content: String) -> Blob {
        let blob = Blob { digest: Digest::of(content.as_bytes()), size: content.len() as u64 };
        self.contents.insert(blob.digest, content);
        blob
    }

    fn part(&mut self, name: &str) -> &mut Part {
        self.parts.get_mut(name).unwrap()
    }

    fn graph(&self) -> Graph {
        Graph::seal(self.order.iter().map(|name| self.action(name)).collect()).unwrap()
    }

    fn action(&self, name: &str) -> Action {
        let part = &self.parts[name];
        let mut action = action(name, part.needs.clone());
        action.identity.device.clone_from(&self.device);
        action.deadline = Duration::from_secs(part.deadline);
        action.facts.insert("parameter".to_owned(), Fact::Text(part.parameter.clone()));
        for file in &part.sources {
            let text = &self.files[file];
            let source = Source { meaning: Digest::of(meaning(text).as_bytes()), bytes: Digest::of(text.as_bytes()) };
            action.facts.insert(format!("source.{file}"), Fact::Digest(source.meaning));
            action.sources.insert(path(file), source);
        }
        action
    }
}

fn path(name: &str) -> RepoPath {
    RepoPath::new(name).unwrap()
}

fn meaning(text: &str) -> &str {
    text.split(" #").next().unwrap()
}

/// Returns what a file is now, in the terms in which it was seen.
fn seen(files: &BTreeMap<String, String>, path: &RepoPath, like: Seen) -> Seen {
    match (files.get(path.as_str()), like) {
        (None, _) => Seen::Absent,
        (Some(text), Seen::Bytes(_)) => Seen::Bytes(Digest::of(text.as_bytes())),
        (Some(text), Seen::Meaning(_) | Seen::Absent) => Seen::Meaning(Digest::of(meaning(text).as_bytes())),
    }
}

fn settled(record: Record) -> Settled {
    match record.outcome {
        Outcome::Lost { reason } => Settled::Lost(reason),
        Outcome::Passed | Outcome::Rejected { .. } | Outcome::NotJudged { .. } => Settled::Ran(record.into()),
    }
}

fn name(graph: &Graph, index: Index) -> String {
    graph.action(index).target().op.clone()
}

/// Returns `parse.out` for `from.parse:check.out`.
fn plain(fact: &str) -> String {
    fact.trim_start_matches("from.").replace(":check", "")
}

fn settled_line(graph: &Graph, schedule: &Schedule<'_>, index: Index) -> String {
    let what = match schedule.settled(index).unwrap() {
        Settled::Fresh(_) => "fresh".to_owned(),
        Settled::Restored(_) => "restored".to_owned(),
        Settled::Skipped(on) => format!("skipped for {}", on.op),
        Settled::NotNeeded => "not needed".to_owned(),
        other => format!("{other:?}"),
    };
    format!("{}: {what}", name(graph, index))
}

fn words(why: &Why) -> String {
    match why {
        Why::Forced => "forced".to_owned(),
        Why::NeverRan => "never ran".to_owned(),
        Why::Changed { .. } => "changed".to_owned(),
        Why::Lost => "lost".to_owned(),
        Why::Objection { deadline: Some((old, new)), .. } => {
            format!("{}s before, {}s now", old.as_secs(), new.as_secs())
        }
        Why::Objection { deadline: None, files, .. } => files.iter().map(file_words).collect::<Vec<_>>().join(", "),
    }
}

fn file_words(change: &FileChange) -> String {
    let path = &change.path;
    match (change.old, change.new) {
        (Seen::Absent, _) => format!("{path} appeared"),
        (_, Seen::Absent) => format!("{path} is gone"),
        _ => format!("{path} changed"),
    }
}
