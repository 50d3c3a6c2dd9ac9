//! The limits that a process is given (`ulimit`), by the error that the system says for each.
//!
//! It does not know what was being done.

use nix::sys::resource::{Resource, getrlimit};

/// Errors of the system that come of a limit: its number, the limit, how `ulimit` names it, its unit in bytes, what it is on.
const NAMED: [(&str, Resource, &str, u64, &str); 5] = [
    ("(os error 11)", Resource::RLIMIT_NPROC, "-u", 1, "processes and threads of a user"),
    ("(os error 12)", Resource::RLIMIT_AS, "-v", 1024, "memory, in KiB"),
    ("(os error 23)", Resource::RLIMIT_NOFILE, "-n", 1, "open files"),
    ("(os error 24)", Resource::RLIMIT_NOFILE, "-n", 1, "open files"),
    ("(os error 27)", Resource::RLIMIT_FSIZE, "-f", 1024, "the size of a file, in KiB"),
];

/// Returns what to do about a failure of the machine that came of a limit, by its message; None where none did.
pub(crate) fn hint(message: &str) -> Option<String> {
    let (_, limit, name, unit, what) = NAMED.into_iter().find(|(error, ..)| message.contains(error))?;
    let (now, _) = getrlimit(limit).ok()?;
    (now < u64::MAX / 2).then(|| format!("the limit on {what} (`ulimit {name}`) is {}; raise it", now / unit))
}
