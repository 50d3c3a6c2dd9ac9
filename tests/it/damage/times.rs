//! Clocks and times of files that say anything at all.
//!
//! It does not know a clock of the process that is set back: `clock` does.

use std::fs::{File, FileTimes};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{KERNEL, RERUN};
use crate::project::Project;

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
