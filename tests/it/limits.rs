//! Limits on the process (`ulimit`): a build that cannot go on ends with exit code 3 and names the limit, and the next one is whole.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use crate::cli::damage::is_root;
use crate::environment;
use crate::project::{Project, Ran, copy_program};
use crate::soak::Count;

/// Returns a user of whom nothing else runs, nor of another run of these tests: a limit on processes counts all of a user's.
fn other() -> u32 {
    1_000_000 + std::process::id()
}

/// Runs t2t behind `ulimit`, as another user where this one is not bound by limits on processes.
fn limited(project: &Project, limit: &str, arguments: &str) -> Ran {
    let plain = project.command(arguments);
    let is_other = limit.starts_with("-u") && is_root();
    let mut command = Command::new(if is_other { "setpriv" } else { "/bin/bash" });
    if is_other {
        let user = other().to_string();
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--", "/bin/bash"]);
    }
    let script = format!("ulimit {limit}; exec \"$@\"");
    let program = project.path("../t2t");
    if !program.exists() {
        copy_program(plain.get_program().as_ref(), &program);
    }
    command.args(["-c", &script, "bash"]).arg(program).args(plain.get_args()).current_dir(project.path("")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    project.run(&mut command)
}

/// Makes a workspace that belongs to the other user, where this one is root.
fn of_another() -> Project {
    let project = Project::new();
    if is_root() {
        environment::expect_open_to_others();
        let folder = project.path("../.");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Command::new("chown").args(["-R", &other().to_string()]).arg(&folder).status().unwrap().success());
        chown(&folder, Some(other()), None).unwrap();
    }
    project
}

/// Begins to count commands that met a limit, for a soak.
fn met() -> Count {
    Count::of("limits", "met")
}

fn expect_named(count: &Count, ran: &Ran, limit: &str, what: &str) {
    assert_eq!(ran.code, 3, "{what}: {}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains(limit), "{what}: {}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
    count.add(1);
}

#[test]
fn a_limit_on_processes_is_named() {
    let (project, count) = (of_another(), met());
    for most in [1, 2, 3, 4, 6, 8] {
        for arguments in ["build", "status", "watch"] {
            let ran = limited(&project, &format!("-u {most}"), arguments);
            // How many are needed at once depends on the machine.
            if ran.code != 0 || most <= 4 {
                expect_named(&count, &ran, "`ulimit -u`", &format!("{arguments} with {most}"));
            }
        }
    }
    project.build().exits(0);
}

#[test]
fn a_limit_on_the_stack_is_named_or_does_no_harm() {
    let (project, count) = (Project::new(), met());
    for kib in [64, 256, 1000] {
        for arguments in ["build", "status", "--version", "cache verify"] {
            let ran = limited(&project, &format!("-s {kib}"), arguments);
            expect_named(&count, &ran, "`ulimit -s`", &format!("{arguments} with {kib}"));
        }
    }
    limited(&project, "-s 2048", "build").exits(0);
}

#[test]
fn a_limit_on_files_is_named_without_a_signal() {
    let (project, count) = (Project::new(), met());
    for kib in [0, 1, 4, 8] {
        let ran = limited(&project, &format!("-f {kib}"), "build");
        expect_named(&count, &ran, "`ulimit -f`", &format!("{kib} KiB"));
        assert!(ran.stderr.contains("cache/"), "no place: {}", ran.stderr);
    }
    project.build().exits(0);
    project.t2t("cache verify").exits(0);
}

#[test]
fn a_limit_on_open_files_is_named() {
    let (project, count) = (Project::new(), met());
    for most in [4, 6, 8, 10] {
        expect_named(
            &count,
            &limited(&project, &format!("-n {most}"), "build"),
            "`ulimit -n`",
            &format!("{most} files"),
        );
    }
    project.build().exits(0);
}
