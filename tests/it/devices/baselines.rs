//! What kernels are compared with beside torch: what it keys, what it costs others, and what is told of it.

use serde_json::Value;

use super::{machine, on};
use crate::project::{OPS, Project, RELU, Ran};

/// A workspace whose gelu is compared with more than torch.
fn compared(baselines: &str) -> Project {
    let project = machine(1);
    let gelu = format!("    bench: {{sizes: {{small: [16, 16]}}, baselines: [torch, {baselines}]}}\n");
    project.write("ops.yaml", format!("{OPS}{gelu}{RELU}"));
    project.write("lib/own.py", "import torch\n\n\ndef gelu(input):\n    return torch.nn.functional.gelu(input)\n");
    project
}

fn build(project: &Project) -> Ran {
    project.run(&mut on(project, project, "build"))
}

fn baseline(project: &Project) -> Value {
    let ran = project.run(&mut on(project, project, "artifact gelu:baseline baseline")).exits(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

const ALL: &str = "'torch.compile:max-autotune', 'lib/own.py::gelu', {name: library, function: some_library.ops.gelu}";

#[test]
fn each_baseline_has_a_row_or_a_reason_and_no_other_op_knows_of_it() {
    let project = compared(ALL);
    // The op whose log is looked at has the template of the workspace.
    project.write("assets/log_template.md", "{% for row in benchmark.rows %}{{ row.kernel }} {{ row.kind }} {{ row.final_ms | ms }} {{ row.not_measured }}\n{% endfor %}");
    build(&project).exits(0);
    let document = baseline(&project);
    assert_eq!(document["finals"]["library"], Value::Null);
    assert!(document["finals"]["gelu"].as_f64().unwrap() > 0.0);
    assert!(document["sizes"]["small"]["others"]["torch.compile:max-autotune"]["mean"].as_f64().unwrap() > 0.0);
    let log = project.read("logs/gelu_log.md");
    for row in ["torch torch ", "gelu baseline ", "library baseline ", "torch.compile:max-autotune baseline "] {
        assert_eq!(log.lines().filter(|line| line.starts_with(row)).count(), 1, "{row}: {log}");
    }
    assert!(log.contains("its result is not torch's"), "{log}");
    assert!(!project.read("logs/softmax_log.md").contains("library"));
    let chosen = project.run(&mut on(&project, &project, "artifact gelu:select selection")).exits(0);
    assert!(!chosen.stdout.contains("library") && !chosen.stdout.contains("max-autotune"), "{}", chosen.stdout);
}

#[test]
fn an_edit_of_a_function_measures_the_baselines_of_its_op_alone() {
    let project = compared(ALL);
    build(&project).exits(0);
    project.edit("lib/own.py", "gelu(input)\n", "gelu(input)  # as torch has it\n");
    build(&project).exits(0).runs("");
    project.edit("lib/own.py", "functional.gelu(input)", "functional.gelu(input * 1)");
    let ran = build(&project).exits(0);
    assert!(ran.actions.contains("gelu:") && ran.actions.contains("baseline"), "{}", ran.actions);
    assert!(!ran.actions.contains("softmax") && !ran.actions.contains("check"), "{}", ran.actions);
    let told = project.run(&mut on(&project, &project, "explain gelu:baseline --format json")).exits(0).stdout;
    for fact in ["source.lib/own.py", "module.some_library", "declaration.tolerances"] {
        assert!(told.contains(fact), "{fact}: {told}");
    }
    let other = project.run(&mut on(&project, &project, "explain softmax:baseline --format json")).exits(0).stdout;
    for fact in ["source.", "module.", "declaration.tolerances", "\"sources\""] {
        assert!(!other.contains(fact), "{fact}: {other}");
    }
}

#[test]
fn a_version_of_an_installed_module_is_in_the_key() {
    let project = compared(ALL);
    project.write("../python/site-packages/some_library-1.0.dist-info/METADATA", "");
    build(&project).exits(0);
    project.remove("../python/site-packages/some_library-1.0.dist-info");
    project.write("../python/site-packages/some_library-1.1.dist-info/METADATA", "");
    let ran = build(&project).exits(0);
    assert!(ran.actions.contains("gelu:") && !ran.actions.contains("softmax"), "{}", ran.actions);
}

#[test]
fn a_function_that_ends_its_process_costs_its_own_figure() {
    let project = compared("'lib/own.py::gelu'");
    project.edit("lib/own.py", "import torch", "import torch\n# ENDS");
    build(&project).exits(0);
    let document = baseline(&project);
    assert!(document["finals"]["torch"].as_f64().unwrap() > 0.0 && document["finals"]["gelu"].is_null());
    let why = document["reasons"]["gelu"].as_str().unwrap();
    assert!(why.starts_with("the process that measured the functions ended without figures: "), "{why}");
    assert!(why.contains("gelu takes the process along"), "{why}");
}

#[test]
fn a_function_that_is_not_there_is_a_mistake_at_its_place() {
    let project = compared("'lib/own.py::gleu'");
    let ran = build(&project).exits(2);
    assert!(
        ran.stderr.contains("error: ops.yaml:13:58: op `gelu`: baseline `gleu`: `lib/own.py` has no `gleu`"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: did you mean `gelu`?"), "{}", ran.stderr);
    let ran = build(&compared("'lib/none.py::gelu'")).exits(2);
    assert!(ran.stderr.contains("baseline `gelu`: no file `lib/none.py`"), "{}", ran.stderr);
}

#[test]
fn where_torch_has_no_room_nothing_is_measured_and_nobody_is_to_blame() {
    let project = machine(1);
    for variant in ["v1_baseline", "v2_tiling"] {
        project.kernel("softmax", variant, "NO-ROOM");
    }
    project.write("../python/site-packages/no-room", "softmax");
    let ran = build(&project).exits(0);
    let why = "not judged: torch's own call at N=8 needs more memory than the device has";
    for target in ["baseline softmax", "bench softmax/v1_baseline", "bench softmax/v2_tiling"] {
        assert!(ran.stderr.contains(&format!("{target} … {why}")), "{}", ran.stderr);
    }
    let row = ran.stdout.lines().find(|line| line.starts_with("softmax")).unwrap();
    assert!(row.ends_with("2/2  none of the variants that passed was measured"), "{row}");
}
