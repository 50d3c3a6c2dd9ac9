//! Authors: what writes kernels beside the embedded generator: programs, and servers of language models.
//!
//! It does not know how one is asked, nor what the variables hold that it names.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::fault::Fault;
use super::inputs::texts;
use super::names::{duration, quoted, suggestion};
use super::parse::Node;

/// The embedded generator's name.
pub const TEMPLATE: &str = "template";

/// The word for no generator.
pub(crate) const NONE: &str = "none";

/// How many authors work at once where nobody says.
const AT_ONCE: usize = 4;

/// The authors that ops.yaml declares, and how much of them a build may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Authors {
    /// By name.
    pub named: BTreeMap<String, Author>,
    /// How many work at once.
    pub at_once: usize,
    /// How much of them a build may use.
    pub budget: Budget,
}

/// How much of authors a build may use. None is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// How many attempts.
    pub attempts: Option<u64>,
    /// How many tokens, as authors tell.
    pub tokens: Option<u64>,
    /// How many minutes from the first attempt on.
    pub minutes: Option<u64>,
}

/// What writes kernels: one process an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Author {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long an attempt may take. In no key.
    pub timeout: Duration,
    /// The variables of t2t's own environment that it gets, beside those that every author does. In no key.
    pub variables: Vec<String>,
}

impl Author {
    /// Returns what an attempt depends on: all of the declaration but deadlines and variables.
    #[must_use]
    pub fn fact(&self) -> Value {
        json!({"command": self.command})
    }
}

impl Authors {
    /// Returns the names of all variables that authors are given. They may hold secrets.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.named.values().flat_map(|author| &author.variables).map(String::as_str)
    }
}

/// Returns the authors in ops.yaml.
pub(super) fn authors(root: &Node, faults: &mut Vec<Fault>) -> Authors {
    let entries = root.get("generators").map_or(&[][..], Node::entries);
    for entry in entries.iter().filter(|entry| [TEMPLATE, NONE].contains(&entry.key.as_str())) {
        let fault =
            Fault::new(entry.place, format!("`generators` names `{}`, which has a meaning of its own", entry.key));
        faults.push(fault.hint("choose another name"));
    }
    let named = entries.iter().filter_map(|entry| Some((entry.key.clone(), author(&entry.node)?))).collect();
    let at_once = root.at(&["jobs", "generate"]).and_then(Node::whole).and_then(|count| usize::try_from(count).ok());
    let limit = |name: &str| root.at(&["budget", name]).and_then(Node::whole);
    let budget = Budget { attempts: limit("max_attempts"), tokens: limit("max_tokens"), minutes: limit("max_minutes") };
    Authors { named, at_once: at_once.unwrap_or(AT_ONCE), budget }
}

fn author(node: &Node) -> Option<Author> {
    let timeout = node.get("timeout").and_then(Node::text).and_then(duration);
    Some(Author {
        command: texts(node.get("command")?),
        timeout: timeout.unwrap_or(Duration::from_mins(10)),
        variables: node.get("env").map(texts).unwrap_or_default(),
    })
}

/// Notes a generator that there is not, at its place.
pub(super) fn known_generator(root: &Node, named: Option<&Node>, faults: &mut Vec<Fault>) {
    let Some((node, name)) = named.and_then(|node| Some((node, node.text()?))) else { return };
    let own = root.get("generators").map_or(&[][..], Node::entries);
    let known: Vec<&str> = [TEMPLATE, NONE].into_iter().chain(own.iter().map(|entry| entry.key.as_str())).collect();
    if !known.contains(&name) {
        let fault = Fault::new(node.place, format!("there is no generator `{name}`"));
        let hint = format!("{}; `generators` names more", suggestion(name, known.iter().copied()));
        faults.push(fault.hint(hint));
    }
}

/// Returns the names that a generator may have, for people.
#[must_use]
pub fn known(authors: &Authors) -> String {
    quoted([TEMPLATE].into_iter().chain(authors.named.keys().map(String::as_str)))
}
