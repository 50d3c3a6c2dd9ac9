//! What commands print: lines, tables and colors, and what becomes of output that is lost.
//!
//! It does not know what runs.

use std::fs;
use std::process::{Command, Stdio};

use super::rejecting;
use crate::project::Project;

/// What every build of these tests says first.
const NOTES: &str = "\
note: python 3.12.1 at [FOLDER]/python/bin/python ($T2T_PYTHON), torch 2.11.0, triton 3.6.0
note: no CUDA device is used: kernels run in Triton's interpreter on the CPU, at the sizes of the cpu profile
";

#[test]
fn a_quiet_build_says_its_result_alone() {
    let project = Project::new();
    let ran = project.t2t("build -q").exits(0);
    assert_eq!(ran.stderr, "fresh 0, restored 0, ran 19 in [TIME]\n");
}

#[test]
fn a_build_says_what_it_did_line_by_line() {
    let project = Project::new();
    let ran = project.t2t("build --jobs 1 softmax:compile softmax:analyze").exits(0);
    let lines = "\
3 actions; lanes: cpu
analyze softmax … passed [TIME]
compile softmax/v1_baseline … passed [TIME]
compile softmax/v2_tiling … passed [TIME]
fresh 0, restored 0, ran 3 in [TIME]
";
    assert_eq!((ran.stderr, ran.stdout.as_str()), (format!("{NOTES}{lines}"), ""));
}

#[test]
fn a_rejection_is_told_in_full_and_again_when_it_stands() {
    let project = rejecting("REJECT mismatch");
    let message = "\
error: kernels/softmax/v2_tiling.py:4:1: 2 of 256 elements differ (mismatch)
  |
4 | MARK = \"REJECT mismatch\"
  | ^
  case small/float32/0 of softmax/v2_tiling:check
alone: t2t repro softmax/v2_tiling small/float32/0
";
    let ran = project.t2t("build -q").exits(1).says(message);
    assert!(ran.stderr.ends_with("fresh 0, restored 0, ran 18, skipped 1, rejected 1 in [TIME]\n"), "{}", ran.stderr);
    let ran = project.t2t("build -q").exits(1).runs("");
    assert_eq!(ran.stderr, format!("{message}fresh 18, restored 0, ran 0, skipped 1, rejected 1 in [TIME]\n"));
}

#[test]
fn the_build_ends_with_the_table_on_standard_output() {
    let ran = Project::built().build().exits(0);
    let words: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = ["Op", "First", "right", "kernel", "Interpreter", "took", "Correct", "Note"];
    assert_eq!(words[0], head);
    for (row, op) in words[2..].iter().zip(["softmax", "gelu"]) {
        assert_eq!(*row, [op, "v1_baseline", "[TIME]", "2/2"]);
    }
    assert_eq!(words.len(), 4, "{}", ran.stdout);
}

#[test]
fn what_is_no_terminal_gets_no_escape_codes() {
    let project = rejecting("REJECT mismatch");
    for arguments in ["build", "build", "status", "explain softmax:check", "graph", "log softmax", "build sofmax"] {
        project.t2t(arguments).never_says("\u{1b}");
    }
}

/// Runs t2t on a terminal of its own and returns what it wrote there.
fn on_a_terminal(project: &Project, variables: &[(&str, &str)]) -> String {
    let t2t = project.command("build");
    let mut command = Command::new("python3");
    command.args(["-c", "import pty, sys; pty.spawn(sys.argv[1:])"]).arg(t2t.get_program()).args(t2t.get_args());
    command.current_dir(project.path("")).env_clear().stdin(Stdio::null());
    command.envs(t2t.get_envs().filter_map(|(name, value)| Some((name, value?)))).envs(variables.iter().copied());
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

/// Returns whether the text has colors: `ESC [ … m`.
fn is_colored(text: &str) -> bool {
    let codes = text.split("\u{1b}[").skip(1);
    codes
        .into_iter()
        .any(|rest| rest.find(|c: char| c.is_ascii_alphabetic()).is_some_and(|end| rest[end..].starts_with('m')))
}

#[test]
fn a_terminal_gets_colors_unless_they_are_refused() {
    let text = on_a_terminal(&rejecting("REJECT mismatch"), &[("TERM", "xterm")]);
    assert!(is_colored(&text), "{text}");
    let text = on_a_terminal(&rejecting("REJECT mismatch"), &[("TERM", "xterm"), ("NO_COLOR", "1")]);
    assert!(text.contains("rejected") && !is_colored(&text), "{text}");
    let text = on_a_terminal(&rejecting("REJECT mismatch"), &[("TERM", "dumb")]);
    assert!(text.contains("rejected") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let project = Project::built();
    let mut child = project.spawn("graph");
    drop(child.stdout.take());
    project.wait(child).exits(0).never_says("panicked");
}

#[test]
fn what_cannot_be_printed_is_exit_code_3_with_one_line_and_a_reader_that_has_gone_is_no_error() {
    let project = Project::built();
    let commands = [
        "build",
        "status",
        "graph",
        "log softmax",
        "explain softmax",
        "schema",
        "cache stats",
        "cache verify",
        "doctor",
        "completions bash",
        "cache gc --dry-run",
    ];
    for arguments in commands {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = project.command(arguments).stdout(full).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let errors: Vec<&str> = told.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(
            errors,
            ["error: cannot write to standard output: No space left on device (os error 28)"],
            "{arguments}: {told}"
        );
        assert_eq!(output.status.code(), Some(3), "{arguments}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = project.command(arguments).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_folder_of_sources_that_is_not_there_is_told() {
    let project = Project::new();
    project.edit("ops.yaml", "ops:\n", "sources: [lib, nowhere]\nops:\n");
    project.write("lib/shared.py", "\n");
    let told = "warning: `sources` in ops.yaml names `nowhere`, and there is no such folder\n";
    project.build().exits(0).says(told).never_says("`lib`");
}
