//! Where t2t is run, and with which interpreter.
//!
//! It does not know what is built.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use super::GELU;
use crate::environment;
use crate::project::{Project, copy_program, install};

#[test]
fn a_subfolder_of_the_workspace_is_as_good_as_its_root() {
    let project = Project::new();
    let ran = project.run(project.command("build gelu").current_dir(project.path("kernels/softmax")));
    ran.exits(0).runs(GELU);
    assert!(project.exists("logs/gelu_log.md") && !project.exists("kernels/softmax/cache"));
}

#[test]
fn outside_of_a_workspace_there_is_nothing_to_build() {
    let project = Project::new();
    for arguments in ["build", "status", "graph", "clean", "explain softmax", "log softmax"] {
        let ran = project.run(project.command(arguments).current_dir(project.path("../"))).exits(2);
        let expected = "error: no ops.yaml in `[FOLDER]` or in a folder above it\nhint: run t2t in a workspace, a folder with an ops.yaml: `t2t init` makes one here, `t2t add softmax` one with an op\n";
        assert_eq!(ran.stderr, expected, "{arguments}");
    }
}

#[test]
fn a_workspace_whose_path_is_not_utf_8_is_said_to_be_one() {
    let project = Project::new();
    let root = project.path("..").join(OsStr::from_bytes(b"bad\xff"));
    fs::create_dir(&root).unwrap();
    fs::copy(project.path("ops.yaml"), root.join("ops.yaml")).unwrap();
    for arguments in ["build", "status"] {
        let ran = project.run(project.command(arguments).current_dir(&root)).exits(2);
        ran.says("error: the path of the workspace is not UTF-8: `").says("hint: rename the folder whose name has ");
    }
    assert!(!root.join("cache").exists());
}

#[test]
fn a_bad_ops_yaml_ends_every_command_that_reads_it() {
    let project = Project::built();
    project.edit("ops.yaml", "inputs: {input: [M, N]}\n    kwargs", "input: {input: [M, N]}\n    kwargs");
    for arguments in ["build", "build --dry-run", "status", "graph", "explain softmax"] {
        project.t2t(arguments).exits(2).says("error: ops.yaml:8:5: unknown key `input`");
    }
}

#[test]
fn the_interpreter_is_found_in_the_documented_order() {
    let project = Project::new();
    let option = project.path("../option");
    for folder in [&option, &project.path("../virtual"), &project.path(".venv")] {
        install(folder);
    }
    let build = |arguments: &str, unset: &[&str], expected: &str| {
        let mut command = project.command(&format!("build softmax:analyze {arguments}"));
        command.env("VIRTUAL_ENV", project.path("../virtual"));
        for name in unset {
            command.env_remove(name);
        }
        project
            .run(&mut command)
            .exits(0)
            .says(&format!("note: python 3.12.1 at {expected}, torch 2.11.0, triton 3.6.0\n"));
    };
    build(&format!("--python {}/bin/python", option.display()), &[], "[FOLDER]/option/bin/python (--python)");
    build("--python ../option/bin/python", &[], "[ROOT]/../option/bin/python (--python)");
    build("", &[], "[FOLDER]/python/bin/python ($T2T_PYTHON)");
    build("", &["T2T_PYTHON"], "[FOLDER]/virtual/bin/python ($VIRTUAL_ENV)");
    build("", &["T2T_PYTHON", "VIRTUAL_ENV"], "[ROOT]/.venv/bin/python (the workspace's .venv)");
}

#[test]
fn the_interpreter_beside_the_binary_is_the_last() {
    let project = Project::new();
    let folder = project.path("../beside");
    install(&folder);
    copy_program(&environment::binary(), &folder.join("bin/t2t"));
    let plain = project.command("build softmax:analyze");
    let mut command = Command::new(folder.join("bin/t2t"));
    command.args(plain.get_args()).current_dir(project.path("")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("T2T_PYTHON");
    project.run(&mut command).exits(0).says("at [FOLDER]/beside/bin/python (beside t2t)");
}

#[test]
fn without_any_interpreter_a_build_is_refused_and_a_look_is_not() {
    let project = Project::built();
    let bare = |arguments: &str| project.run(project.command(arguments).env_remove("T2T_PYTHON"));
    let ran = bare("build").exits(2);
    let expected = "\
error: no Python was found: looked at --python, $T2T_PYTHON, $VIRTUAL_ENV, the workspace's .venv and t2t's own folder
hint: run `uv run t2t build`, or name one with `--python`
";
    assert_eq!(ran.stderr, expected);
    bare("graph").exits(0);
    bare("status").exits(0);
    bare("log softmax").exits(0);
}

#[test]
fn an_interpreter_that_is_not_there_is_bad_use() {
    let ran = Project::new().t2t("build --python /nowhere/python").exits(2);
    let expected = "\
error: cannot start `/nowhere/python`: No such file or directory (os error 2)
hint: name another interpreter with `--python` or `$T2T_PYTHON`
";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn an_interpreter_without_torch_is_told() {
    let project = Project::new();
    project.install(&[("triton", "3.6.0")]);
    let ran = project.build().exits(3);
    let expected = "\
error: `[FOLDER]/python/bin/python` cannot import torch: ImportError: none
hint: run `uv sync`, or name another interpreter with `--python`
";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn an_interpreter_that_is_no_interpreter_is_quoted() {
    let project = Project::new();
    let ran = project.t2t("build --python /bin/false").exits(3);
    assert!(ran.stderr.starts_with("error: `/bin/false` cannot serve: "), "{}", ran.stderr);
}
