//! Kernels that a generator writes: attempts at them, whose the files are, and what builds run for them.
//!
//! The generator has templates of the workspace's own, which say in each form what is to become of it.

use std::fs;

use serde_json::Value;

use crate::authored::{FILE, GELU, checks, ops};
use crate::project::{Project, Ran, copy_folder};

const FAMILY: &str = r#"{
  "title": "a row for tests", "template": "scripted.py.jinja",
  "techniques": [{"variant": "v2_tiling", "summary": "tiles"}, {"variant": "v3_coalesced", "summary": "wide requests"}],
  "ops": {"softmax": {"torch": "torch.nn.functional.softmax", "title": "Softmax", "math": "out = x."}}
}
"#;

/// What a build of everything runs where the first attempt is accepted.
const ALL: &str = "gelu:analyze,select,log gelu/v1_baseline:compile,check,bench softmax:analyze,select,log softmax/v1_baseline:generate,compile,check,bench summary";

/// Twice rejected, in two ways; the third form is accepted.
pub const THIRD: &str = "{% if plain %}REJECT dtype{% elif general %}{% else %}REJECT mismatch{% endif %}";

/// Rejected in every form.
const NEVER: &str = "REJECT mismatch";

/// Makes a workspace with a kernel of a person and one that is made; `mark` says what is to become of it in each form.
pub fn project(mark: &str) -> Project {
    let project = Project::with(&ops("", &format!("    generator: template\n{GELU}")));
    project.kernel("gelu", "v1_baseline", "");
    project.write("assets/generators/softmax.json", FAMILY);
    template(&project, mark);
    project
}

fn template(project: &Project, mark: &str) {
    let form = "{% if plain %}plain{% elif general %}general{% elif small %}small{% else %}standard{% endif %}";
    let text = format!(
        "\"\"\"{{{{ op.title }}}}, {form}.\n\"\"\"\nMARK = \"{mark}\"\nFORM = \"{form}\"\n\ndef {{{{ entry }}}}(input):\n    return input + 1\n"
    );
    project.write("assets/generators/scripted.py.jinja", text);
}

fn form(project: &Project) -> String {
    let text = project.read(FILE);
    text.lines().find_map(|line| line.strip_prefix("FORM = ")).unwrap().trim_matches('"').to_owned()
}

// Attempts.

#[test]
fn what_is_accepted_at_once_lies_in_its_place_and_is_built_once() {
    let project = project("");
    project.build().exits(0).runs(ALL);
    assert_eq!(form(&project), "standard");
    for _ in 0..2 {
        let ran = project.build().exits(0).runs("");
        assert_eq!(ran.starts, 0);
    }
    project.forget_answers();
    project.build().exits(0).runs("");
    project.t2t("status").exits(0).says("0 stale");
}

#[test]
fn an_attempt_that_is_rejected_is_made_again_in_the_form_that_its_failure_asks_for() {
    let project = project(THIRD);
    project.remove("assets/log_template.md");
    let ran = project.build().exits(0);
    assert!(ran.actions.contains("softmax/v1_baseline#2:generate softmax/v1_baseline#3:generate"), "{}", ran.actions);
    let said = ran.says("softmax/v1_baseline:check: attempt 1 was rejected (mismatch)").never_says("error:");
    said.says("softmax/v1_baseline#2:check: attempt 2 was rejected (dtype)").never_says("rejected 1");
    assert_eq!((form(&project).as_str(), checks(&project)), ("general", 3));
    let log = project.read("logs/softmax_log.md");
    assert!(log.contains("| 1 | standard | the family's own choice | ❌ mismatch (check):"), "{log}");
    assert!(log.contains("| 2 | plain | neither technique, arithmetic in float64 | ❌ dtype (check):"), "{log}");
    assert!(log.contains("| 3 | general | every operand is written out contiguously first | ✅ passed |"), "{log}");
    assert!(project.read("logs/summary.md").contains("| Attempts of a generator | 3 |"));
    project.build().exits(0).runs("");
    project.forget_answers();
    project.build().exits(0).runs("").never_says("attempt");
    assert_eq!(form(&project), "general");
}

#[test]
fn what_is_never_accepted_is_rejected_and_taken_away_and_the_others_go_on() {
    let project = project(NEVER);
    let ran = project.build().exits(1);
    assert!(ran.actions.contains("gelu/v1_baseline:compile,check,bench"), "{}", ran.actions);
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "the last attempt's alone:\n{}", ran.stderr);
    ran.says("rejected 1");
    assert_eq!((project.exists(FILE), checks(&project)), (false, 4));
    project.build().exits(1).runs("").says("rejected 1");
    project.forget_answers();
    project.build().exits(1).runs("").says("rejected 1");
    assert!(!project.exists(FILE));
}

#[test]
fn there_are_as_many_attempts_as_ops_yaml_says() {
    let project = project(NEVER);
    project.edit("ops.yaml", "generator: template", "generator: template\n    check: {max_retries: 1}");
    project.build().exits(1);
    assert_eq!(checks(&project), 2);
    project.edit("ops.yaml", "max_retries: 1", "max_retries: 0");
    project.build().exits(1);
    assert_eq!(checks(&project), 2);
    project.edit("ops.yaml", "max_retries: 0", "max_retries: 9");
    project.build().exits(1).says("the generator has no further form; these failed: standard, plain, general, small");
    assert_eq!(checks(&project), 4, "what was rejected before is not asked again");
}

#[test]
fn a_kernel_that_does_not_compile_is_made_again() {
    let project = project("{% if small %}{% else %}COMPILE-ERROR{% endif %}");
    project.build().exits(0);
    assert_eq!(form(&project), "small");
}

#[test]
fn what_another_kernel_cannot_help_is_not_tried_again() {
    for mark in ["NOT-JUDGED", "REJECT unfit-cases"] {
        let project = project(mark);
        project.build();
        assert_eq!(checks(&project), 1, "{mark}");
    }
    let lost = project("LOST");
    lost.build().exits(3);
    assert_eq!(lost.log().iter().filter(|line| line.contains("#2")).count(), 0);
}

#[test]
fn a_source_that_failed_before_is_not_checked_again_whoever_wrote_it() {
    let project = project(NEVER);
    project.edit("ops.yaml", "generator: template", "generator: template\n    check: {max_retries: 0}");
    project.build().exits(1);
    template(&project, "{% if plain %}{% else %}REJECT mismatch{% endif %}");
    project.edit("ops.yaml", "max_retries: 0", "max_retries: 3");
    let before = checks(&project);
    project.build().exits(0);
    assert_eq!((form(&project).as_str(), checks(&project) - before), ("plain", 1), "the first form is as it was");
    // A person's file of the same bytes is rejected without a child, too: where nothing is known of who made it.
    let rejected = project.read(FILE).replace("plain", "standard").replace("MARK = \"\"", "MARK = \"REJECT mismatch\"");
    project.edit("ops.yaml", "    generator: template\n", "");
    project.write(FILE, rejected);
    let before = checks(&project);
    project.build().exits(1);
    assert_eq!(checks(&project), before);
}

#[test]
fn a_template_that_cannot_be_rendered_rejects_its_kernels_and_the_others_go_on() {
    let project = project("");
    project.write("assets/generators/scripted.py.jinja", "{{ nothing.there }}\n");
    let ran = project.build().exits(1).says("assets/generators/scripted.py.jinja:1");
    assert!(ran.actions.contains("gelu/v1_baseline:compile,check,bench"), "{}", ran.actions);
    assert!(!project.exists(FILE));
    template(&project, "");
    project.build().exits(0);
}

// Whose the files are.

#[test]
fn a_persons_file_stays_and_is_built_as_any_other() {
    let project = project("");
    project.kernel("softmax", "v1_baseline", "");
    let own = project.read(FILE);
    project.build().exits(0).runs(&ALL.replace("generate,", ""));
    assert_eq!(project.read(FILE), own);
    project.edit(FILE, "MARK = \"\"", "MARK = \"REJECT mismatch\"");
    let ran = project.build().exits(1);
    assert!(!ran.actions.contains("generate"), "{}", ran.actions);
    assert!(project.read(FILE).contains("REJECT"), "what a person wrote is not taken away");
}

#[test]
fn a_file_that_a_person_changed_is_that_persons_until_it_is_deleted() {
    let project = project("");
    project.build().exits(0);
    project.edit(FILE, "input + 1", "input + 2");
    let changed = project.read(FILE);
    let ran = project.build().exits(0);
    assert!(ran.actions.contains("softmax/v1_baseline:compile,check,bench"), "{}", ran.actions);
    template(&project, "TAKES 1");
    project.build().exits(0);
    assert_eq!(project.read(FILE), changed);
    project.remove(FILE);
    project.build().exits(0);
    assert!(project.read(FILE).contains("TAKES 1"));
}

#[test]
fn a_file_that_was_deleted_comes_back_and_nothing_runs() {
    let project = project(THIRD);
    project.build().exits(0);
    let made = project.read(FILE);
    for _ in 0..2 {
        project.remove(FILE);
        project.build().exits(0).runs("");
        assert_eq!(project.read(FILE), made);
        project.build().exits(0).runs("");
    }
}

#[test]
fn a_file_that_nobody_touched_is_made_again_when_the_generator_changes() {
    let project = project("");
    project.build().exits(0);
    template(&project, "TAKES 1");
    let ran = project.build().exits(0);
    assert!(ran.actions.contains("softmax/v1_baseline:generate,compile,check,bench"), "{}", ran.actions);
    assert!(project.read(FILE).contains("TAKES 1"));
    template(&project, "");
    project.build().exits(0).runs_beside_the_summary("");
    assert!(!project.read(FILE).contains("TAKES 1"), "an earlier result comes back, and its file");
}

#[test]
fn what_is_made_in_other_bytes_with_one_meaning_runs_nothing_but_the_log() {
    let project = project("");
    project.build().exits(0);
    let path = "assets/generators/scripted.py.jinja";
    project.write(path, project.read(path).replace("MARK", "# what becomes of it\nMARK"));
    project.build().exits(0).runs_beside_the_summary("softmax:log softmax/v1_baseline:generate");
    assert!(project.read(FILE).contains("# what becomes of it"));
}

#[test]
fn a_file_that_is_not_a_kernel_any_more_stays_where_a_person_changed_it_while_the_build_ran() {
    let project = project("{% if plain %}{% else %}REJECT mismatch; SLEEP 1{% endif %}");
    let child = project.spawn("build");
    project.until_logged("softmax/v1_baseline:check candidate:run");
    project.write(FILE, "mine = 1\n");
    let ran = project.wait(child);
    assert_eq!(project.read(FILE), "mine = 1\n");
    ran.exits(1).says("changed while it ran");
}

#[test]
fn status_says_whose_the_kernel_files_are() {
    let project = project(THIRD);
    project.edit("ops.yaml", "generator: template", "generator: template\n    variants: [v1_baseline, v2_tiling]");
    project.kernel("softmax", "v2_tiling", "");
    project.build().exits(0);
    let ran = project.t2t("status").exits(0);
    ran.says("generated softmax: v1_baseline#3\nown       softmax: v2_tiling\n").never_says("rejected");
    project.edit(FILE, "input + 1", "input + 2");
    project.t2t("status").exits(0).says("own       softmax: v1_baseline, v2_tiling\n");
}

#[test]
fn a_persons_file_is_written_over_only_where_that_is_asked_for_and_is_kept() {
    let project = project("");
    project.kernel("softmax", "v1_baseline", "");
    let own = project.read(FILE);
    project.build().exits(0);
    let hint = "the generator makes no kernel of softmax";
    project.t2t("generate softmax").exits(2).says(hint).says("--overwrite");
    project.t2t("build --force softmax").exits(0);
    assert_eq!(project.read(FILE), own);
    let ran = project.t2t("build --overwrite").exits(0).says(&format!("{FILE}, which a person wrote, is written over"));
    assert!(ran.actions.contains("softmax/v1_baseline:generate,compile,check,bench"), "{}", ran.actions);
    assert_eq!(form(&project), "standard");
    let kept: Vec<String> =
        project.files("cache/replaced").iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    assert_eq!(kept, [own]);
    project.build().exits(0).runs("");
}

#[test]
fn the_generator_is_asked_again_and_what_it_made_before_is_kept() {
    let project = project(THIRD);
    project.build().exits(0);
    let ran = project.t2t("generate softmax").exits(0);
    let asked = "softmax/v1_baseline:generate softmax/v1_baseline#2:generate softmax/v1_baseline#3:generate";
    ran.runs_beside_the_summary(asked);
    assert_eq!((form(&project).as_str(), checks(&project)), ("general", 3));
    project.build().exits(0).runs_beside_the_summary("");
}

#[test]
fn attempts_are_listed_shown_and_held_against_each_other() {
    let project = project(THIRD);
    project.t2t("attempts softmax").exits(0).says("no attempt at a kernel of `softmax` is known");
    project.build().exits(0);
    let ran = project.t2t("attempts softmax").exits(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    assert!(
        lines[0].starts_with("softmax/v1_baseline  standard  rejected (mismatch, check): 2 of 256 elements differ")
    );
    assert!(lines[1].starts_with("softmax/v1_baseline#2  plain  rejected (dtype, check): "), "{}", lines[1]);
    assert!(lines[2].starts_with("softmax/v1_baseline#3  general  accepted"), "{}", lines[2]);
    let told: Value = serde_json::from_str(&project.run_raw("attempts softmax --format json")).unwrap();
    let of = |place: usize, name: &str| told[place][name].as_str().unwrap_or("none").to_owned();
    assert_eq!(of(0, "attempt"), "softmax/v1_baseline");
    assert_eq!(["form", "outcome", "class", "phase"].map(|name| of(1, name)), ["plain", "rejected", "dtype", "check"]);
    assert_eq!((of(2, "outcome").as_str(), told[2]["final_ms"].is_number()), ("accepted", true), "{told}");
    assert_eq!((told.as_array().unwrap().len(), &told[0]["tokens"]), (3, &Value::Null));
    project.t2t("attempts softmax/v1_baseline --show --format json").exits(2);
    assert_eq!(project.run_raw("attempts softmax/v1_baseline --show"), project.read(FILE));
    assert!(project.run_raw("attempts softmax/v1_baseline#2 --show").contains("FORM = \"plain\""));
    let difference = project.run_raw("attempts softmax/v1_baseline#2 --diff");
    assert!(difference.contains("--- softmax/v1_baseline\n+++ softmax/v1_baseline#2\n"), "{difference}");
    assert!(difference.contains("-FORM = \"standard\"\n"), "{difference}");
    assert!(difference.contains("+FORM = \"plain\"\n"), "{difference}");
    assert!(project.run_raw("attempts softmax/v1_baseline#1 --show").contains("FORM = \"standard\""));
    let evidence = |place: &str| project.run_raw(&format!("artifact {place}:check evidence"));
    assert!(
        evidence("softmax/v1_baseline#1").contains("2 of 256 elements differ"),
        "{}",
        evidence("softmax/v1_baseline#1")
    );
    assert!(!evidence("softmax/v1_baseline").contains("elements differ"), "the one that stands");
    project.t2t("attempts softmax/v1_baseline#0 --show").exits(2);
    project.t2t("attempts softmax/v1_baseline#4 --show").exits(2).says("no attempt `softmax/v1_baseline#4` is known");
    project.t2t("attempts softmax/v1_baseline --diff").exits(0);
    project.t2t("attempts softmax --show").exits(2).says("names no variant");
    project
        .t2t("explain softmax/v1_baseline#2:check")
        .exits(0)
        .says("softmax/v1_baseline#2:check: fresh\n  rejected (dtype)");
    project.t2t("build softmax/v1_baseline#2:check --force").exits(1).says("rejected 1");
    assert_eq!(form(&project), "general", "what was accepted stays");
}

// Other checkouts, and ends that nobody wanted.

#[test]
fn a_checkout_with_the_cache_makes_nothing_anew_with_the_file_and_without_it() {
    let project = project(THIRD);
    project.build().exits(0);
    for has_file in [true, false] {
        let clone = self::project(THIRD);
        copy_folder(&project.path("cache"), &clone.path("cache"));
        if has_file {
            clone.write(FILE, project.read(FILE));
        }
        clone.build().exits(0).runs("");
        assert_eq!(clone.read(FILE), project.read(FILE), "{has_file}");
        assert_eq!(checks(&clone), 0);
        template(&clone, "TAKES 1");
        clone.build().exits(0);
        assert!(clone.read(FILE).contains("TAKES 1"), "the file is the generator's in the checkout, too");
    }
}

#[test]
fn a_checkout_with_an_archive_of_the_cache_makes_nothing_anew() {
    let project = project(THIRD);
    project.build().exits(0);
    project.t2t("cache export ../archive.tar.gz").exits(0);
    let clone = self::project(THIRD);
    fs::copy(project.path("../archive.tar.gz"), clone.path("../archive.tar.gz")).unwrap();
    clone.t2t("cache import ../archive.tar.gz").exits(0);
    clone.build().exits(0).runs("");
    assert_eq!(clone.read(FILE), project.read(FILE));
}

#[test]
fn a_build_that_was_killed_among_attempts_leaves_what_the_next_one_goes_on_from() {
    for mark in ["REJECT mismatch; WAITS", "{% if plain %}WAITS{% else %}REJECT mismatch{% endif %}"] {
        let project = project(mark);
        let mut child = project.spawn("build");
        let checks_begun = if mark.starts_with('R') { 1 } else { 2 };
        crate::project::until(|| (checks(&project) >= checks_begun).then_some(()));
        child.kill().unwrap();
        child.wait().unwrap();
        project.calm();
        assert!(project.exists(FILE), "what is checked lies in its place");
        let code = i32::from(mark.starts_with('R'));
        project.build().exits(code);
        assert_eq!(project.exists(FILE), code == 0, "the file is known to be the generator's");
        project.build().exits(code).runs("");
    }
}

// What ops.yaml may say.

#[track_caller]
fn refused(project: &Project, said: &str) -> Ran {
    project.build().exits(2).says(said)
}

#[test]
fn a_generator_that_cannot_make_a_kernel_is_said_at_its_place_before_anything_runs() {
    let project = project("");
    let other = FAMILY.replace("torch.nn.functional.softmax", "torch.rows").replace("\"softmax\":", "\"rows\":");
    project.write("assets/generators/softmax.json", other);
    let said = "no family of the generator has `torch.nn.functional.softmax`, the function of op `softmax`";
    let ran = refused(&project, said).says("error: ops.yaml:6:3: ").says("take `generator` out");
    assert_eq!(ran.actions, "");
    let project = self::project("");
    project.edit("ops.yaml", "generator: template", "generator: template\n    variants: [v1_baseline, own]");
    refused(&project, "the generator has no variant `own` of `softmax`").says("generator: none");
    project.edit("ops.yaml", "own]", "{name: own, generator: none}]");
    project.build().exits(1).says("kernels/softmax/own.py: no such file");
    fs::create_dir(project.path("kernels/softmax/own.py")).unwrap();
    project.edit("ops.yaml", "generator: none", "generator:  none");
    project.build().exits(1).says("kernels/softmax/own.py: it is a folder").says("put a file in its place");
    let project = self::project("");
    project.edit("ops.yaml", "generator: template", "generator: agent");
    refused(&project, "ops.yaml:10:");
}
