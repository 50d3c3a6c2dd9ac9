//! The limits that a process is given (`ulimit`): which one stopped t2t, said by its name.
//!
//! It does not know what was being done.
#![expect(clippy::disallowed_methods, reason = "where a limit ends a thread that has not begun, it ends the process")]

use std::panic;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use nix::sys::resource::{Resource, getrlimit};
use signal_hook::consts::SIGXFSZ;

use super::error::CliError;

/// What t2t needs of the stack of its first thread, in bytes. All other threads bring their own.
const STACK: u64 = 1 << 20;

/// What libraries say when a thread cannot be started. They end the process for it.
const THREADS: [&str; 3] = ["failed to spawn thread", "ThreadPoolBuildError", "OS can't spawn worker thread"];

/// Errors of the system that come of a limit: its number, the limit, how `ulimit` names it, its unit in bytes, what it is on.
const NAMED: [(&str, Resource, &str, u64, &str); 5] = [
    ("(os error 11)", Resource::RLIMIT_NPROC, "-u", 1, "processes and threads of a user"),
    ("(os error 12)", Resource::RLIMIT_AS, "-v", 1024, "memory, in KiB"),
    ("(os error 23)", Resource::RLIMIT_NOFILE, "-n", 1, "open files"),
    ("(os error 24)", Resource::RLIMIT_NOFILE, "-n", 1, "open files"),
    ("(os error 27)", Resource::RLIMIT_FSIZE, "-f", 1024, "the size of a file, in KiB"),
];

/// Sees to it that a limit is told by its name rather than by a signal or a panic. Fails where there is not enough of what t2t cannot do without.
pub(crate) fn prepare() -> Result<(), CliError> {
    // A handler turns the signal into an error of the call that writes. It is never asked whether it was called.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let told = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = info.to_string();
        // A library that goes on without its thread ends later, and in other words.
        let lacks_thread = || thread::Builder::new().spawn(|| {}).is_err();
        if THREADS.iter().any(|word| text.contains(word)) || lacks_thread() {
            let error = no_thread(&text);
            error.print();
            std::process::exit(i32::from(error.code()));
        }
        told(info);
    }));
    let (limit, _) = getrlimit(Resource::RLIMIT_STACK).unwrap_or((u64::MAX, u64::MAX));
    if limit < STACK {
        let message = format!("the limit on the stack (`ulimit -s`) is {} KiB", limit / 1024);
        return Err(CliError::Machine {
            message,
            hint: Some(format!("raise it: t2t needs {} KiB, and Python more", STACK / 1024)),
        });
    }
    Ok(())
}

/// Returns what to do about a failure of the machine that came of a limit, by its message; None where none did.
pub(crate) fn hint(message: &str) -> Option<String> {
    let (_, limit, name, unit, what) = NAMED.into_iter().find(|(error, ..)| message.contains(error))?;
    let (now, _) = getrlimit(limit).ok()?;
    (now < u64::MAX / 2).then(|| format!("the limit on {what} (`ulimit {name}`) is {}; raise it", now / unit))
}

fn no_thread(panic: &str) -> CliError {
    let error = if panic.contains("code: 12") { "(os error 12)" } else { "(os error 11)" };
    CliError::Machine { message: "no thread can be started".to_owned(), hint: hint(error) }
}
