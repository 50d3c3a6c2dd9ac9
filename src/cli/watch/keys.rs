//! Keys: single letters from the terminal, as they are typed.
//!
//! The terminal delivers each letter at once and does not echo it; Ctrl-C and the like stay signals. It does not know what keys do.

use std::io::{IsTerminal, Read, stdin};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

/// The terminal as it was, which it is again when this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    before: Termios,
}

impl Keys {
    /// Passes each typed letter to `sink`, on a thread of its own. None where standard input is not a terminal, or another process has it.
    pub(crate) fn open(sink: impl Fn(char) + Send + 'static) -> Option<Self> {
        // A process in the background that changes the terminal is stopped.
        if !stdin().is_terminal() || tcgetpgrp(stdin()).ok()? != getpgrp() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        let mut by_letter = before.clone();
        by_letter.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(stdin(), SetArg::TCSANOW, &by_letter).ok()?;
        std::thread::spawn(move || {
            let mut letter = [0];
            while stdin().read_exact(&mut letter).is_ok() {
                sink(letter[0].into());
            }
        });
        Some(Self { before })
    }

    /// Restores the terminal.
    pub(crate) fn close(&self) {
        // A terminal that has gone needs it no more.
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &self.before);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.close();
    }
}
