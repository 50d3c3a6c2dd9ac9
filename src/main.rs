//! The `t2t` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    t2t::cli::main()
}
