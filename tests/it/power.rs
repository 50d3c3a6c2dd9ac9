//! A loss of power, simulated: each file of the store and of the logs came to the disk whole, in part, as zeros, as it was before, or not at all, in any order.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::cli::damage::{logs, steady};
use crate::project::Project;
use crate::soak::{Count, rounds};

/// How often power is lost, where it is no soak.
const TIMES: u64 = 12;

/// Draws the same numbers in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

fn files(project: &Project) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = ["cache", "logs"].into_iter().flat_map(|folder| project.files(folder));
    all.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Leaves of a file what a disk may have of it, where `before` is what it had before the last build.
fn lose(path: &PathBuf, bytes: &[u8], before: Option<&Vec<u8>>, draw: &mut Draw) {
    let at = draw.below(bytes.len() + 1);
    match draw.below(9) {
        0 => fs::write(path, []).unwrap(),
        1 => fs::write(path, &bytes[..at]).unwrap(),
        2 => fs::write(path, [&bytes[..at], &vec![0; bytes.len() - at]].concat()).unwrap(),
        3 => match before {
            Some(before) => fs::write(path, before).unwrap(),
            None => fs::remove_file(path).unwrap(),
        },
        _ => {}
    }
}

#[test]
fn after_a_loss_of_power_one_build_brings_back_what_was_there() {
    let mut draw = Draw(11);
    let count = Count::of("power", "losses");
    for time in rounds(TIMES) {
        let project = steady();
        let before = files(&project);
        project.edit("kernels/softmax/v2_tiling.py", "input + 1", "input + 2");
        project.build().exits(0);
        let told = logs(&project);
        // Every other time only what the last build wrote was under way.
        for (path, bytes) in files(&project) {
            if time % 2 == 0 || before.get(&path) != Some(&bytes) {
                lose(&path, &bytes, before.get(&path), &mut draw);
            }
        }
        for asked in ["status", "explain softmax", "cache stats"] {
            project.t2t(asked).exits(0).never_says("panicked");
        }
        project.build().exits(0).never_says("panicked");
        assert_eq!(logs(&project), told, "loss {time}");
        project.t2t("cache verify --repair").never_says("panicked");
        project.build().exits(0);
        project.t2t("cache verify").exits(0).says(": 0 damages");
        assert_eq!(logs(&project), told, "loss {time}");
        project.build().exits(0).runs("");
        count.add(1);
    }
}
