//! Whatever becomes of the files under `cache/` and `logs/`, and of the disk they lie on: never a panic, never a wrong result. What is damaged is told and made
//! again; what cannot be written ends the build with its place, and the next one goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use t2t_model::digest::Digest;
use t2t_model::record::Record;
use t2t_store::store::cas::{Cas, Unavailable};
use t2t_store::store::journal::Lines;

use crate::project::{Project, Ran};
use crate::soak::{Count, rounds};

const KERNEL: &str = "kernels/softmax/v2_tiling.py";
/// What the code of that kernel reruns.
const RERUN: &str = "softmax:select,log softmax/v2_tiling:compile,check,bench summary";

/// A built project whose figures are always the same, so that what is made again is the same.
pub fn steady() -> Project {
    let project = Project::new();
    project.write("../python/bin/steady", "");
    project.write("assets/summary_template.md", "# Of my own\n");
    project.build().exits(0);
    project
}

pub fn logs(project: &Project) -> BTreeMap<PathBuf, String> {
    let files = project.files("logs").into_iter();
    files.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[track_caller]
fn expect_no_panic(ran: &Ran, what: &str) {
    assert!(
        [0, 1, 2, 3].contains(&ran.code) && !ran.stderr.contains("panicked"),
        "{what}: {}\n{}",
        ran.code,
        ran.stderr
    );
}

/// Begins to count damages, for a soak.
fn damages() -> Count {
    Count::of("damages", "done")
}

/// How far the places of damages move from round to round of a soak: a prime, so that they meet every byte in time.
const STRIDE: usize = 7919;

/// The damages that bytes can take, at places spread over them, others in each round.
fn damaged(bytes: &[u8], other: &[u8], places: usize, round: u64) -> Vec<(String, Vec<u8>)> {
    let round = usize::try_from(round).unwrap();
    let mut all = vec![("emptied".to_owned(), Vec::new()), ("another's bytes".to_owned(), other.to_vec())];
    all.push(("zeroed".to_owned(), vec![0; bytes.len()]));
    all.push(("twice".to_owned(), [bytes, bytes].concat()));
    for place in 0..places {
        let even = place * bytes.len().saturating_sub(1) / places.saturating_sub(1).max(1);
        let at = (even + round * STRIDE) % bytes.len();
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << ((place + round) % 8);
        all.push((format!("flipped at {at}"), flipped));
        all.push((format!("cut at {at}"), bytes[..at].to_vec()));
    }
    all
}

// The journal and the blobs.

#[test]
fn no_flip_and_no_cut_of_a_journal_makes_a_record_that_was_not_written() {
    let project = Project::built();
    let journal = fs::read(project.path("cache/journal")).unwrap();
    let records = Lines::read(&journal).records;
    let short = Lines::write(&records[..2]).unwrap();
    let is_kept = |found: &[Record]| found.iter().all(|record| records[..2].contains(record));
    let count = damages();
    for at in 0..short.len() {
        let mut flipped = short.clone();
        flipped[at] ^= 1 << (at % 8);
        let read = Lines::read(&flipped);
        assert!(is_kept(&read.records) && read.records.len() < 2, "flipped at {at}");
        assert!(read.is_foreign || !read.damaged.is_empty(), "flipped at {at}: nothing is told");
        let read = Lines::read(&short[..at]);
        assert!(is_kept(&read.records), "cut at {at}");
        count.add(2);
    }
    let [first, second] = [0, 1].map(|number| Lines::write(&records[number..=number]).unwrap().split_off(14));
    let swapped = Lines::read(&[b"t2t journal 1\n", &second[..], &first[..]].concat());
    assert_eq!(swapped.records, [records[1].clone(), records[0].clone()]);
}

#[test]
fn a_damaged_journal_costs_what_its_lines_told_and_a_warning() {
    let project = steady();
    let (journal, logs_before) = (fs::read(project.path("cache/journal")).unwrap(), logs(&project));
    let count = damages();
    let before_last = journal[..journal.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    let ends = [journal.len() - 1, before_last]
        .map(|at| (format!("cut before the end of a line, at {at}"), journal[..at].to_vec()));
    for (what, bytes) in ends.into_iter().chain(rounds(1).flat_map(|round| damaged(&journal, b"garbage\n", 5, round))) {
        project.write("cache/journal", &bytes);
        let ran = project.build();
        assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
        assert_eq!(logs(&project), logs_before, "{what}");
        assert!(
            ran.actions.is_empty()
                || bytes.is_empty()
                || is_cut_between(&journal, &bytes)
                || ran.stderr.contains("damaged lines of cache/journal"),
            "{what}: {}",
            ran.stderr
        );
        project.build().exits(0).runs("");
        count.add(1);
    }
}

/// Tells whether `bytes`, cut from `journal`, are whole lines: the last one counts without its end, too.
fn is_cut_between(journal: &[u8], bytes: &[u8]) -> bool {
    bytes.ends_with(b"\n") || (journal.starts_with(bytes) && journal.get(bytes.len()) == Some(&b'\n'))
}

#[test]
fn no_flip_and_no_cut_of_a_blob_is_read() {
    let project = Project::built();
    let cas = Cas::open(&project.path("cache"));
    let count = damages();
    let records = Lines::read(&fs::read(project.path("cache/journal")).unwrap()).records;
    for digest in [records[0].key, records[0].outputs.values().next().unwrap().digest] {
        let bytes = cas.get(digest).unwrap();
        for (what, damaged) in damaged(&bytes, b"other", bytes.len(), 0) {
            fs::write(cas.path(digest), &damaged).unwrap();
            let got = cas.get(digest);
            assert!(damaged == bytes || matches!(got, Err(Unavailable::Damaged(_))), "{what}: {got:?}");
            count.add(1);
        }
        fs::write(cas.path(digest), &bytes).unwrap();
    }
}

#[test]
fn whatever_becomes_of_a_blob_the_work_is_done_again_and_comes_to_the_same() {
    let project = steady();
    let logs_before = logs(&project);
    let blobs = project.files("cache/cas");
    let count = damages();
    // In a soak each blob has its turn, and each kind of damage.
    let turns = rounds(1).flat_map(|round| {
        let round = usize::try_from(round).unwrap();
        (round % 5..blobs.len()).step_by(5).map(move |number| (number, number / 5 + round / 5))
    });
    for (number, kind) in turns {
        let path = &blobs[number];
        let bytes = fs::read(path).unwrap_or_default();
        match kind % 5 {
            // What no log needs was not made again.
            _ if bytes.is_empty() => continue,
            0 => fs::write(path, "").unwrap(),
            1 => fs::write(path, &bytes[..bytes.len() - 1]).unwrap(),
            // It takes the place of another, and that one its.
            2 => {
                let other = &blobs[(number + 3) % blobs.len()];
                fs::rename(path, path.with_extension("swap")).unwrap();
                // What nothing needed any more may have gone before, in a soak.
                fs::rename(other, path).unwrap_or_default();
                fs::rename(path.with_extension("swap"), other).unwrap();
            }
            3 => fs::write(path, [&bytes[1..], &bytes[..1]].concat()).unwrap(),
            _ => fs::remove_file(path).unwrap(),
        }
        // All logs are rendered again from what is kept, and again with the template as it was.
        for (from, to) in [("# {{ op }}", "## {{ op }}"), ("## {{ op }}", "# {{ op }}")] {
            project.edit("assets/log_template.md", from, to);
            let ran = project.build();
            assert_eq!(ran.code, 0, "{}: {}", path.display(), ran.stderr);
        }
        assert_eq!(logs(&project), logs_before, "{}", path.display());
        count.add(1);
    }
    project.t2t("cache verify --repair").exits(0);
    project.build().exits(0);
    project.t2t("cache verify").exits(0).says(": 0 damages");
    assert_eq!(logs(&project), logs_before);
}

#[test]
fn a_store_of_which_every_blob_is_damaged_costs_one_build_of_everything() {
    let project = steady();
    let logs_before = logs(&project);
    for path in project.files("cache/cas") {
        let mut bytes = fs::read(&path).unwrap();
        bytes[0] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    project.edit("assets/log_template.md", "# {{ op }}", "## {{ op }}");
    project.build().exits(0).says("others with an artifact that is gone or damaged");
    project.edit("assets/log_template.md", "## {{ op }}", "# {{ op }}");
    project.build().exits(0);
    assert_eq!(logs(&project), logs_before);
    project.build().exits(0).runs("");
}

#[test]
fn an_action_that_makes_a_damaged_blob_again_heals_it() {
    let project = steady();
    let mut analysis = Lines::read(&fs::read(project.path("cache/journal")).unwrap()).records.into_iter();
    let analysis = analysis.rfind(|record| record.identity.target.to_string() == "softmax:analyze").unwrap();
    let digest = analysis.outputs["analysis"].digest;
    let path = Cas::open(&project.path("cache")).path(digest);
    let mut bytes = fs::read(&path).unwrap();
    bytes[3] ^= 1;
    fs::write(&path, bytes).unwrap();
    project.t2t("build --force softmax:analyze").exits(0).never_says("damaged");
    assert_eq!(Digest::of(&fs::read(&path).unwrap()), digest);
}

// What is kept beside them.

#[test]
fn whatever_becomes_of_the_other_files_nothing_runs_and_the_next_kernel_runs_right() {
    let project = steady();
    let is_other = |path: &PathBuf| {
        let text = path.to_str().unwrap();
        !["cache/cas/", "cache/journal", "cache/lock", "cache/scratch"].iter().any(|place| text.contains(place))
    };
    let others: Vec<PathBuf> = project.files("cache").into_iter().filter(is_other).collect();
    let is_code = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "py");
    let (code, kept): (Vec<PathBuf>, Vec<PathBuf>) = others.into_iter().partition(is_code);
    assert!(kept.len() >= 3 && !code.is_empty(), "{kept:?}");
    let bytes = |path: &PathBuf| fs::read(path).unwrap();
    let table = project.build().stdout;
    let whole: Vec<Vec<u8>> = kept.iter().map(bytes).collect();
    let count = damages();
    for (round, (number, path)) in rounds(1).flat_map(|round| kept.iter().enumerate().map(move |one| (round, one))) {
        let is_answer = path.to_str().unwrap().contains("cache/answers");
        let mut damages = damaged(&whole[number], &whole[(number + 1) % whole.len()], 6, round);
        damages.push(("gone".to_owned(), Vec::new()));
        for (what, damaged) in damages {
            fs::write(path, damaged).unwrap();
            if what == "gone" {
                fs::remove_file(path).unwrap();
            }
            // While there is an answer nothing else is read.
            if !is_answer && project.exists("cache/answers") {
                project.forget_answers();
            }
            let ran = project.build();
            assert_eq!((ran.code, ran.actions.as_str()), (0, ""), "{} {what}: {}", path.display(), ran.stderr);
            assert_eq!(ran.stdout, table, "{} {what}", path.display());
            count.add(1);
        }
    }
    // What children read is what the key names, before any of them starts.
    let whole: Vec<Vec<u8>> = code.iter().map(bytes).collect();
    for path in &code {
        fs::write(path, "raise SystemExit\n").unwrap();
    }
    let bytecode = code[0].with_file_name("__pycache__");
    fs::create_dir(&bytecode).unwrap();
    let catalogue = kept.iter().find(|path| path.to_str().unwrap().contains("catalogue-")).unwrap();
    fs::write(catalogue, "{}").unwrap();
    project.edit(KERNEL, "input + 1", "input + 2");
    // All variants are as fast: the same one is chosen.
    project.build().exits(0).runs(&RERUN.replace("select,", ""));
    for (path, whole) in code.iter().zip(&whole) {
        assert_eq!(&bytes(path), whole, "{}", path.display());
    }
    assert_ne!(bytes(catalogue), b"{}");
    assert!(!bytecode.exists());
}

// Places that are taken.

/// What lies in the way: a file where a folder should be, or a folder with something in it where a file should be.
fn block(project: &Project, place: &str) {
    let path = project.path(place);
    match fs::metadata(&path) {
        Ok(facts) if facts.is_dir() => {
            fs::remove_dir_all(&path).unwrap();
            fs::write(&path, "in the way").unwrap();
        }
        _ => {
            fs::remove_file(&path).ok();
            fs::create_dir_all(path.join("in the way")).unwrap();
        }
    }
}

#[test]
fn what_lies_in_the_way_is_told_with_its_place_and_the_next_build_is_whole() {
    let ends = [
        ("cache", "error: cannot lock the store `cache/`"),
        ("cache/lock", "error: cannot lock the store `cache/`"),
        ("cache/journal", "cache/journal`: Is a directory"),
        ("cache/cas", "cache/cas/"),
        ("cache/scratch", "cache/scratch/"),
        ("cache/harness", "cannot write the harness"),
        ("logs", "cannot write `logs/"),
        ("logs/softmax_log.md", "cannot write `logs/softmax_log.md`"),
        // These cost time alone.
        ("cache/sources.json", "cannot keep what is known of the sources"),
        ("cache/toolchain", ""),
    ];
    let project = steady();
    let logs_before = logs(&project);
    let count = damages();
    for (place, said) in rounds(1).flat_map(|_| ends) {
        block(&project, place);
        // Twice, so that there is something to run and the text is the first one again.
        let mut ran = Vec::new();
        for (from, to) in [("input + 1", "input + 2"), ("input + 2", "input + 1")] {
            project.edit(KERNEL, from, to);
            project.edit("ops.yaml", "dim: -1", "dim: -1 ");
            ran.push(project.build());
        }
        for ran in &ran {
            expect_no_panic(ran, place);
        }
        let costs_time_alone = ["cache/sources.json", "cache/toolchain"].contains(&place);
        let is_told = ran.iter().any(|ran| ran.stderr.contains(said));
        assert!(is_told, "{place}: {}", ran[0].stderr);
        assert!(ran.iter().any(|ran| ran.code == if costs_time_alone { 0 } else { 3 }), "{place}: {}", ran[0].stderr);
        for arguments in ["status", "explain softmax", "cache verify", "cache stats", "cache gc --dry-run"] {
            expect_no_panic(&project.t2t(arguments), &format!("{arguments} with {place} in the way"));
        }
        project.remove(place);
        let ran = project.build();
        assert_eq!(ran.code, 0, "{place}: {}", ran.stderr);
        assert_eq!(logs(&project), logs_before, "{place}");
        count.add(1);
    }
}

/// Runs a command that must come to an end: what waits for a pipe, or reads what has no end, is killed.
fn within_bounds(project: &Project, arguments: &str) -> Ran {
    let plain = project.command(arguments);
    let mut command = Command::new("prlimit");
    // Far more than it takes, and far less than a machine has.
    command
        .args(["--as=4000000000", "timeout", "--signal=KILL", "120"])
        .arg(plain.get_program())
        .args(plain.get_args());
    command.current_dir(project.path("")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    project.run(&mut command)
}

#[test]
fn a_pipe_or_an_endless_file_in_the_place_of_an_own_one_is_told_or_made_anew() {
    let project = steady();
    let logs_before = logs(&project);
    let below = |folder: &str| project.files(folder).into_iter().next().unwrap_or_else(|| panic!("{folder} has files"));
    let places = [
        (project.path("cache/journal"), "cache/journal`: it is a"),
        (project.path("cache/sources.json"), ""),
        (below("cache/answers"), ""),
        (below("cache/toolchain"), ""),
        (below("cache/harness"), ""),
        (below("cache/cas"), ""),
    ];
    let count = damages();
    for (path, said) in places {
        for is_pipe in [true, false] {
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            if is_pipe {
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            }
            let what = format!("{} is {}", path.display(), if is_pipe { "a pipe" } else { "endless" });
            for arguments in ["status", "explain softmax", "cache verify", "cache stats", "log softmax", "build"] {
                let ran = within_bounds(&project, arguments);
                expect_no_panic(&ran, &format!("{arguments} where {what}"));
                assert!((0..=3).contains(&ran.code), "{arguments} where {what}: {}", ran.code);
                if !said.is_empty() {
                    assert_eq!(ran.code, 3, "{arguments} where {what}: {}", ran.stderr);
                    assert!(ran.stderr.contains(said), "{arguments} where {what}: {}", ran.stderr);
                }
            }
            fs::remove_file(&path).unwrap_or_default();
            fs::write(&path, bytes).unwrap();
            project.build().exits(0);
            assert_eq!(logs(&project), logs_before, "{what}");
            count.add(1);
        }
    }
}

// A disk that is full, rights that are lost.

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

pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs a command so that modes bind it. They bind every user but root, who first has to let go of what lifts them.
pub fn bound_by_modes(project: &Project, arguments: &str) -> Ran {
    let plain = project.command(arguments);
    if !is_root() {
        return project.run(&mut { plain });
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-dac_override,-dac_read_search", "--"])
        .arg(plain.get_program())
        .args(plain.get_args());
    command.current_dir(project.path("")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    project.run(&mut command)
}

fn set_mode(path: &PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
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

// The clock.

fn set_times(paths: &[PathBuf], time: SystemTime) {
    for path in paths {
        File::options().append(true).open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    }
}

#[test]
fn whatever_the_clock_says_an_edit_is_seen_and_nothing_else_is() {
    let project = Project::built();
    let all = || -> Vec<PathBuf> {
        ["kernels", "assets", "cache", "logs"]
            .iter()
            .flat_map(|folder| project.files(folder))
            .chain([project.path("ops.yaml")])
            .collect()
    };
    let day = Duration::from_hours(24);
    let now = SystemTime::now();
    // Nanoseconds since 1970 in 64 bits end in 2262.
    let year_2300 = SystemTime::UNIX_EPOCH + 330 * 366 * day;
    let times = [now + 400 * day, year_2300, SystemTime::UNIX_EPOCH + day, now + day, now];
    for (number, time) in times.into_iter().enumerate() {
        set_times(&all(), time);
        project.build().exits(0).runs("");
        // Of the same length, and with the same time.
        project.edit(KERNEL, &format!("input + {}", number + 1), &format!("input + {}", number + 2));
        set_times(&[project.path(KERNEL)], time);
        project.build().exits(0).runs(RERUN);
        set_times(&all(), time);
        project.t2t("cache stats").exits(0);
        project.t2t("cache gc --max-age 1h").exits(0);
        project.t2t("cache verify").exits(0).says(": 0 damages");
        project.build().exits(0).runs("");
    }
}
