//! A case on its own: what a rejection says of it, and `t2t repro`, which writes it as a Python file and runs that.

use std::collections::BTreeSet;

use crate::environment;
use crate::workspace::{Ran, Workspace};

/// A sum that takes its inputs for dense.
fn workspace() -> Workspace {
    let first = |name: &str| std::fs::read_to_string(environment::root().join("assets/first").join(name)).unwrap();
    let workspace = Workspace::with_zygote(&first("ops.yaml").replace("[v1_baseline]", "[v1_baseline, v2_dense]"));
    let dense = "    input, other = input.contiguous(), other.contiguous()\n";
    let right = first("v1_baseline.py");
    assert!(right.contains(dense));
    workspace.write("kernels/add/v1_baseline.py", &right);
    workspace.write("kernels/add/v2_dense.py", right.replace(dense, ""));
    workspace
}

fn run(workspace: &Workspace, arguments: &[&str]) -> Ran {
    let output = workspace.command(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), out: text(&output.stdout), told: text(&output.stderr) }
}

#[test]
fn a_case_is_told_of_and_runs_alone_outside_of_t2t() {
    let workspace = workspace();
    let ran = run(&workspace, &["build", "add:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let lines = "  edge case with strided inputs: input float32[15, 13] strides (26, 2), other float32[15, 13] strides (26, 2)\n";
    assert!(ran.told.contains(lines), "{}", ran.told);
    assert!(ran.told.contains("\nalone: t2t repro add/v2_dense edge/strided/float32\n"), "{}", ran.told);

    let ran = run(&workspace, &["repro", "add/v2_dense"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert!(
        ran.out.starts_with("the output differs from torch's in 194 of 195 elements, first [0, 1]: got nan"),
        "{ran:?}"
    );
    assert!(ran.out.contains("\nwrong in every row, every column\nunits in the last place: "), "{ran:?}");
    let drawn = workspace.path("logs/repro/add-v2_dense-edge_strided_float32/0.png");
    assert!(ran.out.contains("\n 0 .############\n"), "{ran:?}");
    assert!(ran.out.ends_with(&format!("\npicture: {}\n", drawn.display())) && drawn.is_file(), "{ran:?}");
    let ran = run(&workspace, &["debug", "add/v1_baseline", "--case", "edge/strided/float32"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "as near to torch's as a check asks\n"), "{ran:?}");
    let ran = run(&workspace, &["repro", "--pdb", "add/v2_dense"]);
    assert!(ran.out.contains("post mortem") && ran.out.contains("(Pdb)"), "{ran:?}");

    // It needs neither t2t nor its workspace's store.
    std::fs::remove_dir_all(workspace.path("cache")).unwrap();
    let script = workspace.path("logs/repro/add-v2_dense-edge_strided_float32/repro.py");
    let alone = std::process::Command::new(environment::python()).arg(&script).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&alone.stdout).contains("differs from torch's"), "{alone:?}");
}

#[test]
fn a_case_that_is_not_there_is_bad_use_and_one_that_nothing_judged_is_written() {
    let workspace = workspace();
    let ran = run(&workspace, &["repro", "add/v1_baseline", "small/float32/7"]);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    let expected =
        "error: add/v1_baseline:check has no case `small/float32/7`\nhint: did you mean `small/float32/0`?\n";
    assert_eq!(ran.told, expected);
    let ran = run(&workspace, &["repro", "add"]);
    assert_eq!((ran.code, ran.told.lines().next()), (Some(2), Some("error: `add` names no variant")), "{ran:?}");
    let out = workspace.path("mine");
    let ran = run(&workspace, &["repro", "add/v1_baseline", "--no-run", "--out", out.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    assert!(workspace.read("mine/repro.py").starts_with("\"\"\"add/v1_baseline on the case small/float32/0,"));
    assert!(!workspace.path("logs/repro").exists());
}

#[test]
fn a_case_that_was_found_for_a_measured_size_runs_alone_too() {
    let workspace = workspace();
    let right = workspace.read("kernels/add/v1_baseline.py");
    let call = "add_kernel[(triton.cdiv(length, 1024),)](input, other, output, length, BLOCK=1024)";
    // Large blocks, and none for what is beyond the last whole one.
    let long = "block, blocks = 1024, triton.cdiv(length, 1024)\n        if length > 6000:\n            \
                block, blocks = 2048, length // 2048\n        \
                add_kernel[(blocks,)](input, other, output, length, BLOCK=block)";
    workspace.write("kernels/add/v2_dense.py", right.replace(call, long));
    let ran = run(&workspace, &["build", "add/v2_dense:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let alone = ran.told.lines().find_map(|line| line.strip_prefix("alone: t2t repro add/v2_dense ")).unwrap();
    let case = alone.trim_matches('\'');
    assert!(case.starts_with("reach/"), "{}", ran.told);
    let ran = run(&workspace, &["repro", "add/v2_dense", case]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert!(ran.out.starts_with("the output differs from torch's in "), "{ran:?}");
}

#[test]
fn an_autotuned_kernel_runs_alone_without_a_gpu_too() {
    let workspace = workspace();
    let tuned = workspace.read("kernels/add/v1_baseline.py").replace(
        "@triton.jit\n",
        "@triton.autotune(configs=[triton.Config({\"BLOCK\": 128}), triton.Config({\"BLOCK\": 256})], key=[\"length\"])\n@triton.jit\n",
    );
    let tuned = tuned.replace("(triton.cdiv(length, 1024),)", "lambda meta: (triton.cdiv(length, meta[\"BLOCK\"]),)");
    let tuned = tuned.replace(", length, BLOCK=1024)", ", length)");
    assert!(tuned.contains("autotune") && tuned.contains("lambda meta") && !tuned.contains("BLOCK=1024"), "{tuned}");
    workspace.write("kernels/add/v1_baseline.py", &tuned);
    let ran = run(&workspace, &["repro", "add/v1_baseline"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "as near to torch's as a check asks\n"), "{ran:?}");
}

#[test]
fn a_case_in_which_programs_do_more_than_one_piece_runs_alone_too() {
    let workspace = workspace();
    let right = workspace.read("kernels/add/v1_baseline.py");
    let call = "add_kernel[(triton.cdiv(length, 1024),)](";
    assert!(right.contains(call));
    // There are never more than four programs, and what is beyond them nobody does.
    let capped = right.replace(call, "add_kernel[(min(triton.cdiv(length, 1024), 4),)](");
    workspace.write("kernels/add/v2_dense.py", capped);
    let ran = run(&workspace, &["build", "add/v2_dense:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let evidence = run(&workspace, &["artifact", "add/v2_dense:check", "evidence"]);
    let is_told = |name: &&str| name.starts_with("edge/grid[") || name.starts_with("edge/programs[");
    let names: BTreeSet<&str> = evidence.out.split('"').filter(is_told).collect();
    let ran: Vec<Ran> = names.iter().map(|name| run(&workspace, &["repro", "add/v2_dense", name])).collect();
    assert!(ran.iter().all(|ran| ran.code.is_some_and(|code| code < 2)), "{ran:?}");
    assert!(ran.iter().any(|ran| ran.out.starts_with("the output differs from torch's in ")), "{ran:?}");
}

#[test]
fn a_case_that_one_call_alone_does_not_show_wrong_is_said_to_be_rejected() {
    let workspace = workspace();
    let right = workspace.read("kernels/add/v1_baseline.py");
    let (fresh, kept) = (
        "    output = torch.empty_like(input)\n",
        "    output = KEPT.setdefault((input.shape, input.dtype), torch.empty_like(input))\n",
    );
    assert!(right.contains(fresh));
    let right = right.replace("\n\n@triton.jit", "\n\nKEPT = {}\n\n\n@triton.jit");
    workspace.write("kernels/add/v2_dense.py", right.replace(fresh, kept));
    let ran = run(&workspace, &["build", "add/v2_dense:check"]);
    assert!(ran.told.contains("check add/v2_dense … rejected (aliased)"), "{}", ran.told);
    let ran = run(&workspace, &["repro", "add/v2_dense"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "as near to torch's as a check asks\n"), "{ran:?}");
    let note =
        "\nnote: the last check rejected this case as `aliased`, which one call alone does not show: a later call ";
    assert!(ran.told.contains(note), "{}", ran.told);
    assert!(ran.told.ends_with("\nhint: `t2t explain aliased` says what it means\n"), "{}", ran.told);
}

#[test]
fn an_input_that_was_changed_and_a_process_that_was_left_are_seen_in_a_case_alone() {
    let workspace = workspace();
    let right = workspace.read("kernels/add/v1_baseline.py");
    let made = "    output = torch.empty_like(input)\n";
    let changed = |class: &str, line: &str| {
        workspace.write("kernels/add/v2_dense.py", right.replace(made, &format!("{line}{made}")));
        let ran = run(&workspace, &["build", "add/v2_dense:check"]);
        assert!(ran.told.contains(&format!("check add/v2_dense … rejected ({class})")), "{}", ran.told);
        run(&workspace, &["repro", "add/v2_dense"])
    };
    let ran = changed("mutated-input", "    other.fill_(0.5)\n");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.ends_with("\ninput `other` was changed, and `mutates` does not name it\n"), "{ran:?}");
    let ran = changed("exit", "    raise SystemExit(0)\n");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.told.contains("RuntimeError: the kernel ended the process: exit(0)"), "{ran:?}");
}

/// Picks experts by probabilities that it does not return; of ties the last.
const GATE: &str = "\
version: 1
ops:
  moe_gate:
    reference: kernels/moe_gate/reference.py::moe_gate
    inputs: {x: [T, D], weight: [E, D]}
    kwargs: {k: 2}
    check: {seeds: 1, sizes: {small: {T: 5, D: 24, E: 9}}, edges: {special: {off: no kernel is asked}}}
    bench: {sizes: {small: {T: 5, D: 24, E: 9}}}
    variants: [honest]
";

#[test]
fn indices_of_ties_are_as_right_in_a_case_alone_as_in_a_check() {
    let workspace = Workspace::with_zygote(GATE);
    let folder = environment::root().join("tests/adoption/kernels/moe_gate");
    for file in ["reference.py", "honest.py"] {
        workspace.write(&format!("kernels/moe_gate/{file}"), std::fs::read_to_string(folder.join(file)).unwrap());
    }
    let ran = run(&workspace, &["build", "moe_gate:check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let ran = run(&workspace, &["repro", "moe_gate/honest", "edge/zeros[x]/float32"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "as near to torch's as a check asks\n"), "{ran:?}");
}

/// Two classes: one keeps half of the weight under its name, and one returns its buffer.
const OF_MODULES: &str = "\
version: 1
ops:
  scaled:
    reference: {file: lib/reference.py, name: Scaled, init: {dim: N}}
    inputs: {x: [M, N]}
    backward: true
    allow: [add, add_]
    check: {seeds: 1, sizes: {small: {M: 5, N: 12}}}
    bench: {sizes: {small: {M: 5, N: 12}}}
    variants: [{name: halved, entry: Scaled}]
  centered:
    reference: {file: lib/reference.py, name: Centered, init: {dim: N}}
    inputs: {x: [M, N]}
    check: {atol: 1.0e-4, rtol: 1.0e-4, seeds: 1, sizes: {small: {M: 5, N: 12}}}
    bench: {sizes: {small: {M: 5, N: 12}}}
    variants: [{name: kept, entry: Centered}]
";

#[test]
fn what_a_module_holds_is_compared_in_a_case_alone_as_in_a_check() {
    let workspace = Workspace::with_zygote(OF_MODULES);
    let folder = environment::root().join("tests/gpu_kernels/modules");
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let changed = |file: &str, pairs: &[(&str, &str)]| {
        pairs.iter().fold(text(file), |text, (from, to)| {
            assert!(text.contains(from), "{file}: {from}");
            text.replace(from, to)
        })
    };
    workspace.write("lib/reference.py", text("reference.py"));
    let halved = [
        ("torch.nn.Parameter(torch.randn(dim))", "torch.nn.Parameter(torch.randn(dim) / 2)"),
        ("Product.apply(x.contiguous(), self.weight)", "Product.apply(x.contiguous(), self.weight + self.weight)"),
    ];
    workspace.write("kernels/scaled/halved.py", changed("scaled.py", &halved));
    let kept = [
        (
            "        self.register_buffer",
            "        self.register_buffer(\"out\", torch.empty(0))\n        self.register_buffer",
        ),
        (
            "        out = torch.empty((M, N), dtype=x.dtype, device=x.device)\n",
            "        out = self.out = torch.empty((M, N), dtype=x.dtype, device=x.device)\n",
        ),
    ];
    workspace.write("kernels/centered/kept.py", changed("centered.py", &kept));
    let ran = run(&workspace, &["build", "scaled:check", "centered:check"]);
    assert!(ran.told.contains("check scaled/halved … passed"), "{}", ran.told);
    let words = "centered/kept:check: a result is a parameter or a buffer of the kernel's class, and torch's is none of its (aliased)";
    assert!(ran.told.contains(words), "{}", ran.told);
    // Its gradient is another one, of a weight that begins with other values.
    for case in ["small/float32/0", "edge/again/float32"] {
        let ran = run(&workspace, &["repro", "scaled/halved", case]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "as near to torch's as a check asks\n"), "{ran:?}");
    }
}

/// Doubles its input in place, which has a gradient.
const IN_PLACE: &str = "\
version: 1
ops:
  doubled:
    reference: lib/reference.py::doubled
    inputs: {x: [M, N]}
    mutates: [x]
    backward: true
    entry: Doubled.apply
    check: {seeds: 1, sizes: {small: {M: 5, N: 12}}, edges: {strided: {off: dense}, transposed: {off: dense}}}
    bench: {sizes: {small: {M: 5, N: 12}}}
    variants: [v1]
";

const DOUBLED: &str = "import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def double(x, out):
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return double(x, x)

    @staticmethod
    def backward(ctx, flow):
        return double(flow.contiguous(), torch.empty(flow.shape, dtype=flow.dtype, device=flow.device))
";

#[test]
fn an_input_that_has_a_gradient_and_is_changed_is_so_in_a_case_alone_as_in_a_check() {
    let workspace = Workspace::with_zygote(IN_PLACE);
    workspace.write("lib/reference.py", "def doubled(x):\n    return x.mul_(2.0)\n");
    workspace.write("kernels/doubled/v1.py", DOUBLED);
    let ran = run(&workspace, &["build", "doubled:check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let ran = run(&workspace, &["repro", "doubled/v1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "as near to torch's as a check asks\n"), "{ran:?}");
    workspace.write("kernels/doubled/v1.py", DOUBLED.replace("ctx.mark_dirty(x)", "pass"));
    let ran = run(&workspace, &["build", "doubled:check"]);
    assert!(ran.told.contains("doubled/v1:check: gradient of `x`: 60 of 60 elements are wrong"), "{}", ran.told);
    assert!(ran.told.contains("\nhint: a gradient flows into what `mutates` names, too"), "{}", ran.told);
    let ran = run(&workspace, &["repro", "doubled/v1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.starts_with("gradient of `x` differs from torch's in 60 of 60 elements"), "{ran:?}");
}

#[test]
fn an_input_of_autograd_that_is_marked_and_has_a_wrong_gradient_gets_no_hint_to_mark_it() {
    let workspace = Workspace::with_zygote(IN_PLACE);
    workspace.write("lib/reference.py", "def doubled(x):\n    return x.mul_(2.0)\n");
    workspace.write(
        "kernels/doubled/v1.py",
        DOUBLED.replace("flow.contiguous()", "double(flow.contiguous(), torch.empty_like(flow))"),
    );
    let ran = run(&workspace, &["build", "doubled:check"]);
    assert!(ran.told.contains("doubled/v1:check: gradient of `x`: "), "{}", ran.told);
    assert!(!ran.told.contains("mark_dirty"), "{}", ran.told);
}

const PADDED: &str = "\
version: 1
ops:
  padded:
    reference: lib/reference.py::padded
    inputs: {x: [M, N], lengths: {shape: [M], dtype: int32, init: {randint: [0, N+1]}}}
    outputs: {out: {unset: nan}}
    check: {sizes: {small: {M: 5, N: 12}}}
    variants: [v1]
";

#[test]
fn where_the_reference_has_nan_a_kernel_may_leave_anything_if_ops_yaml_says_so() {
    let workspace = Workspace::with_zygote(PADDED);
    workspace.write(
        "lib/reference.py",
        "import torch\n\n\ndef padded(x, lengths):\n    live = torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)\n    return torch.where(live, 2 * x, torch.nan)\n",
    );
    workspace.write(
        "kernels/padded/v1.py",
        "\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, lengths, out, N, sm, sn, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    live = at < tl.load(lengths + row)
    tl.store(out + row * N + at, 2 * tl.load(x + row * sm + at * sn, mask=live), mask=live)


def triton_padded(x, lengths):
    out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        block = triton.next_power_of_2(x.shape[1])
        kernel[(x.shape[0],)](x, lengths.contiguous(), out, x.shape[1], *x.stride(), BLOCK=block)
    return out
",
    );
    let ran = run(&workspace, &["build", "padded:check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let ran = run(&workspace, &["repro", "padded/v1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "as near to torch's as a check asks\n"), "{ran:?}");
    workspace.edit("ops.yaml", "{unset: nan}", "close");
    let ran = run(&workspace, &["build", "padded:check"]);
    assert!(ran.told.contains("expected nan"), "{}", ran.told);
    let ran = run(&workspace, &["repro", "padded/v1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn what_tritons_own_interpreter_lacks_is_said_of_a_case_alone() {
    let workspace = workspace();
    workspace.edit(
        "kernels/add/v1_baseline.py",
        "import triton.language as tl\n",
        "import triton.language as tl\nfrom triton.language.extra import libdevice\n",
    );
    let own = workspace.read("kernels/add/v1_baseline.py");
    let line = own.lines().find(|line| line.contains("tl.store(")).unwrap().to_owned();
    let (before, rest) = line.split_once(", ").unwrap();
    let (value, mask) = rest.rsplit_once(", mask").unwrap();
    let rounded = format!("{before}, libdevice.fabs({value}) * 0.0 + {value}, mask{mask}");
    workspace.write("kernels/add/v1_baseline.py", own.replace(&line, &rounded));
    let ran = run(&workspace, &["repro", "add/v1_baseline", "small/float32/0"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.told.ends_with(
            "Triton's own interpreter has no libdevice, which a check supplies: run this file on a device\n"
        ),
        "{ran:?}"
    );
    assert!(!ran.told.contains("Traceback"), "{ran:?}");
}

#[test]
fn a_probe_that_the_last_check_left_out_is_said_to_be_one() {
    let workspace = workspace();
    // Programs of few elements each are dear on the interpreter.
    workspace.edit(
        "kernels/add/v1_baseline.py",
        "1024),)](input, other, output, length, BLOCK=1024)",
        "8),)](input, other, output, length, BLOCK=8)",
    );
    let ran = run(&workspace, &["build", "add/v1_baseline:check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let left_out = workspace.document("add/v1_baseline:check", "evidence")["left_out"].clone();
    let left_out: Vec<String> = serde_json::from_value(left_out).unwrap();
    let count = if left_out.len() == 1 { "1 probe".to_owned() } else { format!("{} probes", left_out.len()) };
    assert!(ran.told.contains(&format!("\nnote: 1 check left out {count}, ")), "{}", ran.told);
    let ran = run(&workspace, &["repro", "add/v1_baseline", &left_out[0]]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.told.contains("note: the last check left this case out: "), "{ran:?}");
    let ran = run(&workspace, &["repro", "add/v1_baseline", "edge/strided/float32"]);
    assert!(ran.code == Some(0) && !ran.told.contains("left this case out"), "{ran:?}");
}
