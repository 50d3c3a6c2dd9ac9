//! The two standard streams: what goes to each, and how wide a terminal is.
//!
//! It does not know what is printed.
#![expect(clippy::disallowed_methods, reason = "the command line owns the standard streams")]

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use console::Term;
use t2t_model::foreign;
use t2t_store::fs;

use crate::reporter::Screen;

/// Prints a result, text or JSON, to standard output: nothing in it gives the terminal an order. A reader that has gone is no error.
pub(crate) fn print(text: &str) {
    print_bytes(foreign::json(text).as_bytes());
}

/// Prints a result that is no text to standard output.
pub(crate) fn print_bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // Later prints would fail likewise.
        let _ = LOST.set(error);
    }
}

/// Why a result did not reach standard output, if one did not. A closed pipe is no reason: its reader stopped reading.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Returns why a result that was printed is lost, if one is.
pub(crate) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Prints a line to standard error: nothing in it gives the terminal an order.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", foreign::printable(line));
}

/// Returns how many columns standard output has; None where it is no terminal.
pub(crate) fn width() -> Option<usize> {
    Screen::of(&Term::stdout(), &|name| env::var_os(name)).width
}

/// Returns whether a standard stream of this process is written to the file at `path`.
pub(crate) fn is_output(path: &Path) -> bool {
    let written = [fs::identity_of(&io::stdout()), fs::identity_of(&io::stderr())];
    fs::identity(path).is_some_and(|identity| written.contains(&Some(identity)))
}
