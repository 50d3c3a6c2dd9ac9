//! How editors save: transcripts of their system calls, in `tests/editors`, performed on a kernel of a watched workspace.
//!
//! It knows of an editor what its transcript says.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::environment;
use crate::project::Project;
use crate::watching::Watching;

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// One save of a file.
struct Save {
    path: PathBuf,
    old: String,
    new: String,
    open: HashMap<String, File>,
}

impl Save {
    /// Performs a call, as in `rename("FILE", "FILE~")`.
    fn perform(&mut self, line: &str) {
        let (call, number) = line.split_once(" = ").unwrap_or((line, ""));
        let (name, arguments) = call.trim_end_matches(')').split_once('(').unwrap();
        let arguments: Vec<&str> = arguments.split(", ").collect();
        match (name, arguments.as_slice()) {
            ("openat", [path, flags, mode]) => {
                let file = opened(&self.place(path), flags, octal(mode));
                self.open.insert(number.to_owned(), file);
            }
            ("write", [file, text]) => {
                let bytes = match *text {
                    "NEW" => self.new.clone(),
                    "OLD" => self.old.clone(),
                    "SWAP" => "b0VIM 9.0".to_owned(),
                    other => panic!("{line}: what is {other}?"),
                };
                self.file(file).write_all(bytes.as_bytes()).unwrap();
            }
            ("ftruncate", [file, length]) => self.file(file).set_len(length.parse().unwrap()).unwrap(),
            ("fchmod", [file, mode]) => self.file(file).set_permissions(Permissions::from_mode(octal(mode))).unwrap(),
            ("fsync", [file]) => self.file(file).sync_all().unwrap(),
            ("close", [file]) => drop(self.open.remove(*file).unwrap_or_else(|| panic!("{line}: it is not open"))),
            ("chmod", [path, mode]) => {
                fs::set_permissions(self.place(path), Permissions::from_mode(octal(mode))).unwrap();
            }
            ("rename", [from, to]) => fs::rename(self.place(from), self.place(to)).unwrap(),
            ("unlink", [path]) => fs::remove_file(self.place(path)).unwrap(),
            _ => panic!("no such call: {line}"),
        }
    }

    fn file(&mut self, number: &str) -> &mut File {
        self.open.get_mut(number).unwrap_or_else(|| panic!("{number} is not open"))
    }

    fn place(&self, quoted: &str) -> PathBuf {
        let name = self.path.file_name().unwrap().to_str().unwrap();
        self.path.with_file_name(quoted.trim_matches('"').replace("FILE", name))
    }
}

fn octal(mode: &str) -> u32 {
    u32::from_str_radix(mode, 8).unwrap()
}

fn opened(path: &Path, flags: &str, mode: u32) -> File {
    let mut options = OpenOptions::new();
    options.mode(mode);
    for flag in flags.split('|') {
        match flag {
            "O_WRONLY" => options.write(true),
            "O_RDWR" => options.read(true).write(true),
            "O_CREAT" => options.create(true),
            "O_EXCL" => options.create_new(true),
            "O_TRUNC" => options.truncate(true),
            "O_NOFOLLOW" => options.custom_flags(nix::libc::O_NOFOLLOW),
            other => panic!("no such flag: {other}"),
        };
    }
    options.open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the calls of each transcript, by its name.
fn transcripts() -> Vec<(String, Vec<String>)> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(environment::root().join("tests/editors")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let calls = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("# "), "{}: where does it come from?", path.display());
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    found.iter().map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), calls(path))).collect()
}

/// After each save the new text was checked, and nothing ran but what it made stale, once: also where a slow machine saw the file half-saved.
#[test]
fn each_editors_save_runs_once_what_it_made_stale() {
    let transcripts = transcripts();
    let names: Vec<&str> = transcripts.iter().map(|(name, _)| name.as_str()).collect();
    for editor in ["vim", "nano", "vscode", "jetbrains"] {
        assert!(names.contains(&editor), "{names:?}");
    }
    let project = Project::built();
    let mut watching = Watching::start(&project, "softmax");
    for (number, (name, calls)) in transcripts.iter().enumerate() {
        watching.count();
        let old = project.read(KERNEL);
        let new = format!("{}# saved by {name}\n\n\ndef extra():\n    return {number}\n", before_extra(&old));
        let path = project.path(KERNEL);
        let mut save = Save { path: path.clone(), old, new: new.clone(), open: HashMap::new() };
        for call in calls {
            save.perform(call);
        }
        assert!(save.open.is_empty(), "{name} leaves a file open");
        assert_eq!(project.read(KERNEL), new, "{name}");
        watching.says("bench softmax/v2_tiling … passed");
        watching.settles();
        watching.ran_once(&["softmax/v2_tiling:bench", "softmax/v2_tiling:check", "softmax/v2_tiling:compile"]);
    }
    let (code, told) = watching.stop(Signal::SIGINT);
    assert_eq!(code, 130, "{told}");
    project.t2t("build softmax").exits(0).runs("");
}

fn before_extra(text: &str) -> &str {
    text.split("# saved by ").next().unwrap()
}
