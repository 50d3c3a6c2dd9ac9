//! What came of one command: its exit code, what it printed, what ran; and what a test expects of that.
//!
//! It does not know how the command was started.

use std::collections::{BTreeMap, BTreeSet};

/// The phases in the order in which an op meets them.
const PHASES: [&str; 10] =
    ["analyze", "baseline", "generate", "compile", "check", "tune", "bench", "select", "log", "summary"];

/// What came of one command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// What ran, as `softmax:select,log softmax/v2_tiling:compile,check summary`: of actions with children what the interpreter says,
    /// of the others what the build reports.
    pub actions: String,
    /// How often an interpreter was started. After an edit one may have been for nothing, as a head start.
    pub starts: usize,
    /// How many calls an interpreter was asked for, those of no action too, as of what it has installed.
    pub asked: usize,
}

impl Ran {
    /// Fails unless the command ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless exactly this ran.
    #[track_caller]
    pub fn runs(self, actions: &str) -> Self {
        assert_eq!(self.actions, actions, "stderr:\n{}", self.stderr);
        self
    }

    /// Fails unless exactly this ran. The summary is left out: it adds up wall times, which a new run may change or not.
    #[track_caller]
    pub fn runs_beside_the_summary(self, actions: &str) -> Self {
        let without: Vec<&str> = self.actions.split_whitespace().filter(|action| *action != "summary").collect();
        assert_eq!(without.join(" "), actions, "stderr:\n{}", self.stderr);
        self
    }

    /// Fails unless the graph that was printed as JSON has exactly these actions of the phases that were named, and what they need.
    #[track_caller]
    pub fn names(self, actions: &str) -> Self {
        let graph: serde_json::Value = serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}", self.stderr));
        let targets = graph["actions"].as_array().unwrap().iter().map(|action| action["target"].as_str().unwrap());
        let named: BTreeSet<&str> = targets.filter(|target| !target.ends_with(":analyze")).collect();
        assert_eq!(named.into_iter().collect::<Vec<_>>().join(" "), actions);
        self
    }

    /// Fails unless both streams together have this text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(all.contains(text), "no `{text}` in\n{all}");
        self
    }

    /// Fails where one of the streams has this text.
    #[track_caller]
    pub fn never_says(self, text: &str) -> Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(!all.contains(text), "`{text}` in\n{all}");
        self
    }
}

/// Fails where an action was lost to the machine and what came of the build does not say so: then it was tried again, or built twice, and nobody sees why it took so
/// long. A test that expects a loss expects the exit code of one.
#[track_caller]
pub fn expect_none_lost(code: Option<i32>, told: &str) {
    let is_told = code.is_none_or(|code| [3, 130].contains(&code));
    let lost = told.lines().find(|line| line.contains(LOST));
    assert!(is_told || lost.is_none(), "`{}`, and exit code {code:?}:\n{told}", lost.unwrap_or_default());
}

/// What a build says of an action that was lost to the machine.
pub const LOST: &str = " … lost: ";

/// Returns the target of a line as `check softmax/v2_tiling … passed 12 ms`.
pub(super) fn reported(line: &str) -> Option<String> {
    let (named, end) = line.split_once(" … ")?;
    if !end.starts_with("passed") && !end.starts_with("rejected") {
        return None;
    }
    Some(match named.split_once(' ') {
        Some((phase, place)) => format!("{place}:{phase}"),
        None => named.to_owned(),
    })
}

/// Says whether an action has no children, so that only the build tells of it.
pub(super) fn is_local(target: &str) -> bool {
    let phases = [":generate", ":select", ":log"];
    target == "summary" || phases.iter().any(|phase| target.ends_with(phase))
}

/// Writes targets as one text: places in order, and of each its phases in theirs.
pub(super) fn grouped(targets: BTreeSet<String>) -> String {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for target in targets {
        match target.split_once(':') {
            Some((place, phase)) => places.entry(place.to_owned()).or_default().push(phase.to_owned()),
            None => _ = places.entry(target).or_default(),
        }
    }
    let order = |phase: &String| PHASES.iter().position(|known| known == phase);
    let words = places.into_iter().map(|(place, mut phases)| {
        phases.sort_by_key(order);
        if phases.is_empty() { place } else { format!("{place}:{}", phases.join(",")) }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns a line without times and digests.
pub(super) fn redacted_line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut out: Vec<String> = Vec::new();
    for word in &words {
        let unit = matches!(word.trim_end_matches([',', ';']), "ms" | "s" | "µs" | "min");
        if unit && out.last().is_some_and(|last| last.parse::<f64>().is_ok()) {
            out.pop();
            // A minute and a few seconds are one time.
            if out.last().is_none_or(|last| last != "[TIME]") {
                out.push("[TIME]".to_owned());
            }
            continue;
        }
        out.push(without_digest(word));
    }
    out.join(" ")
}

fn without_digest(word: &str) -> String {
    let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let is_digest = bare.len() >= 12 && bare.chars().all(|letter| letter.is_ascii_hexdigit());
    if is_digest { word.replace(bare, "[DIGEST]") } else { word.to_owned() }
}
