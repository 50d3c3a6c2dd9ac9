//! `t2t clean --cache` beside others: they end as ever, and a clean that is killed leaves a store that is whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use t2t_model::digest::Digest;

use crate::project::{Project, Ran};
use crate::soak::{Count, rounds};

/// Who only looks, and waits for nobody.
const LOOKS: [&str; 5] = ["status", "cache verify", "explain softmax", "cache stats", "log softmax"];

/// How many look at a time, each at all of these in turn: more would leave who cleans no core, and see no more moments for it.
const LOOKERS: usize = 2;

/// Ends the looks, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn who_looks_while_the_store_is_cleaned_sees_it_as_it_was_or_empty() {
    let project = Project::built();
    let is_over = AtomicBool::new(false);
    let count = Count::of("side by side", "commands");
    let looks = thread::scope(|scope| {
        let look = |first: usize| {
            let (project, is_over) = (&project, &is_over);
            scope.spawn(move || {
                let mut seen: Vec<(&str, Ran)> = Vec::new();
                for asked in LOOKS.into_iter().cycle().skip(first) {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    seen.push((asked, project.wait(project.spawn(asked))));
                }
                seen
            })
        };
        let looking: Vec<_> = (0..LOOKERS).map(look).collect();
        let over = Over(&is_over);
        for _ in rounds(6) {
            for _ in 0..4 {
                project.wait(project.spawn("clean --cache --yes")).exits(0);
            }
            project.wait(project.spawn("build")).exits(0).never_says("warning");
            count.add(5);
        }
        drop(over);
        looking.into_iter().flat_map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    for (asked, ran) in looks {
        // There may be no log to print.
        let expected = if asked.starts_with("log") { [0, 2].contains(&ran.code) } else { ran.code == 0 };
        assert!(expected, "{asked}: {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
        count.add(1);
    }
}

#[test]
fn a_killed_clean_leaves_no_record_without_its_blobs() {
    let project = Project::built();
    let count = Count::of("kills", "landed");
    for round in rounds(10) {
        let moment = round % 10;
        // So many that it takes a while to remove them.
        for number in 0..1000 {
            let bytes = format!("{round} {number}");
            let name = Digest::of(bytes.as_bytes()).to_string();
            project.write(&format!("cache/cas/{}/{}", &name[..2], &name[2..]), bytes);
        }
        let mut cleaning = project.spawn("clean --cache --yes");
        thread::sleep(Duration::from_millis(6 + 4 * moment));
        cleaning.kill().unwrap();
        let is_killed = cleaning.wait().unwrap().code().is_none();
        project.t2t("cache verify").exits(0).says(": 0 damages");
        project.build().exits(0);
        assert!(project.files("cache/scratch").is_empty(), "{:?}", project.files("cache/scratch"));
        project.t2t("cache verify").exits(0).says(": 0 damages").never_says("and 1 unfinished");
        count.add(usize::from(is_killed));
    }
}

/// More than any process has.
const NO_PROCESS: u32 = 4_194_305;

#[test]
fn a_note_that_a_killed_export_had_not_finished_is_removed_and_one_of_a_running_process_is_not() {
    let project = Project::built();
    let note = |process: u32| format!("cache/scratch/.draft-{process}.{process}.1.tmp");
    let [left, running] = [NO_PROCESS, std::process::id()].map(note);
    project.write(&left, "");
    project.write(&running, "");
    project.build().exits(0).runs("");
    assert_eq!([&left, &running].map(|note| project.exists(note)), [false, true]);
}

#[test]
fn verify_tells_what_is_missing_from_what_is_damaged() {
    let project = Project::built();
    let blobs = project.files("cache/cas");
    std::fs::remove_file(&blobs[0]).unwrap();
    let told = project.t2t("cache verify").exits(1);
    assert!(told.stdout.lines().any(|line| line.starts_with("missing   blob ")), "{}", told.stdout);
    let told = told.never_says("damaged   ").says("1 missing, 0 damages");
    std::fs::write(&blobs[1], "other").unwrap();
    assert!(!told.stdout.is_empty());
    project.t2t("cache verify").exits(1).says("damaged   blob ").says("missing   blob ").says("1 missing, 1 damage\n");
}
