//! Secrets: the variables that hold them. No other process of the same user may see them, and none that t2t starts.
//!
//! It does not know what they are for. What the environment held when t2t was started stays in its own memory, which no child maps.

use std::process::Command;

use nix::sys::prctl;

/// The variables that t2t reads secrets from. The place of a remote cache may hold a password.
pub(crate) const VARIABLES: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "T2T_REMOTE",
    "T2T_REMOTE_PASSWORD",
    "T2T_REMOTE_SECRET",
    "T2T_REMOTE_TOKEN",
    "T2T_REMOTE_USER",
    "T2T_SIGN_KEY",
    "T2T_SIGN_PASSPHRASE",
];

/// Closes this process to others of its user: its environment, its memory, its open files. The kernel writes no core dump of it, either. Programs that it
/// starts are open again.
pub fn close_this_process() {
    // A failure is no error: every kernel that can show these to others has the call.
    let _ = prctl::set_dumpable(false);
}

/// Takes the secrets from the environment of a program that is about to be started.
pub fn withhold(command: &mut Command) {
    for name in VARIABLES {
        command.env_remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_started_gets_no_secret() {
        let mut command = Command::new("env");
        command.envs(VARIABLES.map(|name| (name, "secret"))).env("LANG", "C");
        withhold(&mut command);
        let told = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(told.contains("LANG=C") && !told.contains("secret"), "{told}");
    }
}
