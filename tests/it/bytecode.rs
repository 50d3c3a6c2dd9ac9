//! What compiles beside the servers of a build: where it is told to keep bytecode, and when it is ended. What it does is tested with the harness.

use std::process::Stdio;

use crate::project::{Project, until};
use crate::worker::worker_leftovers::runs;

#[test]
fn bytecode_is_made_beside_servers_until_something_is_measured_or_the_build_is_over() {
    let project = Project::new();
    let kept = project.path("../kept");
    let build = |arguments: &str| {
        let before = project.log().len();
        project.run(project.command(arguments).env("T2T_BYTECODE", &kept)).exits(0);
        project.log().split_off(before)
    };
    // What is over in a moment needs none.
    project.kernel("gelu", "v1_baseline", "SLEEP 1");
    let log = build("build --phase check");
    let begun: Vec<_> = log.iter().filter(|line| line.starts_with("compiles ")).collect();
    let [begun] = begun[..] else { panic!("one a build, whatever servers it has: {log:#?}") };
    let finds = format!("finds {}", kept.display());
    let told = log.iter().filter(|line| **line == finds).count();
    assert_eq!(told, log.iter().filter(|line| line.starts_with("start ")).count(), "{log:#?}");
    let pid = begun.strip_prefix(&format!("compiles {} ", kept.display())).unwrap();
    // It may be there as a zombie: this process takes over the children of others, once it has started a server, and waits for none of them.
    until(|| (!runs(pid.parse().unwrap())).then_some(()));

    // Nothing can be measured before it runs, since the check of the kernel waits.
    project.kernel("softmax", "v2_tiling", "WAITS");
    let mut command = project.command("build softmax/v2_tiling:bench");
    let mut running = command.env("T2T_BYTECODE", &kept).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| (project.log().iter().filter(|line| line.starts_with("compiles ")).count() == 2).then_some(()));
    project.calm();
    assert!(running.wait().unwrap().success());
    let log = project.log();
    let place = |start: &str| log.iter().rposition(|line| line.contains(start)).unwrap_or_else(|| panic!("{log:#?}"));
    assert!(place("candidate:run") < place("told to compile no more"), "{log:#?}");
    assert!(place("told to compile no more") < place("bench:bench"), "{log:#?}");

    let log = build("build softmax/v2_tiling:bench");
    assert!(log.is_empty(), "nothing runs, so nothing is compiled: {log:#?}");
}

#[test]
fn no_bytecode_is_made_where_no_folder_is_named_or_known() {
    let project = Project::new();
    project.run(project.command("build --phase check").env_remove("HOME").env_remove("T2T_BYTECODE")).exits(0);
    project.kernel("softmax", "v1_baseline", "other");
    project.t2t("build --phase check").exits(0);
    let speaks_of_it = |line: &String| line.starts_with("compiles") || line.starts_with("finds");
    assert!(!project.log().iter().any(speaks_of_it), "{:#?}", project.log());
    project.kernel("softmax", "v1_baseline", "SLEEP 1");
    let caches = project.path("../caches");
    let mut command = project.command("build --phase check");
    project.run(command.env_remove("T2T_BYTECODE").env("XDG_CACHE_HOME", &caches)).exits(0);
    project.t2t("doctor").exits(0).says("bytecode of packages installed without it: not kept");
    let begins = format!("compiles {}/t2t/bytecode ", caches.display());
    assert!(project.log().iter().any(|line| line.starts_with(&begins)), "{:#?}", project.log());
}
