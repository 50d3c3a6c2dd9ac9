//! `t2t new`: one more variant, a copy of one that is there.
//!
//! It does not know what a kernel is worth.

use crate::project::{Project, file};

#[test]
fn a_variant_is_a_copy_that_ops_yaml_lists_and_a_build_takes() {
    let project = Project::built();
    let before = project.read("ops.yaml");
    project
        .t2t("new gelu/v5_mine")
        .exits(0)
        .says("wrote kernels/gelu/v5_mine.py, a copy of kernels/gelu/v1_baseline.py");
    assert_eq!(project.read(&file("gelu", "v5_mine")), project.read(&file("gelu", "v1_baseline")));
    let list = "  gelu:\n    variants: [v1_baseline, v2_tiling, v5_mine]\n    torch:";
    let now = project.read("ops.yaml");
    assert!(now.contains(list), "{now}");
    assert_eq!(
        now.replace("    variants: [v1_baseline, v2_tiling, v5_mine]\n", ""),
        before,
        "all else keeps its bytes"
    );
    let ran = project.build().exits(0);
    assert!(ran.stdout.contains("gelu ") && ran.stdout.contains("3/3"), "{}", ran.stdout);
    project.t2t("new gelu/v6 --from v2_tiling").exits(0).says("a copy of kernels/gelu/v2_tiling.py");
    assert!(project.read("ops.yaml").contains("    variants: [v1_baseline, v2_tiling, v5_mine, v6]\n"));
}

#[test]
fn a_copy_is_called_as_what_it_is_a_copy_of() {
    let project = Project::new();
    project.edit("ops.yaml", "  gelu:\n", "  gelu:\n    variants: [{name: v1_baseline, entry: fast}]\n");
    project.t2t("new gelu/v2").exits(0);
    let list = "variants: [{name: v1_baseline, entry: fast}, {name: v2, entry: fast}]\n";
    assert!(project.read("ops.yaml").contains(list), "{}", project.read("ops.yaml"));
}

#[test]
fn what_cannot_be_is_said_and_nothing_is_written() {
    let project = Project::new();
    let before = project.read("ops.yaml");
    for (arguments, said) in [
        ("new gelu", "`gelu` names no variant\nhint: write `gelu/NAME`"),
        ("new gelo/v5", "ops.yaml has no op `gelo`\nhint: did you mean `gelu`?"),
        ("new gelu/../v5", "`../v5` is not a valid name of a variant"),
        ("new gelu/v1_baseline", "`gelu/v1_baseline` is declared already"),
        ("new gelu/v5 --from v2_tilin", "`gelu` has no variant `v2_tilin`\nhint: did you mean `v2_tiling`?"),
    ] {
        project.t2t(arguments).exits(2).says(said);
    }
    project.write("kernels/gelu/v7.py", "MINE = 1\n");
    project.t2t("new gelu/v7").exits(2).says("`kernels/gelu/v7.py` is there already");
    project.remove(&file("gelu", "v2_tiling"));
    project.t2t("new gelu/v8 --from v2_tiling").exits(2).says("of which it would be a copy, is not there");
    project.edit(
        "ops.yaml",
        "  gelu:\n    torch: torch.nn.functional.gelu\n    inputs: {input: [M, N]}\n",
        "  gelu: {torch: torch.nn.functional.gelu,\n    inputs: {input: [M, N]}}\n",
    );
    project.t2t("new gelu/v9").exits(2).says("hint: add to the variants of `gelu`: {name: v9, entry: triton_gelu}");
    assert!(!project.exists("kernels/gelu/v9.py") && !project.exists("kernels/gelu/v8.py"));
    project.edit(
        "ops.yaml",
        "  gelu: {torch: torch.nn.functional.gelu,\n    inputs: {input: [M, N]}}\n",
        "  gelu:\n    torch: torch.nn.functional.gelu\n    inputs: {input: [M, N]}\n",
    );
    assert_eq!(project.read("ops.yaml"), before);
}

#[test]
fn a_linked_ops_yaml_stays_a_link_and_what_cannot_be_listed_is_not_written() {
    let project = Project::new();
    let link = |to: &str| {
        std::fs::rename(project.path("ops.yaml"), project.path(to)).unwrap();
        std::os::unix::fs::symlink(to, project.path("ops.yaml")).unwrap();
    };
    link("shared.yaml");
    project.t2t("new gelu/v5").exits(0);
    assert!(project.path("ops.yaml").is_symlink());
    assert!(project.read("shared.yaml").contains("    variants: [v1_baseline, v2_tiling, v5]\n"));
    project.t2t("add relu --write").exits(0);
    assert!(project.path("ops.yaml").is_symlink() && project.read("shared.yaml").contains("  relu:\n"));
    // No file beside one of the longest name can have a longer one, from which it would be renamed.
    std::fs::rename(project.path("shared.yaml"), project.path("ops.yaml")).unwrap();
    link(&"o".repeat(255));
    project.t2t("new gelu/v6").exits(3).says("cannot write `ops.yaml`");
    assert!(project.exists("kernels/gelu/v5.py") && !project.exists("kernels/gelu/v6.py"));
}
