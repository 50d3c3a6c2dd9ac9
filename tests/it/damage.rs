//! Whatever becomes of the files under `cache/` and `logs/`, and of the disk they lie on: never a panic, never a wrong result. What is damaged is told and made
//! again; what cannot be written ends the build with its place, and the next one goes on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use t2t_model::digest::Digest;
use t2t_model::record::Record;
use t2t_store::store::cas::{Cas, Unavailable};
use t2t_store::store::journal::Lines;

use crate::project::{Project, Ran};
use crate::soak::{Count, rounds};

mod taken;
mod refused;
mod times;

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
fn explain_says_of_a_damaged_document_what_helps() {
    let project = steady();
    let mut records = Lines::read(&fs::read(project.path("cache/journal")).unwrap()).records.into_iter();
    let check = records.rfind(|record| record.identity.target.to_string() == "softmax/v1_baseline:check").unwrap();
    let path = Cas::open(&project.path("cache")).path(check.outputs["evidence"].digest);
    let mut bytes = fs::read(&path).unwrap();
    bytes[3] ^= 1;
    fs::write(&path, bytes).unwrap();
    let ran = project.t2t("explain softmax/v1_baseline:check").exits(0).says("  its cases cannot be read: ");
    ran.says("  hint: `t2t cache verify --repair`\n");
    project.t2t("cache verify --repair").exits(0);
    project.build().exits(0);
    project.t2t("explain softmax/v1_baseline:check").exits(0).says("1 of 1 cases passed");
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
