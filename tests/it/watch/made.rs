//! Files that a generator made, under a watch: they come back, and belong to whoever edits them.

use super::{ends_whole, watched};
use crate::authored::{FILE, GELU, ops};
use crate::project::Project;

#[test]
fn a_made_file_that_is_deleted_comes_back_and_one_that_is_edited_stays() {
    let project = Project::with(&ops("", &format!("    generator: template\n{GELU}")));
    project.kernel("gelu", "v1_baseline", "");
    project.build().exits(0);
    let made = project.read(FILE);
    let mut watching = watched(&project);
    project.remove(FILE);
    watching.says(&format!("changed: {FILE}"));
    watching.settles();
    assert_eq!(project.read(FILE), made);
    watching.ran_once(&[]);

    let edited = format!("{made}\n\nMINE = 1\n");
    project.write(FILE, &edited);
    watching.says("bench softmax/v1_baseline … passed");
    watching.settles();
    watching.ran_once(&["softmax/v1_baseline:bench", "softmax/v1_baseline:check", "softmax/v1_baseline:compile"]);
    watching.count();
    // What is made depends on this, and nothing is made.
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: 0}");
    watching.says("bench softmax/v1_baseline … passed");
    watching.settles();
    assert_eq!(project.read(FILE), edited);
    ends_whole(&project, watching);
}
