//! The corpus of bad kernels, `tests/bad_kernels`: one build of them all, each ends with its class, and the others go on.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::{env, fs};

use serde_json::json;

use crate::cli::damage::is_root;
use crate::environment;
use crate::soak::Count;
use crate::worker::worker_leftovers::expect_none_marked;
use crate::workspace::{Ran, Workspace};

/// Kernel, how its compile ends, how its check ends. The first is right.
const CORPUS: [(&str, &str, &str); 39] = [
    ("right", PASSED, PASSED),
    ("abort", "crash", "crash"),
    ("allclose_patched", PASSED, "mismatch"),
    ("allocates_at_once", PASSED, "memory"),
    ("closes_descriptors", "no-reply", "no-reply"),
    ("compile_error", "compile-error", PASSED),
    ("daemon", PASSED, PASSED),
    ("exits_with_three", "exit", "exit"),
    ("exits_with_zero", "no-reply", "no-reply"),
    ("input_mutated", PASSED, "mutated-input"),
    // Its one-element case is a loop that the compiler sees to be endless, and Triton gives up on.
    ("kernel_loop", "compile-error", "timeout"),
    ("kills_parent", PASSED, "exception"),
    ("last_element_wrong", PASSED, "mismatch"),
    ("leaves_no_archive", "no-reply", PASSED),
    ("missing_module", "exception", "exception"),
    ("nan", PASSED, "nan"),
    ("never_written", PASSED, "nan"),
    ("no_kernel", PASSED, "no-kernel-launched"),
    ("nondeterministic", PASSED, "nondeterministic"),
    ("one_row_wrong", PASSED, "mismatch"),
    ("prints_garbage", PASSED, PASSED),
    ("prints_much", PASSED, PASSED),
    ("python_loop", "timeout", "timeout"),
    ("raises", PASSED, "exception"),
    ("raises_base", PASSED, "exception"),
    ("raises_in_kernel", "compile-error", "exception"),
    ("reads_secrets", PASSED, PASSED),
    ("returns_list", PASSED, "type"),
    ("segfault", "crash", "crash"),
    ("sys_exit", "exit", "exit"),
    ("torch_instead", PASSED, "torch-fallback"),
    ("writes_descriptors", "no-reply", "no-reply"),
    ("writes_outside", PASSED, PASSED),
    ("wrong_dtype", PASSED, "dtype"),
    ("wrong_shape", PASSED, "shape"),
    // Made by the test: no formatter takes them.
    ("absent", "source", "source"),
    ("no_entry", "source", "source"),
    ("no_python", "source", "source"),
    ("no_utf8", "source", "source"),
];

const PASSED: &str = "passed";

/// Takes memory without end: an op of its own, of whose variants none is right.
const HUNGRY: &str = "allocates";

const DOUBLE: &str = "import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + place, 2 * tl.load(x_ptr + place, mask=place < size), mask=place < size)


def triton_double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
";

/// What never ends: ops of their own, with deadlines that are soon over. Those of the others a machine that has much else to do does not reach.
/// Op, kernel, deadline of its check, and of its compile: that of the second ends by itself.
const ENDLESS: [(&str, &str, &str, &str); 2] =
    [("endless", "python_loop", "6s", "6s"), ("stuck", "kernel_loop", "6s", "120s")];

/// Returns the op of which a kernel of [`CORPUS`] is a variant.
fn op(name: &str) -> &'static str {
    ENDLESS.iter().find(|(_, endless, ..)| *endless == name).map_or("add", |(op, ..)| op)
}

/// A name that no file may have when all is done: `writes_outside` tries to make some.
const PLANTED: &str = "t2t-bad-kernel-was-here";

#[test]
fn every_bad_kernel_ends_with_its_class_and_the_others_go_on() {
    let count = Count::of(if is_root() { "bad kernels as root" } else { "bad kernels as an ordinary user" }, "judged");
    let workspace = workspace();
    let ran = workspace.build(&[]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    expect_nothing_left(&workspace);
    expect_classes(&workspace, &ran);
    expect_the_right_ones_to_be_measured(&workspace);
    expect_evidence(&workspace);
    expect_places(&workspace);
    expect_output_to_change_nothing(&workspace);
    expect_the_daemon_to_be_gone(&workspace);
    expect_walls_to_have_held(&workspace);
    expect_a_log_in_full(&workspace);
    expect_nothing_to_run_again(&workspace);
    count.add(CORPUS.len());
}

#[test]
fn the_corpus_is_tested_whole() {
    let files = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.filter_map(|name| Some(name.strip_suffix(".py")?.to_owned())).collect();
    let tested: BTreeSet<String> =
        CORPUS.iter().map(|(name, ..)| (*name).to_owned()).chain([HUNGRY.to_owned()]).collect();
    assert_eq!(files.difference(&tested).collect::<Vec<_>>(), Vec::<&String>::new());
}

fn corpus() -> PathBuf {
    environment::root().join("tests/bad_kernels")
}

/// A workspace with the whole corpus as variants of an addition.
fn workspace() -> Workspace {
    let names: Vec<&str> = CORPUS.iter().map(|(name, ..)| *name).filter(|name| op(name) == "add").collect();
    let endless = ENDLESS.map(|(op, name, check, compile)| {
        format!(
            "  {op}:
    torch: torch.add
    inputs: {{input: [M, N], other: [M, N]}}
    kwargs: {{alpha: 0.5}}
    entry: triton_add
    variants: [{name}]
    check: {{timeout: {check}}}
    bench: {{timeout: {compile}}}
"
        )
    });
    let workspace = Workspace::new(&format!(
        "version: 1
defaults:
  check: {{seeds: 1, timeout: 120s}}
  bench: {{sizes: {{small: [16, 16]}}, runs: 1, warmup_ms: 0, rep_ms: 1, timeout: 120s}}
profiles:
  cpu: {{bench: {{sizes: {{small: [16, 16]}}, runs: 1, warmup_ms: 0, rep_ms: 1}}}}
ops:
  add:
    torch: torch.add
    inputs: {{input: [M, N], other: [M, N]}}
    kwargs: {{alpha: 0.5}}
    variants: [{}]
  hungry:
    torch: torch.add
    inputs: {{input: [M, N], other: [M, N]}}
    entry: triton_add
    variants: [{HUNGRY}]
{}",
        names.join(", "),
        endless.concat()
    ));
    for entry in fs::read_dir(corpus()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.trim_end_matches(".py");
        let op = if stem == HUNGRY { "hungry" } else { op(stem) };
        workspace.copy(&format!("tests/bad_kernels/{name}"), &format!("kernels/{op}/{name}"));
    }
    workspace.write("kernels/add/no_entry.py", "def add(input, other):\n    return input\n");
    workspace.write("kernels/add/no_python.py", "def triton_add(input other):\n    return input\n");
    workspace.write("kernels/add/no_utf8.py", b"# \xff\n");
    workspace
}

fn expect_nothing_left(workspace: &Workspace) {
    expect_none_marked(workspace.root());
    let scratch = fs::read_dir(workspace.path("cache/scratch")).map(Iterator::count).unwrap_or_default();
    assert_eq!(scratch, 0, "scratch folders are left");
}

fn expect_classes(workspace: &Workspace, ran: &Ran) {
    let ended =
        |name: &str| ["compile", "check"].map(|phase| workspace.outcome(&format!("{}/{name}:{phase}", op(name))));
    let others = CORPUS.iter().map(|(name, compile, check)| (*name, [*compile, *check], ended(name)));
    let others: Vec<_> = others.filter(|(_, wanted, found)| wanted != found).collect();
    assert!(others.is_empty(), "{}\nname, wanted, found: {others:#?}", ran.told);
    let hungry = ["compile", "check"].map(|phase| workspace.outcome(&format!("hungry/{HUNGRY}:{phase}")));
    assert_eq!(hungry, ["memory", "memory"], "{}", ran.told);
}

/// A bench needs a kernel that compiles and is right, and no more.
fn expect_the_right_ones_to_be_measured(workspace: &Workspace) {
    for (name, compile, check) in CORPUS {
        let wanted = if (compile, check) == (PASSED, PASSED) { PASSED } else { "none" };
        assert_eq!(workspace.outcome(&format!("{}/{name}:bench", op(name))), wanted, "{name}");
    }
    assert_eq!(workspace.document("add:select", "selection")["chosen"], "right");
}

/// The verdict, the evidence and its failure say the same.
fn expect_evidence(workspace: &Workspace) {
    for (name, _, class) in CORPUS.into_iter().filter(|(_, _, check)| *check != PASSED) {
        let target = format!("{}/{name}:check", op(name));
        let (verdict, evidence) = (workspace.document(&target, "verdict"), workspace.document(&target, "evidence"));
        assert_eq!((&verdict["verdict"], &verdict["class"]), (&json!("rejected"), &json!(class)), "{name}");
        assert_eq!(evidence["failure"]["class"], class, "{name}");
        assert!(!evidence["failure"]["message"].as_str().unwrap().is_empty(), "{name}");
    }
    let failure = |name: &str| workspace.document(&format!("add/{name}:check"), "evidence")["failure"].clone();
    let last = failure("last_element_wrong");
    assert_eq!((&last["index"], &last["bad"], &last["total"]), (&json!([15, 15]), &json!(1), &json!(256)));
    let row = failure("one_row_wrong");
    assert_eq!((&row["index"], &row["bad"], &row["case"]), (&json!([3, 0]), &json!(16), &json!("small/float32/0")));
    assert_eq!(failure("nan")["got"], "nan");
    let endless = workspace.document("endless/python_loop:compile", "failure");
    assert!(endless["hint"].as_str().unwrap().contains("`bench: {timeout: …}` for compiles"), "{endless}");
    assert!(failure("exits_with_three")["message"].as_str().unwrap().contains('3'));
}

/// What was raised, and where a process crashed, is told with the kernel's own lines.
fn expect_places(workspace: &Workspace) {
    let places = [
        ("raises", "check", "raise ValueError", "ValueError: cannot halve a tensor of 2 dims"),
        ("raises_base", "check", "raise Stop", "Stop: not an Exception"),
        ("raises_in_kernel", "check", "y.missing", "no attribute 'missing'"),
        ("raises_in_kernel", "compile", "y.missing", "no attribute 'missing'"),
        ("missing_module", "check", "import no_such_module_anywhere", "ModuleNotFoundError"),
        ("missing_module", "compile", "import no_such_module_anywhere", "ModuleNotFoundError"),
        ("compile_error", "compile", "if n_elements > 64:", "redefines it as"),
        ("segfault", "check", "ctypes.string_at(0)", "SIGSEGV"),
        ("abort", "check", "os.abort()", "SIGABRT"),
        ("kills_parent", "check", "os.kill", "PermissionError"),
        ("allocates_at_once", "check", "1 << 48", "can't allocate memory"),
        ("no_python", "check", "def triton_add(input other):", ""),
    ];
    for (name, phase, line, message) in places {
        let target = format!("add/{name}:{phase}");
        let failure = match phase {
            "check" => workspace.document(&target, "evidence")["failure"].clone(),
            _ => workspace.document(&target, "failure"),
        };
        let file = format!("kernels/add/{name}.py");
        let text = workspace.read(&file);
        let number = failure["place"]["line"].as_u64().unwrap_or_default();
        let own = text.lines().nth(usize::try_from(number).unwrap().wrapping_sub(1)).unwrap_or_default();
        assert_eq!(failure["place"]["file"], *file, "{target}: {failure:#}");
        assert!(own.contains(line), "{target}: line {number} is `{own}`");
        assert_eq!(failure["excerpt"], own.trim(), "{target}");
        assert!(failure["message"].as_str().unwrap().contains(message), "{target}: {failure:#}");
    }
    let raises = workspace.document("add/raises:check", "evidence")["failure"]["traceback"].clone();
    assert_eq!(raises, json!(["kernels/add/raises.py:11 in triton_add", "kernels/add/raises.py:7 in halved"]));
}

fn expect_output_to_change_nothing(workspace: &Workspace) {
    let much = workspace.document("add/prints_much:check", "evidence")["output"].clone();
    assert_eq!(much["truncated"], true);
    let length = much["stdout"].as_str().unwrap().len();
    assert!((1000..20_000).contains(&length), "{length}");
    let garbage = workspace.document("add/prints_garbage:check", "evidence")["output"].clone();
    for stream in ["stdout", "stderr"] {
        assert!(garbage[stream].as_str().unwrap().contains("title"), "{garbage}");
    }
    let log = workspace.read("logs/add_log.md");
    assert!(!log.contains('\u{1b}'), "an escape reached the log");
}

/// It is a process of no group or session of t2t's, and its death is noted.
fn expect_the_daemon_to_be_gone(workspace: &Workspace) {
    let evidence = workspace.document("add/daemon:check", "evidence");
    // A machine that has much else to do leaves out some of what is drawn, and says so, too.
    assert!(evidence["notes"].as_array().unwrap().contains(&json!("left behind: 1 process, killed")), "{evidence}");
    let said = evidence["output"]["stdout"].as_str().unwrap();
    let pid = said.split_whitespace().nth(1).unwrap();
    let words = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&words).contains(workspace.root().to_str().unwrap()), "the daemon {pid} lives");
}

fn expect_walls_to_have_held(workspace: &Workspace) {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let folders = [workspace.path(""), workspace.path("kernels/add"), workspace.path("cache"), home, env::temp_dir()];
    for folder in folders {
        assert!(!folder.join(PLANTED).exists(), "{}", folder.display());
    }
}

/// The log tells of each failure as the evidence does, and `t2t log` prints it.
fn expect_a_log_in_full(workspace: &Workspace) {
    for (name, compile, check) in CORPUS {
        let log = workspace.read(&format!("logs/{}_log.md", op(name)));
        for (phase, class) in told(workspace, name, compile, check) {
            let heading = format!("### ❌ {name}: {phase}, {class}");
            assert!(log.contains(&heading), "{heading}");
        }
        let status = if check == PASSED { "✅ passed" } else { "❌ rejected" };
        assert!(log.contains(&format!("| {name} | {status} |")), "{name}");
        if check != PASSED {
            let failure = &workspace.document(&format!("{}/{name}:check", op(name)), "evidence")["failure"];
            let excerpt = failure["excerpt"].as_str().unwrap_or_default();
            assert!(log.contains(excerpt), "{name}: {excerpt}");
        }
    }
    let log = workspace.read("logs/add_log.md");
    assert_eq!(workspace.run(&["log", "add", "--device", "cpu"]).out, log);
    assert!(log.contains("- daemon: left behind: 1 process, killed"));
}

#[test]
fn a_reference_that_dies_of_a_case_is_not_the_kernels_fault() {
    let workspace = Workspace::new(
        "version: 1\nops:\n  double:\n    reference: reference.py::double\n    inputs: {x: [M, N]}\n    variants: [right]\n",
    );
    workspace.write("kernels/double/right.py", DOUBLE);
    let dies = "import os\n\n\ndef double(x):\n    if x.numel() == 0:\n        os.abort()\n    return x * 2\n";
    workspace.write("reference.py", dies);
    let ran = workspace.build(&["double:check"]);
    assert_eq!((ran.code, workspace.outcome("double/right:check").as_str()), (Some(0), "not-judged"), "{}", ran.told);
    assert!(ran.told.contains("ended the process that judges: it died by SIGABRT"), "{}", ran.told);
    workspace.edit("reference.py", "os.abort()", "return x.clone()");
    let ran = workspace.build(&["double:check"]);
    assert_eq!(workspace.outcome("double/right:check"), "passed", "{}", ran.told);
}

/// Returns the rejections of a variant that its log tells: the check's not again where it is the compile's.
fn told<'a>(workspace: &Workspace, name: &str, compile: &'a str, check: &'a str) -> Vec<(&'static str, &'a str)> {
    let is_same = compile != PASSED
        && check == compile
        && workspace.document(&format!("{}/{name}:check", op(name)), "evidence")["failure"]
            == workspace.document(&format!("{}/{name}:compile", op(name)), "failure");
    let all = [("compile", compile), ("check", if is_same { PASSED } else { check })];
    all.into_iter().filter(|(_, class)| *class != PASSED).collect()
}

/// Rejections are results like any: a second build finds them all, and ends the same way.
fn expect_nothing_to_run_again(workspace: &Workspace) {
    let mut again = None;
    let kept = workspace.kept_by(|| again = Some(workspace.build(&[])));
    let again = again.unwrap();
    assert_eq!(kept, Vec::<String>::new(), "{}", again.told);
    assert_eq!(again.code, Some(1));
    assert!(again.told.contains("ran 0,") || again.told.contains("ran 0 "), "{}", again.told);
}
