//! `t2t improve`: scripted authors whose kernels are faster, slower, wrong, late or none, on a device that the interpreter for tests plays.
//!
//! A kernel says in it what it takes, for the stand-in for Python.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::authored::{FILE, author, ops};
use crate::project::{Project, Ran, until};

/// Slower, wrong, faster, the same again, no kernel, faster only when screened, broken when screened, faster still.
const MANY: &str = r#"case $attempt in
1) kernel 'TAKES 3' > "$T2T_FILE" ;;
2) kernel 'REJECT mismatch' > "$T2T_FILE" ;;
3) echo '{"tokens": 1234}' > usage.json; kernel 'TAKES 1' > "$T2T_FILE" ;;
4) attempt=3; kernel 'TAKES 1' > "$T2T_FILE" ;;
5) echo 'I would rather not.' ;;
6) kernel 'TAKES 1.5; SEEMS 0.5' > "$T2T_FILE" ;;
7) kernel 'BREAKS' > "$T2T_FILE" ;;
*) kernel 'TAKES 0.5' > "$T2T_FILE" ;;
esac
"#;

/// Makes a machine with a device and a workspace with a kernel that takes 2 ms.
fn project(script: &str) -> Project {
    let project = Project::with(&ops("generators:\n  agent: {command: [./authors/agent], timeout: 240s}\n", ""));
    project.kernel("softmax", "v1_baseline", "TAKES 2");
    project.write("../driver/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n");
    let text = "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-00000000-aaaa-bbbb-cccc-dddddddddddd\n";
    project.write("../driver/gpus/0000:00:00.0/information", text);
    fs::create_dir(project.path("../locks")).unwrap();
    project.remove("assets/log_template.md");
    author(&project, script);
    project
}

/// Runs a command on the device.
fn on_device(project: &Project, arguments: &str) -> Ran {
    let mut command = project.command(&format!("{arguments} --device cuda"));
    command.env("T2T_DRIVER", project.path("../driver")).env("T2T_LOCK_DIR", project.path("../locks"));
    project.run(&mut command)
}

fn improve(project: &Project, more: &str) -> Ran {
    on_device(project, &format!("improve softmax/v1_baseline --generator agent {more}"))
}

fn rounds(project: &Project) -> Vec<Value> {
    let kept: Value = serde_json::from_str(&project.read("assets/rounds/softmax.json")).unwrap();
    kept["variants"]["v1_baseline"].as_array().unwrap().clone()
}

fn ends(project: &Project) -> Vec<String> {
    rounds(project).iter().map(|round| round["end"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_best_keeps_its_place_and_what_loses_is_never_benched() {
    let project = project(MANY);
    let ran = improve(&project, "--rounds 8 --overwrite").exits(0).says("2 of 8 rounds gave a better kernel");
    let told = ["slower", "rejected", "better", "same", "rejected", "not-better", "rejected", "better"];
    assert_eq!(ends(&project), told, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("round 2  agent  rejected (mismatch, check): 2 of 256 elements differ"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("round 3  agent  better  3 pairs: 50 %"), "{}", ran.stdout);
    assert!(project.read(FILE).contains("ATTEMPT = 8"));
    // The incumbent, and what may win: rounds 3, 6 and 8.
    let log = project.log();
    let count = |call: &str| log.iter().filter(|line| line.ends_with(call)).count();
    assert_eq!((count("bench:bench"), count("screen:screen")), (4, 5), "{log:?}");
    let kept = project.files("cache/replaced");
    assert_eq!(kept.len(), 1, "what a person wrote is kept once");
    assert!(fs::read_to_string(&kept[0]).unwrap().contains("TAKES 2"));
    assert!(!project.exists("cache/improve/softmax/trial"));
}

#[test]
fn the_next_build_has_it_as_any_kernel_and_the_log_its_rounds() {
    let project = project(MANY);
    improve(&project, "--rounds 3 --overwrite").exits(0);
    let built = on_device(&project, "build").exits(0);
    assert!(!built.actions.contains("check") && !built.actions.contains("bench"), "{}", built.actions);
    let log = project.read("logs/softmax_log.md");
    for part in [
        "### v1_baseline: rounds of improvement",
        "| 1 | agent |",
        "150 % (148.5 % to 151.5 %)",
        "❌ rejected (mismatch, check): 2 of 256 elements differ",
        "✅ better, now the kernel",
        "![Rounds of improvement",
    ] {
        assert!(log.contains(part), "no {part} in\n{log}");
    }
    let picture = project.read("assets/rounds/softmax.svg");
    assert!(picture.contains("v1_baseline") && picture.matches("<circle").count() == 2, "{picture}");
    on_device(&project, "build").exits(0).runs("");
    improve(&project, "--rounds 1").exits(0);
    assert_eq!(rounds(&project)[3]["round"], 4, "rounds count on");
    on_device(&project, "build").exits(0).runs_beside_the_summary("softmax:log");
}

#[test]
fn an_author_is_told_figures_resources_failures_and_rounds() {
    let project = project(MANY);
    improve(&project, "--rounds 4 --overwrite").exits(0);
    let first = project.read("authors/prompt1.md");
    for part in ["# Write a Triton kernel", "`triton_softmax`", "TAKES 2", "| 2.000 |", "32 registers", "nvidia-h200"] {
        assert!(first.contains(part), "no {part} in\n{first}");
    }
    let second = project.read("authors/prompt2.md");
    assert!(second.contains("The last candidate was right, and no faster") && second.contains("TAKES 3"), "{second}");
    let third = project.read("authors/prompt3.md");
    assert!(third.contains("What was wrong with attempt 2") && third.contains("2 of 256 elements differ"), "{third}");
    let fourth = project.read("authors/prompt4.md");
    assert!(
        fourth.contains("TAKES 1") && fourth.contains("| 3 | 3 lines added, 6 removed | 50 % | better |"),
        "{fourth}"
    );
    let request: Value = serde_json::from_str(&project.read("authors/request4.json")).unwrap();
    assert_eq!((&request["improve"]["round"], &request["improve"]["bench"]["final_ms"]), (&4.into(), &1.0.into()));
}

#[test]
fn a_persons_file_is_left_as_it_is_and_the_better_kernel_is_kept() {
    let project = project("kernel 'TAKES 1' > \"$T2T_FILE\"\n");
    let before = project.read(FILE);
    let ran = improve(&project, "--rounds 1").exits(0);
    ran.says("kernels/softmax/v1_baseline.py is a person's").says("kept in cache/improve/softmax/v1_baseline.py");
    assert_eq!(project.read(FILE), before);
    assert!(project.read("cache/improve/softmax/v1_baseline.py").contains("TAKES 1"));
    assert_eq!((&rounds(&project)[0]["end"], &rounds(&project)[0]["placed"]), (&"better".into(), &false.into()));
    let built = on_device(&project, "build").exits(0);
    assert!(
        !built.actions.contains("check") && !built.actions.contains("bench"),
        "what is there stands: {}",
        built.actions
    );
    // Who copies it takes what a round made: it may be replaced from then on.
    project.write(FILE, project.read("cache/improve/softmax/v1_baseline.py"));
    author(&project, "kernel 'TAKES 0.5' > \"$T2T_FILE\"\n");
    improve(&project, "--rounds 1").exits(0);
    assert!(project.read(FILE).contains("TAKES 0.5"));
    assert!(!project.exists("cache/replaced"));
}

#[test]
fn the_same_better_kernel_takes_its_place_once_that_is_allowed() {
    let project = project("attempt=1; kernel 'TAKES 1' > \"$T2T_FILE\"\n");
    improve(&project, "--rounds 2").exits(0);
    improve(&project, "--rounds 2 --overwrite").exits(0);
    assert_eq!(ends(&project), ["better", "same", "better", "same"]);
    assert!(project.read(FILE).contains("TAKES 1"));
    author(&project, "attempt=1; kernel 'TAKES 3' > \"$T2T_FILE\"\n");
    improve(&project, "--rounds 1").exits(0);
    improve(&project, "--rounds 1").exits(0);
    assert_eq!(ends(&project)[4..], ["slower", "same"], "it lost to this very kernel");
}

#[test]
fn an_interrupt_ends_the_author_and_keeps_what_is_over() {
    let project = project(
        "[ $attempt = 1 ] && kernel 'TAKES 3' > \"$T2T_FILE\" || { sleep 600 & echo $! > \"$here/child\"; wait; }\n",
    );
    let mut command = project.command("improve softmax/v1_baseline --generator agent --device cuda");
    command.env("T2T_DRIVER", project.path("../driver")).env("T2T_LOCK_DIR", project.path("../locks"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| fs::read_to_string(project.path("authors/child")).ok()?.trim().parse::<i32>().ok());
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    project.wait(child).exits(130);
    assert_eq!(ends(&project), ["slower"]);
    assert!(!project.exists("cache/improve/softmax/trial"));
}

#[test]
fn a_file_that_is_changed_meanwhile_is_left_as_it_is() {
    let project =
        project("echo '# mine' >> \"$here/../kernels/softmax/v1_baseline.py\"; kernel 'TAKES 1' > \"$T2T_FILE\"\n");
    improve(&project, "--rounds 1 --overwrite").exits(0).says("was changed meanwhile and is left as it is");
    assert!(project.read(FILE).ends_with("# mine\n") && project.read(FILE).contains("TAKES 2"));
}

#[test]
fn a_kernel_that_a_generator_wrote_is_replaced_and_not_put_back() {
    let project = project("kernel 'TAKES 2' > \"$T2T_FILE\"\n");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    generator: agent");
    project.remove(FILE);
    on_device(&project, "build").exits(0);
    author(&project, "kernel 'TAKES 1' > \"$T2T_FILE\"\n");
    on_device(&project, "improve softmax --rounds 1").exits(0).never_says("a person's");
    let better = project.read(FILE);
    assert!(better.contains("TAKES 1"));
    on_device(&project, "build").exits(0);
    assert_eq!(project.read(FILE), better);
}

#[test]
fn an_author_that_hangs_is_a_round_and_budgets_end_it() {
    let project = project("sleep 600\n");
    project.edit("ops.yaml", "240s", "1s");
    improve(&project, "--rounds 2").exits(0).says("gave no kernel within 1s");
    assert_eq!(ends(&project), ["rejected", "rejected"]);
    project.edit("ops.yaml", "timeout: 1s", "timeout: 240s");
    let ran = improve(&project, "--rounds 9 --minutes 0.02").exits(0).says("the time of `--minutes` is over");
    assert_eq!(ends(&project).len(), 3, "{}", ran.stderr);
    author(&project, "kernel 'TAKES 3' > \"$T2T_FILE\"\n");
    project.edit("ops.yaml", "defaults:", "budget: {max_attempts: 1}\ndefaults:");
    improve(&project, "--rounds 9").exits(0).says("`max_attempts: 1`");
    assert_eq!(ends(&project).len(), 4);
}

#[test]
fn an_author_that_fails_ends_it_and_rounds_so_far_are_kept() {
    let project =
        project("[ $attempt = 1 ] || { echo 'not logged in' >&2; exit 7; }; kernel 'TAKES 3' > \"$T2T_FILE\"\n");
    improve(&project, "--rounds 3").exits(3).says("`agent` failed").says("not logged in");
    assert_eq!(ends(&project), ["slower"]);
}

#[test]
fn what_cannot_be_improved_says_why() {
    let project = project(MANY);
    let bad = |arguments: &str, code: i32, text: &str| on_device(&project, arguments).exits(code).says(text);
    bad("improve none", 2, "`none` is no op");
    bad("improve softmax/v9 --generator agent", 2, "softmax has no variant `v9`");
    bad("improve softmax/v1_baseline", 2, "ops.yaml names no author of softmax/v1_baseline")
        .says("--generator`: agent");
    bad("improve softmax/v1_baseline --generator template", 2, "cannot be asked for a better one");
    bad("improve softmax/v1_baseline --generator nobody", 2, "`generators` has no `nobody`");
    bad("improve softmax --generator agent", 1, "no variant of softmax is selected by results that stand");
    project.kernel("softmax", "v1_baseline", "REJECT mismatch");
    bad("improve softmax/v1_baseline --generator agent", 1, "is not right, so there is nothing to improve");
    project.kernel("softmax", "v1_baseline", "TAKES 2");
    project.write("assets/rounds/softmax.json", "{");
    bad("improve softmax/v1_baseline --generator agent", 2, "cannot be read as rounds of version 1");
    let automatic = project.run(&mut project.command("improve softmax/v1_baseline --generator agent --device auto"));
    automatic.exits(2).says("say nothing about a GPU");
}

#[test]
fn on_the_interpreter_nothing_is_replaced() {
    let project = project(MANY);
    let before = project.read(FILE);
    let ran = project.t2t("improve softmax/v1_baseline --generator agent --rounds 3 --overwrite").exits(0);
    ran.says("they say nothing about a GPU, and no kernel is replaced")
        .says("kept in cache/improve/softmax/v1_baseline.py");
    assert_eq!(project.read(FILE), before);
    assert_eq!(ends(&project), ["slower", "rejected", "better"]);
}
