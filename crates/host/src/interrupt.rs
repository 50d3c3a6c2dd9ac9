//! Ctrl-C and its kin: a flag that is set once, and a call made when it is.
//!
//! It does not know what is stopped.
#![expect(
    clippy::disallowed_methods,
    reason = "signals come on a thread of their own, and a second one ends the process"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::author;

/// The exit code of a command that the user stopped: that of a shell's command after SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Whether the user asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// What is left to do when the user asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The process ends by itself, soon.
    EndsItself,
    /// Nothing has begun: the process ends here.
    EndHere,
}

impl Interrupt {
    /// Returns whether the user asked to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Asks to stop.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Sets the flag at the first SIGINT, SIGTERM or SIGHUP, and then calls `stop`, on a thread of its own. A second signal ends the process at once, with
    /// the exit code [`INTERRUPTED`].
    pub fn on_signal(&self, stop: impl Fn() -> Then + Send + 'static) -> std::io::Result<()> {
        let flag = self.clone();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        std::thread::spawn(move || {
            for _ in signals.forever() {
                let again = flag.is_set();
                flag.set();
                if again {
                    author::kill_all();
                }
                if again || stop() == Then::EndHere {
                    std::process::exit(i32::from(INTERRUPTED));
                }
            }
        });
        Ok(())
    }
}
