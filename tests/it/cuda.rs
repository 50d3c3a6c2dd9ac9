//! Variants in CUDA C++ on a machine without a device: compiled by the nvcc of the tests' interpreter, and not judged. Where there is no nvcc, that is what is tested.
//!
//! What they do on a device is in `gpu`.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use serde_json::Value;

use crate::environment;
use crate::real::adoption::copied;
use crate::workspace::{Ran, Workspace, finished};

const COMPILE: &str = "softmax/cuda_plain:compile";
const CHECK: &str = "softmax/cuda_plain:check";
const SOURCE: &str = "kernels/softmax/cuda_plain.cu";
const HEADER: &str = "kernels/softmax/reduce.cuh";

/// Returns whether the tests' interpreter has an nvcc, and says that most is skipped where it has none.
pub fn has_nvcc() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let folder = environment::root().join("python/t2t_harness/cuda");
        let code = "import t2t_cuda; print(t2t_cuda.find_nvcc())";
        let told = Command::new(environment::python()).args(["-c", code]).env("PYTHONPATH", folder).output().unwrap();
        let has = told.status.success() && !String::from_utf8_lossy(&told.stdout).contains("None");
        if !has {
            println!("skipped: the interpreter of the tests has no nvcc; `uv sync --extra cuda` installs it");
        }
        has
    })
}

fn compiled(workspace: &Workspace) -> Ran {
    workspace.build(&[COMPILE])
}

/// Returns the lines of a dry run that say what would run.
pub fn stale(workspace: &Workspace) -> Vec<String> {
    let told = workspace.run(&["build", "--device", "cpu", "--dry-run"]).out;
    let phases = [":analyze", ":compile", ":check", ":bench"];
    let of_phase = |line: &&str| phases.iter().any(|phase| line.contains(phase));
    told.lines()
        .filter(of_phase)
        .map(|line| line.split_whitespace().find(|word| word.contains(':')).unwrap().to_owned())
        .collect()
}

#[test]
fn without_nvcc_the_variant_is_rejected_and_the_message_says_what_to_install() {
    if has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    let told = compiled(&workspace).told;
    assert_eq!(workspace.outcome(COMPILE), "no-compiler", "{told}");
    assert!(told.contains("there is no nvcc") && told.contains("t2t[cuda]"), "{told}");
}

/// Without a device.
pub fn both_languages_are_compiled_and_cuda_is_not_judged() {
    if !has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    let built = workspace.build(&["softmax"]);
    assert_eq!(built.code, Some(0), "{}", built.told);
    assert_eq!(workspace.outcome(COMPILE), "passed", "{}", built.told);
    assert_eq!(workspace.outcome(CHECK), "not-judged");
    assert_eq!(workspace.outcome("softmax/triton_rows:check"), "passed");
    assert!(built.told.contains("CUDA C++ runs on a CUDA device alone"), "{}", built.told);

    let resources = workspace.document(COMPILE, "resources");
    let kernels = resources["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 12, "{resources}");
    for kernel in kernels {
        assert!(kernel["registers"].as_u64().unwrap() > 8 && kernel["shared"].as_u64().unwrap() >= 1024, "{kernel}");
        assert_eq!((&kernel["spills"], &kernel["target"]), (&Value::from(0), &Value::from("sm_90a")));
    }
    assert!(resources["compiler"].as_str().unwrap().starts_with("nvcc "), "{resources}");
    let log = workspace.read("logs/softmax_log.md");
    assert!(log.contains("by nvcc ") && log.contains("softmax_bfloat16_bfloat16"), "{log}");

    let ir = |stage: &str| workspace.run(&["ir", "softmax/cuda_plain", "--stage", stage]);
    assert!(ir("ptx").out.contains(".visible .entry softmax_float32_float32"));
    assert!(ir("cubin").out.contains("ELF"));
    assert!(ir("sass").out.contains("MUFU.EX2"), "{}", ir("sass").told);
    assert!(ir("ttir").told.contains("it has cubin, ptx, sass"), "{}", ir("ttir").told);

    workspace.run(&["repro", "softmax/cuda_plain", "small/float32/0"]);
    let beside = "logs/repro/softmax-cuda_plain-small_float32_0/t2t_cuda.py";
    assert!(workspace.read(beside).contains("def load("), "what the script imports lies beside it");

    let doctor = workspace.run(&["doctor"]).out;
    assert!(doctor.lines().any(|line| line.starts_with("nvcc: /") && line.contains("bin/nvcc (")), "{doctor}");
}

#[test]
fn an_edit_compiles_what_it_changes_and_a_comment_nothing() {
    if !has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    compiled(&workspace);
    let first = workspace.record(COMPILE).unwrap();
    let is_stale = || stale(&workspace).iter().any(|line| line.contains(COMPILE));
    assert!(!is_stale(), "{:?}", stale(&workspace));

    workspace.edit(SOURCE, "  float total = 0.0f;", "  // The second pass.\n  float  total=0.0f ;");
    workspace.edit(HEADER, "#pragma once", "#pragma once // and no more often");
    assert!(!is_stale(), "comments and whitespace have no meaning");
    workspace.edit("kernels/softmax/cuda_plain.py", "THREADS = 256", "THREADS = 128");
    workspace.edit("ops.yaml", "dtypes: [float32, float16, bfloat16]", "dtypes: [float32]");
    assert!(!is_stale(), "nvcc reads neither the wrapper nor what is declared");

    workspace.edit(HEADER, "MAX_THREADS = 256", "MAX_THREADS = 512");
    assert!(is_stale(), "an included file is part of the variant");
    let told = compiled(&workspace);
    assert!(told.told.contains("ran 1"), "{}", told.told);
    assert_ne!(workspace.record(COMPILE).unwrap().key, first.key);
    workspace.edit(HEADER, "MAX_THREADS = 512", "MAX_THREADS = 256");
    assert!(!is_stale(), "an undone edit brings the earlier result back");

    // Another clone, with the same nvcc, compiles nothing.
    assert_eq!(workspace.run(&["cache", "export", "kept.tar"]).code, Some(0));
    let other = copied("examples/cuda");
    other.write("kept.tar", std::fs::read(workspace.path("kept.tar")).unwrap());
    assert_eq!(other.run(&["cache", "import", "kept.tar"]).code, Some(0));
    let told = compiled(&other).told;
    assert!(told.contains("ran 0"), "{told}");
    assert_eq!(other.record(COMPILE).unwrap().key, first.key);

    let of_file = workspace.run(&["build", "--device", "cpu", "--dry-run", HEADER]);
    assert!(of_file.out.contains("softmax/cuda_plain") && !of_file.out.contains("triton_rows"), "{}", of_file.out);
}

pub fn what_nvcc_refuses_is_told_at_its_line() {
    if !has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    workspace.edit(SOURCE, "largest = reduce(largest, Max{});", "largest = reduce(largets, Max{});");
    let told = compiled(&workspace);
    assert_eq!((told.code, workspace.outcome(COMPILE).as_str()), (Some(1), "compile-error"), "{}", told.told);
    let line = workspace.read(SOURCE).lines().position(|line| line.contains("largets")).unwrap() + 1;
    assert!(told.told.contains(&format!("{SOURCE}:{line}")), "{}", told.told);
    assert!(told.told.contains("identifier \"largets\" is undefined"), "{}", told.told);
    assert!(told.told.contains("largest = reduce(largets, Max{});"), "the excerpt: {}", told.told);
    // A comment above moves the line that is cited.
    workspace.edit(SOURCE, "  float largest", "  // The first pass.\n  float largest");
    assert!(compiled(&workspace).told.contains(&format!("{SOURCE}:{}", line + 1)));

    workspace.edit(SOURCE, "#include \"reduce.cuh\"", "#include \"reduces.cuh\"");
    let told = compiled(&workspace).told;
    assert!(told.contains("reduces.cuh: No such file") && told.contains("included between quotes"), "{told}");
    workspace.write(SOURCE, "#include \"reduce.cuh\"\n__device__ int none;\n");
    let told = compiled(&workspace).told;
    assert_eq!(workspace.outcome(COMPILE), "source", "{told}");
    assert!(told.contains("the file has no kernel"), "{told}");
    std::fs::remove_file(workspace.path(SOURCE)).unwrap();
    let told = compiled(&workspace).told;
    assert!(told.contains(&format!("{SOURCE}: no such file")), "{told}");
}

const INLINE: &str = "gelu/inline:compile";
const INLINE_FILE: &str = "kernels/gelu/inline.py";

/// Returns the names of the object files that the last compile of a Python file, `target`, kept for the next one.
pub fn parts(workspace: &Workspace, target: &str) -> BTreeSet<String> {
    workspace.write("parts.tar.gz", workspace.artifact(target, "triton.tar.gz"));
    let told = Command::new("tar").arg("-tzf").arg(workspace.path("parts.tar.gz")).output().unwrap();
    let names = String::from_utf8(told.stdout).unwrap();
    names.lines().filter_map(|name| name.strip_prefix("PARTS/")?.strip_suffix(".o")).map(str::to_owned).collect()
}

/// Without a device.
pub fn what_a_python_file_has_torch_build_is_built_and_an_edited_kernel_changes_one_part() {
    if !has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    let told = workspace.build(&[INLINE, "gelu/inline:check"]);
    assert_eq!((told.code, workspace.outcome(INLINE).as_str()), (Some(0), "passed"), "{}", told.told);
    assert_eq!(workspace.outcome("gelu/inline:check"), "not-judged");
    let resources = workspace.document(INLINE, "resources");
    let kernels = resources["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 8, "float32, float64, float16, bfloat16, each in two forms: {resources}");
    assert!(kernels.iter().all(|kernel| kernel["registers"].as_u64().unwrap() > 8), "{resources}");
    let ir = |stage: &str| workspace.run(&["ir", "gelu/inline", "--stage", stage]);
    assert!(ir("ptx").out.contains(".entry _Z11gelu_kernel"), "{}", ir("ptx").told);
    let first = parts(&workspace, INLINE);
    assert_eq!(first.len(), 3, "the binding, the host half, the kernels: {first:?}");

    let is_stale = || stale(&workspace).iter().any(|line| line.contains(INLINE));
    workspace.edit(INLINE_FILE, "import torch\n", "# torch\nimport torch\n");
    assert!(!is_stale(), "a comment has no meaning");
    workspace.edit(INLINE_FILE, "0.5f * x *", "x * 0.5f *");
    let begun = Instant::now();
    let told = workspace.build(&[INLINE]);
    assert_eq!(workspace.outcome(INLINE), "passed", "{}", told.told);
    println!("an edited kernel was compiled in {:?}", begun.elapsed());
    assert_eq!(parts(&workspace, INLINE).intersection(&first).count(), 2, "torch's headers are not read again");
}

#[test]
fn what_a_python_file_has_torch_build_and_cannot_be_built_is_told_at_its_line() {
    if !has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    let plain = "from torch.utils.cpp_extension import load_inline, load\n\n\ndef gelu(input):\n    return input\n\n\n";
    let rejected = |more: &str| {
        workspace.write(INLINE_FILE, format!("{plain}{more}"));
        let told = workspace.build(&[INLINE]);
        assert_eq!(told.code, Some(1), "{}", told.told);
        (workspace.outcome(INLINE), told.told)
    };
    let (class, told) = rejected("");
    assert!(class == "source" && told.contains("nothing calls `load_inline`"), "{class}: {told}");
    let (class, told) = rejected("module = load('m', ['/m.cu'])\n");
    assert!(class == "source" && told.contains("inline.py:8"), "{class}: {told}");
    assert!(told.contains("`/m.cu`, which is no file of the workspace"), "{told}");
    // Without torch's headers a compiler is quick.
    let text = "module = load_inline('m', \"\"\"\nint f() {\n  return one;\n}\n\"\"\", no_implicit_headers=True)\n";
    let (class, told) = rejected(text);
    assert_eq!(class, "compile-error", "{told}");
    assert!(told.contains("inline.py:10") && told.contains("return one;"), "{told}");
}

pub fn the_list_of_architectures_is_torchs() {
    if !has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    let with = |list: &str| {
        let mut command = workspace.command(&["build", "--device", "cpu", COMPILE]);
        finished({
            command.env("TORCH_CUDA_ARCH_LIST", list);
            command
        })
    };
    let told = with("8.0;8.6+PTX");
    assert_eq!(told.code, Some(0), "{}", told.told);
    let launches = workspace.document(COMPILE, "launches");
    assert_eq!(launches["targets"], serde_json::json!(["sm_80", "sm_86", "compute_86"]));
    let first = workspace.record(COMPILE).unwrap().key;
    compiled(&workspace);
    assert_ne!(workspace.record(COMPILE).unwrap().key, first, "the list is in the key");

    let told = with("5.0");
    assert_eq!((told.code, workspace.outcome(COMPILE).as_str()), (Some(1), "architecture"), "{}", told.told);
    assert!(told.told.contains("does not compile for `sm_50`") && told.told.contains("sm_90"), "{}", told.told);
    let told = with("9.0;new");
    assert_eq!(told.code, Some(2), "{}", told.told);
    assert!(told.told.contains("names `new`, which is no architecture"), "{}", told.told);
}
