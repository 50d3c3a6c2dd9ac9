//! The limits that a process is given (`ulimit`): what ends t2t of one is said by its name.
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
use super::limit_hint::hint;

/// What t2t needs of the stack of its first thread, in bytes. All other threads bring their own.
const STACK: u64 = 1 << 20;

/// What libraries say when a thread cannot be started. They end the process for it.
const THREADS: [&str; 3] = ["failed to spawn thread", "ThreadPoolBuildError", "OS can't spawn worker thread"];

/// Has a limit reported by its name, instead of by a signal or a panic. Fails if a limit is too low for t2t.
pub(crate) fn prepare() -> Result<(), CliError> {
    // With a handler for SIGXFSZ the write fails instead of the process. Nobody reads the flag that it sets.
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

fn no_thread(panic: &str) -> CliError {
    let error = if panic.contains("code: 12") { "(os error 12)" } else { "(os error 11)" };
    CliError::Machine { message: "no thread can be started".to_owned(), hint: hint(error) }
}
