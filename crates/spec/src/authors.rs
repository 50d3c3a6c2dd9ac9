//! Authors: what writes kernels beside the embedded generator: programs, and servers of language models.
//!
//! It does not know how one is asked, nor what the variables hold that it names.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::fault::Fault;
use super::inputs::texts;
use super::names::{duration, quoted, suggestion};
use super::node::{Entry, Node, Value};

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

/// What writes kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct Author {
    /// How it is asked.
    pub way: Way,
    /// How long an attempt may take. In no key.
    pub timeout: Duration,
    /// The variables of t2t's own environment that a program gets, beside those that every author does; of a server the one that holds its key. In no key.
    pub variables: Vec<String>,
}

/// How an author is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// A program and its arguments: one process an attempt.
    Command(Vec<String>),
    /// A server that speaks the chat-completions protocol.
    Server(Server),
}

/// A server of language models.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where it is, without `/chat/completions`.
    pub base_url: String,
    /// Which model is asked.
    pub model: String,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// How freely it is drawn.
    pub temperature: Option<f64>,
}

impl Author {
    /// Returns what an attempt depends on: all of the declaration but deadlines and variables.
    #[must_use]
    pub fn fact(&self) -> serde_json::Value {
        match &self.way {
            Way::Command(command) => json!({"command": command}),
            Way::Server(Server { base_url, model, max_tokens, temperature }) => json!({
                "openai": {"base_url": base_url, "model": model, "max_tokens": max_tokens, "temperature": temperature},
            }),
        }
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
    for entry in entries {
        has_one_way(entry, faults);
    }
    let named = entries.iter().filter_map(|entry| Some((entry.key.clone(), author(&entry.node)?))).collect();
    let at_once = root.at(&["jobs", "generate"]).and_then(Node::whole).and_then(|count| usize::try_from(count).ok());
    let limit = |name: &str| root.at(&["budget", name]).and_then(Node::whole);
    let budget = Budget { attempts: limit("max_attempts"), tokens: limit("max_tokens"), minutes: limit("max_minutes") };
    Authors { named, at_once: at_once.unwrap_or(AT_ONCE), budget }
}

fn author(node: &Node) -> Option<Author> {
    let timeout = node.get("timeout").and_then(Node::text).and_then(duration);
    let (way, variables) = match node.get("openai") {
        Some(server) => {
            let key = server.get("key_env").and_then(Node::text).map(str::to_owned);
            (Way::Server(self::server(server)?), key.into_iter().collect())
        }
        None => (Way::Command(texts(node.get("command")?)), node.get("env").map(texts).unwrap_or_default()),
    };
    Some(Author { way, timeout: timeout.unwrap_or(Duration::from_mins(10)), variables })
}

fn server(node: &Node) -> Option<Server> {
    let text = |name: &str| node.get(name).and_then(Node::text).map(str::to_owned);
    Some(Server {
        base_url: text("base_url")?,
        model: text("model")?,
        max_tokens: node.get("max_tokens").and_then(Node::whole),
        temperature: node.get("temperature").and_then(Node::number),
    })
}

/// An author is a program or a server.
fn has_one_way(entry: &Entry, faults: &mut Vec<Fault>) {
    let (name, node) = (&entry.key, &entry.node);
    let server = node.get("openai");
    match (node.get("command"), server, node.get("env")) {
        (Some(_), Some(server), _) => {
            let fault = Fault::new(server.place, format!("generator `{name}` has `command` and `openai`"));
            faults.push(fault.hint("keep one: a program is asked, or a server"));
        }
        (None, None, _) if matches!(node.value, Value::Map(_)) => {
            let fault = Fault::new(entry.place, format!("generator `{name}` has neither `command` nor `openai`"));
            faults.push(
                fault.hint(
                    "add `command: [claude, -p]`, or `openai: {base_url: http://localhost:8000/v1, model: NAME}`",
                ),
            );
        }
        (None, Some(_), Some(variables)) => {
            let fault = Fault::new(variables.place, format!("generator `{name}` has `openai` and `env`"));
            faults.push(fault.hint("a server gets no variables: `openai.key_env` names the one that holds its key"));
        }
        _ => {}
    }
}

/// Notes a generator that there is not, at its place.
pub(super) fn known_generator(root: &Node, named: Option<&Node>, faults: &mut Vec<Fault>) {
    let Some((node, name)) = named.and_then(|node| Some((node, node.text()?))) else { return };
    let own = root.get("generators").map_or(&[][..], Node::entries);
    let known: Vec<&str> = [TEMPLATE, NONE].into_iter().chain(own.iter().map(|entry| entry.key.as_str())).collect();
    if !known.contains(&name) {
        let fault = Fault::new(node.place, format!("there is no generator `{name}`"));
        faults.push(fault.hint(suggestion(name, known.iter().copied())));
    }
}

/// Returns the names that a generator may have, for people.
#[must_use]
pub fn known(authors: &Authors) -> String {
    quoted([TEMPLATE].into_iter().chain(authors.named.keys().map(String::as_str)))
}
