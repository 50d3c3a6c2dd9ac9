//! Export and import.
//!
//! It does not know what gc removes.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use t2t_model::digest::Digest;
use tar::{Builder, EntryType, Header};

use super::{artifact, contents, flip, fresh, record};
use crate::project::Project;

/// A project that exported, and the bytes.
fn exported(arguments: &str) -> (Project, Vec<u8>) {
    let project = Project::built();
    project.t2t(&format!("cache export ../out {arguments}")).exits(0).says("19 records, ");
    let bytes = fs::read(project.path("../out")).unwrap();
    (project, bytes)
}

/// A clone that has nothing, in another folder, with the file beside it.
fn clone(bytes: &[u8]) -> Project {
    let project = Project::new();
    project.write("../in", bytes);
    project
}

#[test]
fn what_is_imported_into_a_clone_is_all_fresh() {
    for arguments in ["", "--without-ir"] {
        let (_, bytes) = exported(arguments);
        let clone = clone(&bytes);
        clone.t2t("cache import ../in").exits(0).says("19 new records, 0 known before");
        clone.t2t("cache verify").exits(0).says(": 0 damages");
        fresh(&clone);
        clone.t2t("cache import ../in").exits(0).says("0 new records, 19 known before");
        fresh(&clone);
    }
}

#[test]
fn the_same_results_are_the_same_bytes_also_out_of_the_store_that_took_them() {
    let (project, bytes) = exported("");
    project.t2t("cache export ../out").exits(0);
    assert_eq!(fs::read(project.path("../out")).unwrap(), bytes);
    let clone = clone(&bytes);
    clone.t2t("cache import ../in").exits(0);
    clone.t2t("cache export ../out").exits(0);
    assert_eq!(fs::read(clone.path("../out")).unwrap(), bytes);
}

#[test]
fn an_export_can_be_of_one_op_or_one_device() {
    let project = Project::built();
    project.t2t("cache export ../out --op gelu").exits(0).says("9 records, ");
    let clone = clone(&fs::read(project.path("../out")).unwrap());
    clone.t2t("cache import ../in").exits(0);
    clone.t2t("build --op gelu").exits(0).runs("");
    let ran = project.t2t("cache export ../out --op gelu --op sofmax").exits(2);
    ran.says("error: there is no result of op `sofmax`\nhint: did you mean `softmax`?\n");
    let ran = project.t2t("cache export ../out --of-device nvidia-h200").exits(0);
    let ran = ran.says("warning: there is no result of device model `nvidia-h200`\n");
    assert!(!ran.stdout.starts_with("19 records"), "{}", ran.stdout);
}

#[test]
fn what_was_found_out_here_stays_the_newest() {
    let (_, bytes) = exported("");
    let clone = clone(&bytes);
    clone.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    clone.build().exits(0);
    clone.t2t("cache import ../in").exits(0).says("new records");
    fresh(&clone);
}

#[test]
fn an_import_heals_a_damaged_blob() {
    let (project, _) = exported("");
    flip(&project, &artifact(&project, "softmax/v2_tiling:check", "verdict"), 3);
    project.t2t("cache import ../out").exits(0);
    project.t2t("cache verify").exits(0);
}

#[test]
fn a_result_that_is_not_whole_is_not_exported() {
    let project = Project::built();
    flip(&project, &artifact(&project, "softmax/v2_tiling:bench", "bench"), 3);
    let ran = project.t2t("cache export ../out").exits(0).says("warning: left out: softmax/v2_tiling:bench");
    assert!(!ran.stdout.starts_with("19 records"), "{}", ran.stdout);
    let clone = clone(&fs::read(project.path("../out")).unwrap());
    clone.t2t("cache import ../in").exits(0);
    clone.t2t("cache verify").exits(0);
}

#[test]
fn a_flip_anywhere_or_a_cut_is_refused_and_changes_nothing() {
    let (_, bytes) = exported("");
    let clone = clone(&bytes);
    clone.t2t("cache stats").exits(0);
    let before = contents(&clone);
    let starts = 0..90;
    let spread = (1..24).map(|part| part * bytes.len() / 24);
    for at in starts.step_by(7).chain(spread).chain(bytes.len() - 9..bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        clone.write("../in", &damaged);
        clone.t2t("cache import ../in").exits(2).says("cannot import `../in`: ").says("nothing was changed");
        assert_eq!(contents(&clone), before, "flipped at {at}");
    }
    for cut in [0, 5, 13, 40, 79, 80, bytes.len() / 2, bytes.len() - 1] {
        clone.write("../in", &bytes[..cut]);
        clone.t2t("cache import ../in").exits(2).says("cannot import `../in`: ");
        assert_eq!(contents(&clone), before, "cut at {cut}");
    }
    clone.remove("../in");
    clone.t2t("cache import ../in").exits(2).says("no file `../in`");
    let other = [b"t2t export 2\n", &bytes[13..]].concat();
    clone.write("../in", other);
    clone.t2t("cache import ../in").exits(2).says("its format is 2, and this t2t reads 1");
}

/// Returns an export with a right digest around these entries: name, kind, what its header claims, bytes.
fn forged(entries: &[(&[u8], EntryType, u64, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, kind, size, bytes) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(*kind);
        header.set_size(*size);
        header.set_mode(0o777);
        if *kind == EntryType::Symlink {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    let body = tar.into_inner().unwrap().finish().unwrap();
    let mut file = Vec::new();
    write!(file, "t2t export 1\n{}\n", Digest::of(&body)).unwrap();
    file.extend(body);
    file
}

#[test]
fn an_archive_that_means_harm_is_refused_and_changes_nothing() {
    const FILE: EntryType = EntryType::Regular;
    let project = Project::built();
    let journal = project.read("cache/journal");
    let journal = journal.as_bytes();
    let own = (b"journal".as_slice(), FILE, journal.len() as u64, journal);
    let empty = (b"journal".as_slice(), FILE, 14, b"t2t journal 1\n".as_slice());
    let verdict = record(&project, "softmax/v2_tiling:check")["outputs"]["verdict"]["digest"].clone();
    let named = format!("blobs/{}", verdict.as_str().unwrap());
    let torn = &journal[..journal.len() - 9];
    let twice: Vec<u8> = [journal, &journal[14..]].concat();
    let clone = Project::new();
    clone.t2t("cache stats").exits(0);
    let before = contents(&clone);
    let blob = |name: &'static [u8], kind| (name, kind, 4_u64, b"harm".as_slice());
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("an absolute path", forged(&[empty, blob(b"/tmp/t2t-harm", FILE)])),
        ("a path upwards", forged(&[empty, blob(b"../../harm", FILE)])),
        ("a path upwards from the blobs", forged(&[empty, blob(b"blobs/../../harm", FILE)])),
        ("a link", forged(&[own, (named.as_bytes(), EntryType::Symlink, 0, b"")])),
        ("a folder", forged(&[empty, (b"blobs/", EntryType::Directory, 0, b"")])),
        ("other bytes", forged(&[own, (named.as_bytes(), FILE, 4, b"harm")])),
        ("a huge claim", forged(&[own, (named.as_bytes(), FILE, 1 << 60, b"harm")])),
        ("no blobs", forged(&[own])),
        ("no journal", forged(&[(named.as_bytes(), FILE, 4, b"harm")])),
        ("nothing", forged(&[])),
        ("a torn journal", forged(&[(b"journal", FILE, torn.len() as u64, torn)])),
        ("a record twice", forged(&[(b"journal", FILE, twice.len() as u64, &twice)])),
        ("no tar", [format!("t2t export 1\n{}\n", Digest::of(b"harm")).as_bytes(), b"harm"].concat()),
    ];
    for (name, bytes) in cases {
        clone.write("../in", bytes);
        let ran = clone.t2t("cache import ../in").exits(2).says("it has unexpected content: ");
        assert_eq!(contents(&clone), before, "{name}: {}", ran.stderr);
        assert!(!clone.exists("../harm") && !std::path::Path::new("/tmp/t2t-harm").exists(), "{name}");
    }
}

/// Starts a command, and kills it when `is_moment`. It may end before.
fn killed(project: &Project, arguments: &str, is_moment: impl Fn() -> bool) {
    let mut child = project.spawn(arguments);
    while child.try_wait().unwrap().is_none() {
        if is_moment() {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_export_that_is_killed_leaves_the_file_that_was_there() {
    let (project, bytes) = exported("");
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    project.build().exits(0);
    let beside = || {
        let folder = project.path("..");
        let names = fs::read_dir(folder.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with(".out."))
    };
    killed(&project, "cache export ../out", beside);
    let (now, is_half_done) = (fs::read(project.path("../out")).unwrap(), beside());
    project.build().exits(0);
    assert!(!beside(), "a build leaves what the export left");
    clone(&now).t2t("cache import ../in").exits(0);
    project.t2t("cache export ../out").exits(0);
    let whole = fs::read(project.path("../out")).unwrap();
    // Where the command was faster than the kill, the file is the new one.
    assert!(now == bytes || (now == whole && !is_half_done));
    let clone = clone(&whole);
    clone.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    clone.t2t("cache import ../in").exits(0);
    fresh(&clone);
}

#[test]
fn an_import_that_is_killed_leaves_a_whole_store_and_can_be_done_again() {
    let (_, bytes) = exported("");
    for files in [1, 15, 40, 60] {
        let clone = clone(&bytes);
        let has_come_so_far = || {
            let folders = ["cache/scratch", "cache/cas"].map(|folder| clone.path(folder));
            let count = |folder: &std::path::PathBuf| walkdir::WalkDir::new(folder).into_iter().flatten().count();
            folders.iter().map(count).sum::<usize>() > files
        };
        killed(&clone, "cache import ../in", has_come_so_far);
        clone.t2t("cache verify").exits(0).says(": 0 damages");
        clone.t2t("cache import ../in").exits(0);
        clone.t2t("cache verify").exits(0).says("19 records");
        fresh(&clone);
    }
}
