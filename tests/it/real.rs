//! The real thing, whole: real kernels, the real worker, the interpreter that the tests have. What is true of a build whatever its kernels is
//! tested elsewhere, without Python.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use t2t::engine::dispatcher::SharedDispatcher;
use t2t::engine::perform::perform;
use t2t::engine::request::{Given, Requests};
use t2t::session::{DeviceChoice, Options, Overwrite, Probing, Session};
use t2t_host::cores::Shares;
use t2t_host::interrupt::Interrupt;
use t2t_host::pool::Cancel;
use t2t_host::toolchain::{Found, Interpreter};
use t2t_model::action::{Phase, Target};
use t2t_store::store::cas::Cas;

use crate::environment;
use crate::project::{SOON, copy_program};
use crate::worker::worker_leftovers::expect_none_marked;
use crate::workspace::{Workspace, finished};

/// The addition of the repository, small.
const ADD: &str = "version: 1
defaults:
  check: {seeds: 1}
  bench: {sizes: {small: [16, 16]}}
profiles:
  cpu: {bench: {sizes: {small: [16, 16]}, runs: 1, warmup_ms: 0, rep_ms: 1}}
ops:
  add:
    torch: torch.add
    inputs: {input: [M, N], other: [M, N]}
    kwargs: {alpha: 0.5}
    variants: [v1_baseline, v4_optimized]
";

const V4: &str = "kernels/add/v4_optimized.py";

/// All actions of that workspace, sorted.
const ALL: [&str; 10] = [
    "add/v1_baseline:bench",
    "add/v1_baseline:check",
    "add/v1_baseline:compile",
    "add/v4_optimized:bench",
    "add/v4_optimized:check",
    "add/v4_optimized:compile",
    "add:analyze",
    "add:log",
    "add:select",
    "summary",
];

/// A wrapper that insists on a GPU, and asks for memory on one by name.
const INSISTS: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_add(input, other, *, alpha=1):
    assert input.is_cuda and other.device.type == \"cuda\"
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=\"cuda\")
    assert out.device == x.device == torch.device(\"cuda\", 0)
    with torch.cuda.device(out.device):
        add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), float(alpha), BLOCK_SIZE=64)
    return out
";

fn added() -> Workspace {
    let workspace = Workspace::new(ADD);
    for name in ["kernels/add/v1_baseline.py", V4] {
        workspace.copy(name, name);
    }
    workspace
}

/// A workspace whose only kernel is this text.
fn single(ops: &str, kernel: &str) -> Workspace {
    let workspace = Workspace::with_zygote(&ops.replace("[v1_baseline, v4_optimized]", "[own]"));
    workspace.write("kernels/add/own.py", kernel);
    workspace
}

#[test]
fn real_kernels_pass_on_the_interpreter_and_edits_rerun_what_they_must() {
    let workspace = added();
    let kept = workspace.kept_by(|| assert_builds(&workspace));
    assert_eq!(kept, ALL);
    assert!(ALL.iter().all(|target| workspace.outcome(target) == "passed"));

    let kept = workspace.kept_by(|| {
        workspace.edit(V4, "    mask = ", "    # A comment.\n    mask =  ");
        assert_builds(&workspace);
    });
    assert_eq!(kept, Vec::<String>::new(), "a comment inside a kernel");
    nothing_is_compiled_again(&workspace);

    let kept = workspace.kept_by(|| {
        workspace.edit(V4, "def triton_add", "EXTRA = 1\n\n\ndef triton_add");
        assert_builds(&workspace);
    });
    let own = kept.iter().filter(|target| target.contains('/')).collect::<Vec<_>>();
    assert_eq!(own, ["add/v4_optimized:bench", "add/v4_optimized:check", "add/v4_optimized:compile"]);
    let others: Vec<&String> = kept.iter().filter(|target| !target.contains('/')).collect();
    assert_eq!(others, ["add:log", "add:select", "summary"]);
    the_compiled_stages_are_printed(&workspace);
}

fn assert_builds(workspace: &Workspace) {
    let ran = workspace.build(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
}

/// With the archive of the first compile, the edited file asks Triton's cache for nothing that it does not hold.
fn nothing_is_compiled_again(workspace: &Workspace) {
    let target = "add/v4_optimized:compile";
    let first = workspace.document(target, "triton_cache");
    assert!(!first["misses"].as_array().unwrap().is_empty());
    let options = Options {
        configurations: t2t_plan::graph::expand::Configurations::First,
        python: Some(Interpreter { path: environment::python(), found: Found::Variable }),
        device: DeviceChoice::Cpu,
        as_device: None,
        executor: None,
        cache: None,
        visible: None,
        search: None,
        architectures: None,
        harness: None,
        driver: None,
        bytecode: None,
        require_signed: false,
        overwrite: Overwrite::No,
        generator: None,
        takes_kernels_as_they_are: false,
        probing: Probing::Allowed,
        pool: None,
        toolchain: None,
    };
    let session = Session::open(workspace.root(), &options, &Interrupt::default()).unwrap();
    let requests = Requests {
        spec: &session.spec,
        inventory: &session.inventory,
        root: &session.root,
        catalogue: &session.catalogue,
        readable: session.readable(),
        shares: &Shares { left: 1, per_device: 1, ..Shares::default() },
        jobs: 1,
        salt: "",
    };
    let archive = workspace.record(target).unwrap().outputs["triton.tar.gz"].digest;
    let given = Given { warm: vec![Cas::open(&session.cache).path(archive)], processes: 1, ..Given::default() };
    let index = session.graph.find(&Target::of_variant("add", "v4_optimized", Phase::Compile)).unwrap();
    let job = requests.job(session.graph.action(index), &given, workspace.path("cache/scratch/again"));
    let performed = perform(&job, &session.pool, &SharedDispatcher::default(), &Cancel::default());
    let second: Value = serde_json::from_slice(&performed.documents["triton_cache"]).unwrap();
    assert_eq!(second["misses"], json!([]));
    assert!(second["hits"].as_u64().unwrap() > 0);
    fs::remove_dir_all(workspace.path("cache/scratch/again")).unwrap();
}

fn the_compiled_stages_are_printed(workspace: &Workspace) {
    let marks = [("ttir", "tt.func"), ("ttgir", "ttg."), ("llir", "define "), ("ptx", ".visible .entry add_kernel")];
    for (stage, mark) in marks {
        let ran = workspace.run(&["ir", "add/v4_optimized", "--stage", stage, "--device", "cpu"]);
        assert_eq!(ran.code, Some(0), "{}", ran.told);
        assert!(ran.out.contains(mark), "{stage} has no `{mark}`");
    }
    let cubin = workspace.command(&["ir", "add/v4_optimized", "--stage", "cubin"]).output().unwrap().stdout;
    assert!(cubin.starts_with(b"\x7fELF"));
}

#[test]
fn what_the_interpreter_lacks_is_not_judged_and_not_measured() {
    let workspace = Workspace::with_zygote(&ADD.replace(", v4_optimized]", "]"));
    workspace.copy("kernels/add/v1_baseline.py", "kernels/add/v1_baseline.py");
    let assembly =
        "tl.inline_asm_elementwise(\"mov.b32 $0, $1;\", \"=r,r\", [x + alpha * y], tl.float32, True, 1), mask";
    workspace.edit("kernels/add/v1_baseline.py", "x + alpha * y, mask", assembly);
    assert_builds(&workspace);
    let verdict = workspace.document("add/v1_baseline:check", "verdict");
    assert_eq!(verdict["verdict"], "not-judged");
    assert!(verdict["reason"].as_str().unwrap().contains("inline assembly"), "{verdict}");
    assert_eq!(workspace.outcome("add/v1_baseline:bench"), "none");
    let log = workspace.read("logs/add_log.md");
    assert!(log.contains("| v1_baseline | ⏭ not judged |") || log.contains("| v1_baseline | ⏭ not-judged |"), "{log}");
}

#[test]
fn bfloat16_is_judged_on_the_interpreter() {
    let ops = ADD.replace("kwargs:", "dtypes: [bfloat16]\n    kwargs:").replace(", v4_optimized]", "]");
    let workspace = Workspace::with_zygote(&ops);
    workspace.copy("kernels/add/v1_baseline.py", "kernels/add/v1_baseline.py");
    assert_builds(&workspace);
    assert_eq!(workspace.document("add/v1_baseline:check", "verdict")["verdict"], "passed");
    workspace.edit("kernels/add/v1_baseline.py", "x + alpha * y, mask", "x + alpha * y * 1.5, mask");
    workspace.build(&[]);
    assert_eq!(workspace.document("add/v1_baseline:check", "verdict")["class"], "mismatch");
}

#[test]
fn a_cases_hook_is_used_wherever_it_lies_and_its_mistakes_have_their_place() {
    let ops = ADD.replace("kwargs:", "cases: cases/add.py\n    kwargs:").replace(", v4_optimized]", "]");
    let workspace = Workspace::with_zygote(&ops);
    workspace.copy("kernels/add/v1_baseline.py", "kernels/add/v1_baseline.py");
    let hook = "import torch\nfrom types import SimpleNamespace\n\n\ndef cases(spec, generator):\n    \
                x = torch.randn(3, 5, generator=generator)\n    \
                yield SimpleNamespace(name=\"mine\", inputs={\"input\": x, \"other\": x}, kwargs={\"alpha\": 2.0})\n";
    workspace.write("cases/add.py", hook);
    let ran = workspace.build(&["add:check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let verdict = workspace.document("add/v1_baseline:check", "verdict");
    assert!(verdict["cases"].as_object().unwrap().keys().any(|name| name.contains("mine")), "{verdict}");
    workspace.edit("cases/add.py", "    yield", "    raise RuntimeError(\"boom\")\n    yield");
    let ran = workspace.build(&["add:check"]);
    assert_eq!(
        (ran.code, workspace.outcome("add/v1_baseline:check").as_str()),
        (Some(1), "unfit-cases"),
        "{}",
        ran.told
    );
    assert!(ran.told.contains("cases/add.py:7") && ran.told.contains("boom"), "{}", ran.told);
}

#[test]
fn kernels_of_the_workspace_win_over_an_installed_package_of_that_name() {
    let workspace = single(ADD, "from kernels.add.helper import triton_add  # noqa: F401\n");
    workspace.write("kernels/add/helper.py", INSISTS);
    for decoy in ["__init__.py", "add/__init__.py", "add/own.py", "add/helper.py"] {
        workspace.write(&format!("decoy/kernels/{decoy}"), "raise ImportError('this is the decoy')\n");
    }
    let mut command = workspace.command(&["build", "--device", "cpu"]);
    command.env("PYTHONPATH", workspace.path("decoy"));
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert_eq!(workspace.outcome("add/own:check"), "passed");
}

#[test]
fn a_wrapper_that_insists_on_a_gpu_runs_unmodified() {
    let workspace = single(ADD, INSISTS);
    assert_builds(&workspace);
    for phase in ["compile", "check", "bench"] {
        assert_eq!(workspace.outcome(&format!("add/own:{phase}")), "passed", "{phase}");
    }
    let launches = workspace.document("add/own:compile", "launches");
    assert_eq!((&launches["coverage"], &launches["reasons"]), (&json!("full"), &json!([])));
}

#[test]
fn a_killed_build_leaves_nothing_running_and_the_next_one_ends_as_a_clean_one() {
    let workspace = added();
    // There is far more to do than a slow machine could before the kill.
    for records in [1, 3, 5] {
        let mut child = workspace
            .command(&["build", "--device", "cpu"])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(|| workspace.journal().len() >= records);
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it was killed at work");
        expect_none_marked(workspace.root());
    }
    assert_builds(&workspace);
    let mut targets = workspace.journal();
    targets.sort();
    assert_eq!(targets, ALL, "what was finished before a kill is not run again");
    let clean = added();
    assert_builds(&clean);
    for variant in ["v1_baseline", "v4_optimized"] {
        let verdict = |workspace: &Workspace| workspace.artifact(&format!("add/{variant}:check"), "verdict");
        assert_eq!(verdict(&workspace), verdict(&clean));
        let resources = |workspace: &Workspace| workspace.artifact(&format!("add/{variant}:compile"), "resources");
        assert_eq!(resources(&workspace), resources(&clean));
    }
    let scratch = fs::read_dir(workspace.path("cache/scratch")).map(Iterator::count).unwrap_or_default();
    assert_eq!(scratch, 0, "scratch of the killed builds is left");
}

fn wait_for(done: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !done() {
        assert!(Instant::now() < end, "waited in vain");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_binary_and_the_module_work_copied_alone() {
    let workspace = single(ADD, INSISTS);
    let said = asked(&environment::python(), "import sysconfig; print(sysconfig.get_path('purelib'))");
    let site = PathBuf::from(said);
    fs::create_dir_all(workspace.path("module")).unwrap();
    let module = asked(&environment::python(), "from t2t_worker import t2t_worker; print(t2t_worker.__file__)");
    fs::copy(module, workspace.path("module/t2t_worker.abi3.so")).unwrap();
    fs::create_dir_all(workspace.path("bin")).unwrap();
    copy_program(&environment::binary(), &workspace.path("bin/t2t"));
    let bare = asked(&environment::python(), "import sys; print(sys._base_executable)");
    let paths = std::env::join_paths([workspace.path("module"), site]).unwrap();
    let used = Command::new(&bare)
        .args(["-c", "import t2t_worker; print(t2t_worker.__file__)"])
        .env("PYTHONPATH", &paths)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&used.stdout).contains("module/t2t_worker.abi3.so"), "{used:?}");
    let mut command = Command::new(workspace.path("bin/t2t"));
    command.args(["build", "--device", "cpu", "--python", &bare]).current_dir(workspace.root());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", workspace.path("home")).env("PYTHONPATH", &paths);
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert_eq!(workspace.outcome("add/own:check"), "passed");
}

/// Returns what a Python program prints.
fn asked(python: &std::path::Path, program: &str) -> String {
    let output = Command::new(python).args(["-c", program]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
