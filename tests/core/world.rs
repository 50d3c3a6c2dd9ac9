//! A model of a workspace: files, actions that are pure functions of what they read, and what a clean build of them gives.
//!
//! It knows no key, record, history or schedule: what a clean build gives is found by plain recursion over what is true now, so that the
//! code under test is judged by an answer it had no part in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use t2t_model::action::Need;

pub mod random;

/// The names that artifacts have.
pub const ARTIFACTS: [&str; 3] = ["a", "b", "c"];

/// A file: what it means and, for Python, a comment that only its bytes show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct File {
    pub meaning: usize,
    pub comment: usize,
}

/// All files that there are now, by name.
pub type Files = BTreeMap<String, File>;

/// What an action looks at without having said so beforehand.
#[derive(Clone, Debug)]
pub enum Find {
    /// One file.
    Always(String),
    /// A file whose content decides which other file is looked at.
    Switch { on: String, even: String, odd: String },
    /// The first of these that exists, as an import path is searched.
    First(Vec<String>),
}

/// What a recipe tends to do besides passing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Temper {
    /// Passes, always.
    Steady,
    /// Is rejected for some contents.
    Fussy,
    /// Is rejected for some contents, with evidence that cites lines of its sources.
    Citing,
    /// Takes a time that depends on contents, so that a deadline decides.
    Slow,
}

/// The function that an action computes. Equal recipes compute equal artifacts from equal inputs.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub number: usize,
    pub artifacts: usize,
    pub temper: Temper,
    pub finds: Vec<Find>,
}

/// What an action needs of another.
#[derive(Clone, Debug)]
pub struct Edge {
    pub on: usize,
    pub need: Need,
    pub reads: &'static [&'static str],
}

/// An action.
#[derive(Clone, Debug)]
pub struct Step {
    pub recipe: Recipe,
    pub param: usize,
    pub sources: Vec<String>,
    pub edges: Vec<Edge>,
    /// In seconds.
    pub deadline: usize,
}

/// Everything that is true now.
#[derive(Clone, Debug)]
pub struct World {
    pub files: Files,
    /// By number; edges lead to smaller numbers.
    pub steps: Vec<Step>,
    /// The numbers in the order in which the actions are declared.
    pub order: Vec<usize>,
}

/// Everything that a run truly saw: name → content.
pub type Inputs = BTreeMap<String, String>;

/// How an action ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It came to a result: the class of its rejection, or None for a pass, and its artifacts.
    Result { rejected: Option<&'static str>, artifacts: BTreeMap<&'static str, String> },
    /// Something it needs ended otherwise.
    Skipped,
    /// The machine failed.
    Lost,
}

/// One run: what it saw, what it looked at without having said so, whether its evidence cites lines, how it ended.
#[derive(Clone, Debug)]
pub struct Run {
    pub inputs: Inputs,
    pub looked: BTreeSet<String>,
    pub cites: bool,
    pub end: End,
}

/// The deadline under which each run that stands ended, by number and what it saw.
pub type Deadlines = HashMap<(usize, Inputs), usize>;

/// Returns whether a comment in the file named `name` is without meaning.
pub fn is_python(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "py")
}

/// Returns the number that stands for `parts`, the same in every run of the tests.
fn scramble(parts: impl Hash) -> usize {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    usize::try_from(hasher.finish() >> 1).expect("tests run where a usize has 64 bits")
}

impl End {
    fn meets(&self, need: Need) -> bool {
        match (need, self) {
            (Need::Settle, _) => true,
            (Need::Pass, Self::Result { rejected, .. }) => rejected.is_none(),
            (Need::Reject, Self::Result { rejected, .. }) => rejected.is_some(),
            (_, Self::Skipped | Self::Lost) => false,
        }
    }

    /// Returns what a dependent sees of the artifact `name`. What was made is marked, since a word may be made too.
    pub fn shows(&self, name: &str) -> String {
        match self {
            Self::Skipped => "skipped".to_owned(),
            Self::Lost => "lost".to_owned(),
            Self::Result { rejected, artifacts } => match (artifacts.get(name), rejected) {
                (Some(content), _) => format!("={content}"),
                (None, Some(class)) => format!("rejected: {class}"),
                (None, None) => "none".to_owned(),
            },
        }
    }
}

impl Recipe {
    /// Returns the class of the rejection of a run that sees `inputs` and has so many seconds, or None where it passes.
    fn verdict(&self, inputs: &Inputs, deadline: usize) -> Option<&'static str> {
        let fate = scramble(("fate", self.number, inputs)) % 100;
        match self.temper {
            Temper::Fussy | Temper::Citing => (fate < 30).then_some("mismatch"),
            Temper::Slow => (fate > deadline).then_some("timeout"),
            Temper::Steady => None,
        }
    }

    /// Returns the artifacts of a run that sees `inputs`. Each is blind to some inputs and has few contents, so that it often stays.
    fn artifacts(&self, inputs: &Inputs, rejected: Option<&str>) -> BTreeMap<&'static str, String> {
        let count = match rejected {
            None => self.artifacts,
            Some("timeout") => 0,
            Some(_) => 1,
        };
        ARTIFACTS.into_iter().take(count).map(|name| (name, self.artifact(name, inputs))).collect()
    }

    fn artifact(&self, name: &str, inputs: &Inputs) -> String {
        let is_used = |input: &str| !scramble(("blind", self.number, name, input)).is_multiple_of(3);
        let seen: Vec<_> = inputs.iter().filter(|(input, _)| is_used(input)).collect();
        (scramble(("content", self.number, name, seen)) % 6).to_string()
    }
}

impl World {
    /// Returns what the file named `name` means now.
    pub fn meaning(&self, name: &str) -> String {
        self.files.get(name).map_or_else(|| "absent".to_owned(), |file| self.plain(name, file))
    }

    /// Returns the content of a file as far as it means anything: comments count only where they are no comments.
    fn plain(&self, name: &str, file: &File) -> String {
        if is_python(name) { format!("={}", file.meaning) } else { self.bytes(name) }
    }

    /// Returns the bytes of the file named `name`.
    pub fn bytes(&self, name: &str) -> String {
        self.files.get(name).map_or_else(|| "absent".to_owned(), |file| format!("={} # {}", file.meaning, file.comment))
    }

    /// Returns the files that a run looks at, in any state they are in.
    fn looked(&self, finds: &[Find]) -> BTreeSet<String> {
        finds.iter().flat_map(|find| self.looked_by(find)).collect()
    }

    fn looked_by(&self, find: &Find) -> Vec<String> {
        match find {
            Find::Always(name) => vec![name.clone()],
            Find::Switch { on, even, odd } => {
                let is_odd = self.files.get(on).is_some_and(|file| file.meaning % 2 == 1);
                vec![on.clone(), if is_odd { odd.clone() } else { even.clone() }]
            }
            Find::First(names) => {
                let tried =
                    names.iter().position(|name| self.files.contains_key(name)).map_or(names.len(), |at| at + 1);
                names[..tried].to_vec()
            }
        }
    }

    /// Runs an action that sees `upstream` of other actions, with so many seconds.
    pub fn run(&self, number: usize, upstream: Inputs, deadline: usize) -> Run {
        let step = &self.steps[number];
        let looked = self.looked(&step.recipe.finds);
        let mut inputs = upstream;
        inputs.insert("recipe".to_owned(), step.recipe.number.to_string());
        inputs.insert("param".to_owned(), step.param.to_string());
        inputs.extend(step.sources.iter().map(|name| (format!("source {name}"), self.meaning(name))));
        inputs.extend(looked.iter().map(|name| (format!("file {name}"), self.meaning(name))));
        let rejected = step.recipe.verdict(&inputs, deadline);
        let cites = step.recipe.temper == Temper::Citing && rejected.is_some();
        if cites {
            let files = step.sources.iter().chain(&looked);
            inputs.extend(files.map(|name| (format!("bytes {name}"), self.bytes(name))));
        }
        let artifacts = step.recipe.artifacts(&inputs, rejected);
        Run { inputs, looked, cites, end: End::Result { rejected, artifacts } }
    }

    /// Returns what a clean build gives for every action, where the machine fails for those in `lost`. A result stands for any deadline
    /// up to the one that it was made under, so `made` may lengthen a deadline.
    pub fn clean_build(&self, lost: &BTreeSet<usize>, made: &Deadlines) -> Vec<End> {
        let mut ends = vec![None; self.steps.len()];
        for number in 0..self.steps.len() {
            self.evaluate(number, lost, made, &mut ends);
        }
        ends.into_iter().map(|end| end.expect("every action was evaluated")).collect()
    }

    fn evaluate(&self, number: usize, lost: &BTreeSet<usize>, made: &Deadlines, ends: &mut [Option<End>]) -> End {
        if let Some(end) = &ends[number] {
            return end.clone();
        }
        let end = self.evaluate_anew(number, lost, made, ends);
        ends[number] = Some(end.clone());
        end
    }

    fn evaluate_anew(&self, number: usize, lost: &BTreeSet<usize>, made: &Deadlines, ends: &mut [Option<End>]) -> End {
        let step = &self.steps[number];
        let mut upstream = Inputs::new();
        let mut asked = Vec::new();
        for edge in &step.edges {
            let on = self.evaluate(edge.on, lost, made, ends);
            let is_met = on.meets(edge.need);
            match edge.need {
                // One of those that must be rejected is enough.
                Need::Reject => asked.push(is_met),
                _ if !is_met => return End::Skipped,
                _ => {}
            }
            upstream.extend(edge.reads.iter().map(|name| (from(edge.on, name), on.shows(name))));
        }
        if !asked.is_empty() && !asked.contains(&true) {
            return End::Skipped;
        }
        if lost.contains(&number) {
            return End::Lost;
        }
        let run = self.run(number, upstream.clone(), step.deadline);
        match made.get(&(number, run.inputs.clone())) {
            Some(&longer) if longer > step.deadline => self.run(number, upstream, longer).end,
            _ => run.end,
        }
    }

    /// Returns the actions with a place in `targets`, and all that these need.
    pub fn with_needs(&self, targets: &[usize]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = targets.to_vec();
        while let Some(number) = open.pop() {
            if found.insert(number) {
                open.extend(self.steps[number].edges.iter().map(|edge| edge.on));
            }
        }
        found
    }
}

/// Returns the name under which an artifact of another action is seen.
pub fn from(number: usize, artifact: &str) -> String {
    format!("from {number} {artifact}")
}
