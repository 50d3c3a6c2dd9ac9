//! Authors by command: scripts that answer well, badly, late, or not at all, and what builds make of it.
//!
//! What becomes of a kernel is said in it, for the stand-in for Python.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::authored::{FILE, GELU, author, checks, is_nowhere, ops};
use crate::project::{Project, copy_folder, until};

fn project(script: &str) -> Project {
    let generators = "generators:\n  agent: {command: [./authors/agent], timeout: 240s, env: [AGENT_KEY]}\n";
    let project = Project::with(&ops(generators, &format!("    generator: agent\n{GELU}")));
    project.kernel("gelu", "v1_baseline", "");
    author(&project, script);
    project
}

/// Returns the attempts that the author was asked for, in order.
fn asked(project: &Project) -> Vec<String> {
    let text = fs::read_to_string(project.path("authors/asked")).unwrap_or_default();
    text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// Waits until a process is gone.
fn until_gone(process: i32) {
    let runs = || fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|state| !state.contains(") Z "));
    until(|| (!runs()).then_some(()));
}

/// Twice rejected, in two ways; the third is accepted. One comes as a file, the others on standard output.
const THIRD: &str = r#"case $attempt in
1) kernel 'REJECT mismatch' > "$T2T_FILE"; echo done ;;
2) echo 'Here it is:'; echo '```python'; kernel 'REJECT dtype'; echo '```' ;;
*) echo '{"tokens": 1234, "cost_usd": 0.5}' > usage.json; echo '```python'; kernel ''; echo '```' ;;
esac
"#;

#[test]
fn what_fails_twice_is_asked_again_with_the_failure_and_nothing_is_asked_twice() {
    let project = project(THIRD);
    project.remove("assets/log_template.md");
    let ran = project.build().exits(0).never_says("error:");
    ran.says("softmax/v1_baseline:check: attempt 1 was rejected (mismatch)").says("(dtype)");
    assert_eq!(asked(&project), ["1", "2", "3"]);
    assert!(project.read(FILE).contains("ATTEMPT = 3"));
    let prompt = project.read("authors/prompt2.md");
    for part in ["mismatch", "2 of 256 elements differ", "ATTEMPT = 1", "`triton_softmax`", "`v1_baseline.py`"] {
        assert!(prompt.contains(part), "no {part} in\n{prompt}");
    }
    let log = project.read("logs/softmax_log.md");
    assert!(log.contains("| 1 | agent | written anew | ❌ mismatch (check):"), "{log}");
    assert!(log.contains("| 3 | agent | 2 lines added, 2 removed | ✅ passed |"), "{log}");
    let listed = project.t2t("attempts softmax").exits(0);
    let last = listed.stdout.lines().last().unwrap();
    assert!(
        last.starts_with("softmax/v1_baseline#3  agent  accepted") && last.ends_with("1234 tokens  $0.50"),
        "{last}"
    );
    project.forget_answers();
    project.build().exits(0).runs("");
    let clone = self::project("exit 1\n");
    copy_folder(&project.path("cache"), &clone.path("cache"));
    clone.remove("assets/log_template.md");
    clone.build().exits(0).runs("");
    assert_eq!((clone.read(FILE), asked(&clone).len()), (project.read(FILE), 0));
    project.edit("ops.yaml", "authors/agent]", "authors/agent, again]");
    project.build().exits(0);
    assert_eq!(asked(&project).len(), 6, "another command is another author");
}

#[test]
fn what_never_succeeds_is_asked_four_times_and_the_others_go_on() {
    let project = project("kernel \"REJECT mismatch\" > \"$T2T_FILE\"\n");
    let ran = project.build().exits(1).says("rejected 1");
    assert!(ran.actions.contains("gelu/v1_baseline:compile,check,bench"), "{}", ran.actions);
    assert_eq!((asked(&project).len(), project.exists(FILE)), (4, false));
    project.forget_answers();
    project.build().exits(1).runs("").says("rejected 1");
}

#[test]
fn answers_that_are_no_kernel_say_why_and_are_asked_again() {
    let project = project(
        r#"case $attempt in
1) head -c 3000 /dev/urandom ;;
2) for mark in a b; do echo '```python'; kernel $mark; echo '```'; done ;;
3) ln -s /etc/hostname "$T2T_FILE"; kernel '' > ../outside.py ;;
*) echo 'I would rather not.' ;;
esac
"#,
    );
    let ran = project.build().exits(1).says("rejected 1").says("`agent` gave no kernel");
    assert_eq!(checks(&project), 0, "{}", ran.stderr);
    let listed = project.t2t("attempts softmax").exits(0).stdout;
    let whys = ["no fenced Python block", "2 fenced Python blocks", "a link leads there", "no fenced Python block"];
    for (line, why) in listed.lines().zip(whys) {
        assert!(line.contains("rejected (no-kernel, generate): ") && line.contains(why), "{listed}");
    }
    assert!(project.read("authors/prompt3.md").contains("It gave no kernel"));
    project.build().exits(1).runs("");
    project.edit("ops.yaml", "generator: agent", "generator: agent\n    check: {max_retries: 5}");
    author(&project, "kernel '' > \"$T2T_FILE\"\n");
    project.build().exits(0);
    assert_eq!(asked(&project).last().unwrap(), "5");
}

#[test]
fn a_file_that_does_not_parse_and_a_source_that_failed_before_run_no_child() {
    let project = project(
        r#"case $attempt in
1) echo 'def triton_softmax(input:' > "$T2T_FILE" ;;
2) attempt=0; kernel 'REJECT mismatch' > "$T2T_FILE" ;;
3) attempt=0; kernel 'REJECT mismatch' > "$T2T_FILE" ;;
*) kernel '' > "$T2T_FILE" ;;
esac
"#,
    );
    let ran = project.build().exits(0);
    ran.says("attempt 1 was rejected (source)");
    assert_eq!((asked(&project).len(), checks(&project)), (4, 2));
    assert!(project.read("authors/prompt2.md").contains("def triton_softmax(input:"));
}

#[test]
fn an_author_that_hangs_is_ended_with_what_it_started_and_a_longer_time_asks_again() {
    let project = project("sleep 600 & echo $! > \"$here/child\"; wait\n");
    project.edit("ops.yaml", "240s", "1s");
    project.edit("ops.yaml", "generator: agent", "generator: agent\n    check: {max_retries: 0}");
    project.build().exits(1).says("`agent` gave no kernel within 1s");
    until_gone(project.read("authors/child").trim().parse().unwrap());
    project.build().exits(1).runs("");
    author(&project, "kernel '' > \"$T2T_FILE\"\n");
    project.edit("ops.yaml", "timeout: 1s", "timeout: 100s");
    project.build().exits(0);
}

#[test]
fn an_interrupt_ends_authors_with_what_they_started() {
    let project = project("trap '' TERM INT; sleep 600 & echo $! > \"$here/child\"; wait; sleep 600\n");
    let child = project.spawn("build");
    let started: i32 = until(|| fs::read_to_string(project.path("authors/child")).ok()?.trim().parse().ok());
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    project.wait(child).exits(130);
    until_gone(started);
}

#[test]
fn an_author_that_fails_is_no_word_on_the_kernel_and_is_asked_by_the_next_build() {
    let project = project("echo 'not logged in' >&2; exit 7\n");
    let ran = project.build().exits(3).says("`agent` failed").says("exit status: 7").says("not logged in");
    assert!(ran.actions.contains("gelu/v1_baseline:compile,check,bench"), "{}", ran.actions);
    assert_eq!(asked(&project).len(), 1);
    project.edit("ops.yaml", "./authors/agent", "no-such-program");
    project.build().exits(3).says("no-such-program");
    project.edit("ops.yaml", "no-such-program", "./authors/agent");
    author(&project, "kernel '' > \"$T2T_FILE\"\n");
    project.build().exits(0);
}

#[test]
fn what_an_author_writes_into_the_workspace_is_a_persons() {
    let project = project("kernel 'mine' > \"$here/../kernels/softmax/v1_baseline.py\"; kernel '' > \"$T2T_FILE\"\n");
    fs::create_dir_all(project.path("kernels/softmax")).unwrap();
    project.build().exits(3).says("was changed meanwhile: it is left as it is");
    assert!(project.read(FILE).contains("mine"));
}

#[test]
fn a_key_is_in_nothing_that_is_kept_or_said() {
    const KEY: &str = "sk-0123456789abcdef";
    let project = project(
        r#"case $attempt in
1) echo "the key is $AGENT_KEY" ; echo "$AGENT_KEY" >&2 ;;
2) kernel "REJECT mismatch; $AGENT_KEY" > "$T2T_FILE" ;;
3) echo "{\"tokens\": 1, \"key\": \"$AGENT_KEY\"}" > usage.json; kernel "REJECT dtype" > "$T2T_FILE" ;;
*) echo "$AGENT_KEY is wrong" >&2; exit 1 ;;
esac
"#,
    );
    let mut command = project.command("build --events ../events.jsonl");
    let ran = project.run(command.env("AGENT_KEY", KEY)).exits(3).never_says(KEY);
    ran.says("*** is wrong");
    assert_eq!(asked(&project).len(), 4);
    assert!(!fs::read_to_string(project.path("../events.jsonl")).unwrap().contains(KEY));
    project.t2t("attempts softmax").never_says(KEY);
    is_nowhere(&project, KEY);
}

#[test]
fn authors_work_at_once_on_a_lane_of_their_own() {
    let script = r#"touch "$here/$T2T_FILE"
while [ ! -e "$here/v1_baseline.py" ] || [ ! -e "$here/v2_tiling.py" ]; do sleep 0.05; done
kernel '' > "$T2T_FILE"
"#;
    let project = project(script);
    project.edit("ops.yaml", "generator: agent", "generator: agent\n    variants: [v1_baseline, v2_tiling]");
    project.t2t("build --jobs 1").exits(0).says("author ×4");
    project.t2t("build --dry-run").exits(0);
}

#[test]
fn another_generator_is_asked_for_once() {
    let project = project("kernel '' > \"$T2T_FILE\"\n");
    project.edit("ops.yaml", "generator: agent", "generator: template");
    project.build().exits(0);
    let ran = project.t2t("generate softmax --generator agent").exits(0);
    ran.says("write `generator: agent`");
    assert!(project.read(FILE).contains("by an agent"));
    project.build().exits(0);
    assert!(!project.read(FILE).contains("by an agent"), "ops.yaml says whose the kernel is");
    project.edit("ops.yaml", "generator: template", "generator: agent");
    project.build().exits(0);
    assert!(project.read(FILE).contains("by an agent"));
    assert_eq!(asked(&project).len(), 1, "what was asked is known");
    project.t2t("generate softmax --generator nobody").exits(2).says("there are `template`, `agent`");
}

#[test]
fn a_workspace_has_a_prompt_of_its_own_and_a_wrong_one_is_told() {
    let project = project("kernel '' > \"$T2T_FILE\"\n");
    project.write("assets/prompts/kernel.md", "Write {{ file }}.\n");
    project.build().exits(0);
    assert_eq!(project.read("authors/prompt1.md"), "Write v1_baseline.py.\n");
    project.write("assets/prompts/kernel.md", "Write {{ nothing }}.\n");
    project.build().exits(1).says("assets/prompts/kernel.md:1").says("`nothing` is not defined");
}

#[test]
fn what_the_budget_does_not_allow_is_skipped_with_that_reason_and_the_next_build_goes_on() {
    let script = "echo '{\"tokens\": 600}' > usage.json\nif [ $attempt -lt 4 ]; then kernel \"REJECT mismatch\"; else kernel ''; fi > \"$T2T_FILE\"\n";
    let project = project(script);
    project.edit("ops.yaml", "version: 1", "version: 1\nbudget: {max_tokens: 1000, max_attempts: 9, max_minutes: 60}");
    let ran = project.build().exits(1).says("no kernel of softmax/v1_baseline#3 is asked for");
    let ran = ran
        .says("the budget of this build is spent (`max_tokens: 1000`)")
        .says("of softmax/v1_baseline#2:check\nalone: ");
    assert!(ran.actions.contains("gelu/v1_baseline:compile,check,bench"), "{}", ran.actions);
    assert_eq!((asked(&project), project.exists(FILE)), (vec!["1".to_owned(), "2".to_owned()], false));
    project.edit("ops.yaml", "max_tokens: 1000", "max_tokens: 2000");
    project.build().exits(0);
    assert_eq!(asked(&project).len(), 4);
    project.edit("ops.yaml", "max_attempts: 9", "max_attempts: 1");
    project.edit(
        "ops.yaml",
        "generator: agent",
        "generator: agent\n    variants: [v1_baseline, v2_tiling, v3_coalesced]",
    );
    let ran = project.build().exits(1).says("(`max_attempts: 1`)");
    assert_eq!(asked(&project).len(), 5, "{}", ran.stderr);
    assert!(project.read("logs/softmax_log.md").contains("softmax"));
}
