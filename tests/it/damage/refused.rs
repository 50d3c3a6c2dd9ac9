//! A disk that is full, and rights that are lost.
//!
//! It does not know damaged bytes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use t2t_store::store::cas::Cas;
use t2t_store::store::journal::Lines;

use super::{KERNEL, bound_by_modes, expect_no_panic, logs, steady};
use crate::project::Project;
use crate::soak::Count;

#[test]
fn a_limit_on_files_ends_the_build_and_what_was_finished_is_kept() {
    let whole = steady();
    for blocks in [0, 1, 2, 4, 8, 16, 24, 32, 48] {
        let project = Project::new();
        project.write("../python/bin/steady", "");
        project.write("assets/summary_template.md", "# Of my own\n");
        let build = project.command("build");
        let mut limited = Command::new("/bin/sh");
        let binary = build.get_program().to_str().unwrap().to_owned();
        limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "sh", &binary]);
        limited.args(build.get_args()).current_dir(project.path("")).env_clear();
        limited.envs(build.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = project.run(&mut limited);
        expect_no_panic(&ran, &format!("{blocks} blocks"));
        assert!(ran.code == 3 || (ran.code == 0 && blocks > 16), "{blocks}: {} {}", ran.code, ran.stderr);
        let kept = fs::read(project.path("cache/journal")).map(|bytes| Lines::read(&bytes)).unwrap_or_default();
        let before = project.log().len();
        project.build().exits(0);
        let log = project.log();
        for record in &kept.records {
            let again = log[before..].iter().any(|line| line.starts_with(&format!("{} ", record.identity.target)));
            assert!(!again, "{blocks} blocks: {} was kept and ran again", record.identity.target);
        }
        project.t2t("cache verify --repair").exits(0);
        let texts = |project: &Project| logs(project).into_values().collect::<Vec<_>>();
        assert_eq!(texts(&project), texts(&whole), "{blocks} blocks");
    }
}

#[test]
#[ignore = "it mounts a file system, which takes a namespace: tests/soak.sh runs it"]
fn a_disk_that_is_really_full() {
    let count = Count::of("full disks", "met");
    for size in ["16k", "64k", "160k", "320k", "400k", "560k", "4m"] {
        let project = steady();
        project.remove("cache");
        fs::create_dir(project.path("cache")).unwrap();
        let build = project.command("build");
        let binary = build.get_program().to_str().unwrap().to_owned();
        // The store of the full disk is carried out of the namespace, to be looked at.
        let script = format!(
            "mount -t tmpfs -o size={size} t2t cache && {{ \"$@\"; code=$?; cp -a cache ../full; exit $code; }}"
        );
        let mut full = Command::new("unshare");
        full.args(["-rm", "sh", "-c", &script, "sh", &binary])
            .args(build.get_args())
            .current_dir(project.path(""))
            .env_clear();
        full.envs(build.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = project.run(&mut full);
        assert!(ran.code == 3 || ran.code == 0, "{size}: {} {}", ran.code, ran.stderr);
        assert!(ran.code == 0 || ran.stderr.contains("No space left on device"), "{size}: {}", ran.stderr);
        println!("{size}: exit {}", ran.code);
        fs::remove_dir(project.path("cache")).unwrap();
        fs::rename(project.path("../full"), project.path("cache")).unwrap();
        let kept = Lines::read(&fs::read(project.path("cache/journal")).unwrap_or_default());
        let before = project.log().len();
        project.build().exits(0);
        let log = project.log();
        for record in &kept.records {
            let again = log[before..].iter().any(|line| line.starts_with(&format!("{} ", record.identity.target)));
            assert!(!again, "{size}: {} was kept and ran again", record.identity.target);
        }
        count.add(usize::from(ran.code == 3));
        project.t2t("cache verify --repair").exits(0);
    }
}

fn set_mode(path: &PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_look_starts_no_interpreter_where_the_harness_that_it_would_import_cannot_be_written() {
    let project = Project::new();
    project.write("cache/harness", "no folder");
    for look in ["status", "build --dry-run", "explain softmax"] {
        let ran = project.t2t(look).exits(3);
        assert_eq!((ran.stderr.lines().count(), ran.starts), (2, 0), "{look}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: cannot write to `cache/`: "), "{look}: {}", ran.stderr);
        assert!(ran.stderr.contains("\nhint: move away what lies there"), "{look}: {}", ran.stderr);
    }
}

#[test]
fn a_store_that_cannot_be_written_can_be_looked_at_and_a_build_says_why_it_ends() {
    let project = steady();
    // All of them: in one that was left out a new blob may have its place, by chance.
    let folders = || -> BTreeSet<PathBuf> {
        let (cache, files) = (project.path("cache"), project.files("cache"));
        let above = files.iter().flat_map(|file| file.ancestors().skip(1));
        above.filter(|folder| folder.starts_with(&cache)).map(PathBuf::from).collect()
    };
    for folder in folders() {
        set_mode(&folder, 0o555);
    }
    set_mode(&project.path("cache/lock"), 0o444);
    bound_by_modes(&project, "status").exits(0).says("19 up to date, 0 stale");
    bound_by_modes(&project, "explain softmax:log").exits(0).says("softmax:log: fresh");
    bound_by_modes(&project, "cache verify").exits(0).says(": 0 damages");
    bound_by_modes(&project, "cache stats").exits(0);
    project.edit(KERNEL, "input + 1", "input + 2");
    // A lock that may only be read locks all the same: what cannot be kept is told where it is to be kept.
    let said = "error: cannot use the store `cache/`: `[ROOT]/cache/";
    bound_by_modes(&project, "build")
        .exits(3)
        .says(said)
        .says("Permission denied")
        .says("hint: let the user who builds write there");
    project.edit(KERNEL, "input + 2", "input + 1");
    for folder in folders() {
        set_mode(&folder, 0o755);
    }
    set_mode(&project.path("cache/lock"), 0o644);
    project.build().exits(0).runs("");
}

#[test]
fn rights_that_are_lost_are_told_with_the_place() {
    let project = steady();
    let mut evidence = Lines::read(&fs::read(project.path("cache/journal")).unwrap()).records.into_iter();
    let evidence = evidence.rfind(|record| record.identity.target.to_string() == "softmax/v2_tiling:check").unwrap();
    let evidence = Cas::open(&project.path("cache")).path(evidence.outputs["evidence"].digest);
    let logs_before = logs(&project);
    project.edit("assets/log_template.md", "# {{ op }}", "## {{ op }}");
    set_mode(&project.path("cache/journal"), 0);
    bound_by_modes(&project, "build").exits(3).says("cache/journal`: Permission denied").says("hint: let the user");
    set_mode(&project.path("cache/journal"), 0o644);
    set_mode(&project.path(KERNEL), 0);
    project.edit("ops.yaml", "dim: -1", "dim: 0");
    let said = "error: cannot read `kernels/softmax/v2_tiling.py`: Permission denied";
    bound_by_modes(&project, "build").exits(3).runs("").says(said);
    set_mode(&project.path(KERNEL), 0o644);
    project.edit("ops.yaml", "dim: 0", "dim: -1");
    set_mode(&evidence, 0);
    bound_by_modes(&project, "build").exits(0).says("cannot read the blob").says("the action that made it runs again");
    project.edit("assets/log_template.md", "## {{ op }}", "# {{ op }}");
    set_mode(&project.path("logs"), 0o555);
    bound_by_modes(&project, "build").exits(3).says("cannot write `logs/softmax_log.md`: Permission denied");
    set_mode(&project.path("logs"), 0o755);
    bound_by_modes(&project, "build").exits(0).runs("");
    assert_eq!(logs(&project), logs_before);
}

#[test]
fn rights_that_are_lost_to_a_folder_of_kernels_are_no_word_on_the_kernels() {
    let project = steady();
    project.write("kernels/softmax/parts/__init__.py", "");
    project.write("kernels/softmax/parts/one.py", "FACTOR = 2\n");
    project.edit(KERNEL, "input + 1", "input + 2");
    let text = fs::read_to_string(project.path(KERNEL)).unwrap();
    project.write(KERNEL, format!("from kernels.softmax.parts.one import FACTOR\n{text}"));
    let folders = [
        ("kernels", "kernels/gelu/v1_baseline.py"),
        ("kernels/softmax", "kernels/softmax/v1_baseline.py"),
        // What a kernel imports.
        ("kernels/softmax/parts", "kernels/softmax/parts/"),
    ];
    let records = fs::read(project.path("cache/journal")).unwrap();
    for (folder, file) in folders {
        set_mode(&project.path(folder), 0);
        for command in ["build", "status"] {
            let ran = bound_by_modes(&project, command).exits(3).runs("");
            let said =
                ran.stderr.contains(&format!("error: cannot read `{file}")) && ran.stderr.contains("Permission denied");
            assert!(said, "{command}: {}", ran.stderr);
        }
        set_mode(&project.path(folder), 0o755);
        assert!(fs::read(project.path("cache/journal")).unwrap() == records, "{folder}: something was recorded");
    }
    let ran = bound_by_modes(&project, "build").exits(0);
    assert!(ran.actions.contains("softmax/v2_tiling:compile,check,bench"), "{}", ran.actions);
}
