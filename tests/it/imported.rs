//! What kernels import from outside of their workspace is in no key, and no result outlives it: modules are looked up again as the interpreter would find them.

use crate::project::Project;

/// What runs where a kernel that a check, a compile and a bench looked at has changed.
const AGAIN: &str = "softmax/v2_tiling:compile,check,bench";

const MODULE: &str = "../python/site-packages/mykernels.py";

/// A built workspace with one kernel that imports this module.
fn importing(module: &str) -> Project {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", &format!("READS module:{module}"));
    project.build().exits(0);
    project
}

/// Builds, and fails unless the kernel is checked again; what is made of its figures runs or does not.
#[track_caller]
fn runs_again(project: &Project) {
    let ran = project.build().exits(0);
    assert!(ran.actions.contains(AGAIN), "{}\n{}", ran.actions, ran.stderr);
    project.build().exits(0).runs("");
}

/// Builds, and fails where a child of the kernel runs.
#[track_caller]
fn comes_back(project: &Project) {
    let ran = project.build().exits(0);
    assert!(!ran.actions.contains("v2_tiling"), "{}\n{}", ran.actions, ran.stderr);
    project.build().exits(0).runs("");
}

#[test]
fn what_is_installed_broken_and_put_back_is_seen_and_earlier_results_come_back() {
    let project = importing("mykernels");
    project.build().runs("");
    project.write(MODULE, "ONE = 1\n");
    project.t2t("explain softmax/v2_tiling:check").exits(0).says("because module:mykernels appeared: absent → ");
    runs_again(&project);
    project.write(MODULE, "ONE = 2\n");
    runs_again(&project);
    project.write(MODULE, "# Another comment.\nONE = 1\n");
    comes_back(&project);
    project.remove(MODULE);
    comes_back(&project);
}

#[test]
fn a_build_that_finds_nothing_changed_starts_no_python_for_it() {
    let project = importing("mykernels.ops.deep");
    project.write("../python/site-packages/mykernels/__init__.py", "");
    project.write("../python/site-packages/mykernels/ops/deep.py", "ONE = 1\n");
    runs_again(&project);
    assert_eq!(project.build().runs("").starts, 0);
    // The folders of `sys.path` are as they were: nobody but the module's own fingerprints tells.
    project.write("../python/site-packages/mykernels/ops/deep.py", "ONE = 2\n");
    runs_again(&project);
    project.write("../python/site-packages/mykernels/ops/deep/__init__.py", "ONE = 3\n");
    runs_again(&project);
}

#[test]
fn compiled_modules_namespaces_and_editable_installs_are_modules_too() {
    let project = importing("compiled");
    project.write("../python/site-packages/compiled.so", "\u{7f}ELF 1");
    runs_again(&project);
    project.write("../python/site-packages/compiled.so", "\u{7f}ELF 2");
    runs_again(&project);

    let project = importing("space");
    project.write("../python/site-packages/space/part.py", "");
    runs_again(&project);
    project.write("../python/site-packages/space/__init__.py", "ONE = 1\n");
    runs_again(&project);

    let project = importing("mine.part");
    let elsewhere = project.path("../elsewhere/mine");
    project.write("../elsewhere/mine/__init__.py", "");
    project.write("../elsewhere/mine/part.py", "ONE = 1\n");
    project.write("../python/site-packages/mapped.json", format!("{{\"mine\": \"{}\"}}", elsewhere.display()));
    runs_again(&project);
    project.write("../elsewhere/mine/part.py", "ONE = 2\n");
    runs_again(&project);
}

#[test]
fn records_name_modules_by_no_folder_of_the_machine() {
    let project = importing("mykernels");
    project.write(MODULE, "ONE = 1\n");
    runs_again(&project);
    let journal = project.read("cache/journal");
    assert!(journal.contains("\"module:mykernels\":{\"meaning\":"), "{journal}");
    let folder = project.path("../").display().to_string();
    assert!(!journal.contains(folder.trim_end_matches('/')), "{journal}");
}

#[test]
fn two_machines_with_the_same_package_share_results_and_one_with_another_does_not() {
    let project = importing("mykernels");
    project.write(MODULE, "ONE = 1\n");
    runs_again(&project);
    for (text, is_known) in [("ONE = 1\n", true), ("ONE = 2\n", false)] {
        let other = Project::new();
        other.kernel("softmax", "v2_tiling", "READS module:mykernels");
        other.write(MODULE, text);
        for file in project.files("cache").iter().filter(|file| !file.starts_with(project.path("cache/answers"))) {
            let name = file.strip_prefix(project.path("")).unwrap();
            other.write(name.to_str().unwrap(), std::fs::read(file).unwrap());
        }
        let ran = other.build().exits(0);
        assert_eq!(ran.actions.contains(AGAIN), !is_known, "{}\n{}", ran.actions, ran.stderr);
    }
}

#[test]
fn helpers_beside_the_kernels_are_in_the_keys_of_those_that_import_them() {
    let project = Project::new();
    project.write("tools/__init__.py", "");
    project.write("src/deep/code.py", "ONE = 1\n");
    let kernel = "kernels/softmax/v2_tiling.py";
    project.edit(kernel, "import triton\n", "import triton\nimport tools\nfrom deep.code import ONE\n");
    project.build().exits(0);
    project
        .t2t("explain softmax/v2_tiling:check")
        .says("source.src/deep/code.py = ")
        .says("source.tools/__init__.py = ");
    project.write("src/deep/code.py", "ONE = 1  # Not two.\n");
    comes_back(&project);
    project.write("tools/__init__.py", "TWO = 2\n");
    runs_again(&project);
    project.write("deep/code.py", "ONE = 3\n");
    runs_again(&project);
}

#[test]
fn a_package_that_appears_beside_the_kernels_is_seen_by_a_build_that_finds_nothing_else() {
    let project = Project::new();
    project.edit("kernels/softmax/v2_tiling.py", "import triton\n", "import triton\nimport tools.code\n");
    project.build().exits(0);
    project.build().exits(0).runs("");
    project.write("tools/code.py", "ONE = 1\n");
    runs_again(&project);
}

#[test]
fn sources_are_folders_that_are_imported_from() {
    let project = Project::new();
    project.write("lib/inner/helper.py", "ONE = 1\n");
    project.edit("kernels/softmax/v2_tiling.py", "import triton\n", "import triton\nfrom helper import ONE\n");
    project.build().exits(0);
    project.edit("ops.yaml", "ops:\n", "sources: [lib/inner]\nops:\n");
    project.t2t("explain softmax/v2_tiling:check").says("because `sources` in ops.yaml changed: [] → [\"lib/inner\"]");
    runs_again(&project);
    project.write("lib/inner/helper.py", "ONE = 2\n");
    runs_again(&project);
}
