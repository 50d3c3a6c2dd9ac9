//! At work: which process holds the workspace's lock, and which actions its children work for, as another process sees it.
//!
//! A build notes each action in the folder of its children, which is removed when the action has ended. It does not know what an action is.

use std::path::Path;

use serde::Serialize;

use super::leftovers::SCRATCH;
use super::lock;
use crate::fs;

/// The file in the folder of an action's children that says which action it is.
const NOTE: &str = "target";

/// A process that holds the workspace's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AtWork {
    /// Its number.
    pub process: u32,
    /// Its command line.
    pub command: String,
    /// When it took the lock: `HH:MM:SS UTC`.
    pub since: String,
    /// The actions whose children run, as targets, sorted. Those that need no child are over at once, and are never among them.
    pub actions: Vec<String>,
}

/// Notes in `folder`, where the children of an action work, which action that is.
pub fn note(folder: &Path, target: &str) {
    // A failure is no error: nobody is told that the action runs.
    let _ = fs::write(&folder.join(NOTE), target.as_bytes());
}

/// Returns who works with the store under `cache` now; None where nobody does. It takes no lock, so that it holds nobody up.
#[must_use]
pub fn now(cache: &Path) -> Option<AtWork> {
    let lock::Holder { process, command, since } = lock::holder(cache)?;
    let scratch = cache.join(SCRATCH).join(process.to_string());
    let noted = |name: &String| fs::read(&scratch.join(name).join(NOTE)).ok();
    let texts =
        fs::names(&scratch).iter().filter_map(noted).filter_map(|bytes| String::from_utf8(bytes).ok()).collect();
    let mut actions: Vec<String> = texts;
    actions.sort();
    Some(AtWork { process, command, since, actions })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Signs the lock of `cache` as process `number` does.
    fn sign(cache: &Path, number: u32, how: &str) {
        let text = format!("{how}{number}, `t2t build \"a`, b\"`, since 12:00:00 UTC{:60}\n", "");
        fs::write(&cache.join("lock"), text.as_bytes()).unwrap();
    }

    #[test]
    fn who_holds_the_lock_is_told_with_its_actions_until_it_lets_go_or_ends() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path();
        assert_eq!(now(cache), None);
        let mut other = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap();
        sign(cache, other.id(), "pid ");
        let of = |ticket: &str| cache.join("scratch").join(other.id().to_string()).join(ticket);
        for (ticket, target) in [("2", "softmax/v2:check"), ("10", "gelu:analyze")] {
            fs::make_folder(&of(ticket)).unwrap();
            note(&of(ticket), target);
        }
        fs::make_folder(&of("ahead")).unwrap();
        let told = now(cache).unwrap();
        assert_eq!(told.command, "t2t build \"a`, b\"");
        assert_eq!((told.process, told.since.as_str()), (other.id(), "12:00:00 UTC"));
        assert_eq!(told.actions, ["gelu:analyze", "softmax/v2:check"]);
        fs::remove(&of("2")).unwrap();
        assert_eq!(now(cache).unwrap().actions, ["gelu:analyze"]);
        sign(cache, other.id(), "was ");
        assert_eq!(now(cache), None, "it let go");
        sign(cache, other.id(), "pid ");
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(now(cache), None, "it was killed");
        fs::write(&cache.join("lock"), b"pid x").unwrap();
        assert_eq!(now(cache), None);
    }
}
