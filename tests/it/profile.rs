//! `t2t profile`, and a repro under compute-sanitizer, without a device: what they refuse, and that they leave nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::workspace::Workspace;

const OPS: &str = "version: 1
defaults:
  check: {seeds: 1}
profiles:
  cpu: {bench: {sizes: {small: [8, 8]}, runs: 1, warmup_ms: 0, rep_ms: 1}}
ops:
  add:
    torch: torch.add
    inputs: {input: [M, N], other: [M, N]}
    kwargs: {alpha: 0.5}
    variants: [right]
";

#[test]
fn the_interpreter_is_no_device_and_nothing_is_kept() {
    let workspace = Workspace::with_zygote(OPS);
    workspace.copy("tests/bad_kernels/right.py", "kernels/add/right.py");
    let ran = workspace.run(&["profile", "add/right", "--device", "cpu"]);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("a profile needs a CUDA device"), "{}", ran.told);
    assert!(ran.told.contains("hint: run it where there is one"), "{}", ran.told);
    assert_eq!(ran.out, "");
    assert!(!workspace.path("cache/profile").exists());
}

#[test]
fn a_device_that_is_elsewhere_has_what_was_kept_of_it_alone() {
    let workspace = Workspace::with_zygote(OPS);
    workspace.copy("tests/bad_kernels/right.py", "kernels/add/right.py");
    let refused = |arguments: &[&str]| {
        let ran = workspace.run(&[&["profile", "--as-device", "nvidia-h200"], arguments].concat());
        assert_eq!(ran.out, "");
        (ran.code, ran.told)
    };
    let (code, told) = refused(&["add/right"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("no bench of add/right stands that passed\nhint: run `t2t build add/right:bench`"), "{told}");
    for (arguments, message) in [
        (vec!["add"], "`add` names no variant\nhint: name one variant, as in `t2t profile softmax/v2_tiling`"),
        (vec!["sub/right"], "`sub` is no op"),
        (vec!["add/wrong"], "add has no variant `wrong`\nhint: it has right"),
        (vec!["add/right", "--size", "huge"], "add has no size `huge`\nhint: it has "),
        (vec!["add/right", "--dtype", "int7"], "add has no dtype `int7`\nhint: it has float32"),
    ] {
        let (code, told) = refused(&arguments);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(message), "{told}");
    }
}

/// Runs the command with a `PATH` on which there is a program `name` that tells a version, if it is said to be there.
fn run_beside(workspace: &Workspace, name: &str, is_there: bool, arguments: &[&str]) -> (Option<i32>, String) {
    let folder = workspace.path("programs");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    if is_there {
        fs::write(&program, "#!/bin/sh\necho Version 2025.3.1.0 \\(build 1\\)\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    } else {
        let _ = fs::remove_file(&program);
    }
    let mut command = workspace.command(arguments);
    let path = std::env::var("PATH").unwrap();
    // The system's folders have the shell, and none of CUDA's programs.
    let system = path.split(':').filter(|folder| ["/usr/bin", "/bin"].contains(folder));
    let path: Vec<&str> = [folder.to_str().unwrap()].into_iter().chain(system).collect();
    let ended = command.env("PATH", path.join(":")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn counters_need_their_profiler_and_the_device_itself() {
    let workspace = Workspace::with_zygote(OPS);
    workspace.copy("tests/bad_kernels/right.py", "kernels/add/right.py");
    let counters = ["profile", "add/right", "--counters"];
    for (is_there, more, message) in [
        (false, "--device=cpu", "error: `ncu` was not found"),
        (true, "--device=cpu", "error: a profile needs a CUDA device"),
        (
            true,
            "--as-device=nvidia-h200",
            "error: counters are read on the device itself\nhint: leave out `--as-device`",
        ),
    ] {
        let (code, told) = run_beside(&workspace, "ncu", is_there, &[&counters[..], &[more]].concat());
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(message), "{told}");
    }
    assert!(!workspace.path("cache/profile").exists());
}

#[test]
fn a_repro_under_compute_sanitizer_needs_that_and_a_device() {
    let workspace = Workspace::with_zygote(OPS);
    workspace.copy("tests/bad_kernels/right.py", "kernels/add/right.py");
    for (is_there, tool, message) in [
        (false, "--sanitizer", "error: `compute-sanitizer` was not found\nhint: it comes with CUDA's toolkit"),
        (true, "--sanitizer=racecheck", "error: compute-sanitizer needs a CUDA device"),
        (true, "--sanitizer=lint", "invalid value 'lint'"),
    ] {
        let arguments = ["repro", "add/right", "--device=cpu", tool];
        let (code, told) = run_beside(&workspace, "compute-sanitizer", is_there, &arguments);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(message), "{told}");
    }
    assert!(!workspace.path("logs/repro").exists());
}
