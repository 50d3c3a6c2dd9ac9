#!/usr/bin/env bash
# Builds examples/cuda from nothing on a CUDA device with an nvcc, beside further Triton kernels of this repository, and says which is how fast.
# The variables are those of tests/gpu.sh; with T2T_LIMIT the build is interrupted after so many seconds, and the table has what was measured by then. Nothing is installed: nvcc is that of the Python's environment, of $CUDA_HOME or of /usr/local/cuda.
#
# usage: tests/cuda.sh FOLDER [direct | build [OP…]]     without a part both, without ops all of them
# FOLDER gets direct.log (each kernel called without t2t), sanitizer-TOOL.log (the same under compute-sanitizer, where there is one that takes the device),
# build.log, table.txt, figures.json (checks, figures and resources), logs.tgz (logs/) and export.tar (the cache).
# Ends with 1 where a kernel is wrong or a variant is rejected.
set -euo pipefail
: "${T2T_BIN:?}" "${T2T_ROOT:?}"
[ -e /proc/driver/nvidia/gpus ] || { echo "no CUDA device: nothing was run" >&2; exit 2; }
export T2T_PYTHON="${T2T_TEST_PYTHON:-$(command -v python3)}"
[ -z "${T2T_TEST_MODULE:-}" ] || export PYTHONPATH="$T2T_TEST_MODULE"
mkdir -p "$1"
to="$(realpath "$1")"
part="${2:-both}"
shift "$(($# < 2 ? $# : 2))"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
code=0

# The operators alone: a kernel that waits for ever or writes elsewhere is found here, with its name.
direct() {
    PYTHONPATH="$T2T_ROOT/python/t2t_harness/cuda:$T2T_ROOT/tests/python" timeout "$1" "${@:2}" "$T2T_PYTHON" -m cuda_host.cases "$T2T_ROOT/examples/cuda"
}
if [ "$part" != build ]; then
    direct 120 > "$to/direct.log" 2>&1 || code=1
    cat "$to/direct.log"
    sanitizer="$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)"
    if [ -n "$sanitizer" ]; then
        for tool in memcheck racecheck; do
            options=(--tool "$tool" --error-exitcode 3)
            # The driver ends the list of a kernel's parameters by CUDA_ERROR_INVALID_VALUE, which memcheck counts for each kernel. `t2t_cuda` raises all others.
            [ "$tool" != memcheck ] || options+=(--report-api-errors no)
            # Where the machine is emulated the tool may refuse the device, which says nothing of kernels.
            direct 150 "$sanitizer" "${options[@]}" > "$to/sanitizer-$tool.log" 2>&1 ||
                grep -q "Device not supported" "$to/sanitizer-$tool.log" || code=1
            echo "compute-sanitizer $tool: $(tail -n 1 "$to/sanitizer-$tool.log")"
        done
    fi
fi
[ "$part" != direct ] || exit "$code"

# A copy, with Triton's kernels of this repository beside those of the example.
cp -r "$T2T_ROOT/examples/cuda/." "$work"
for op in softmax layernorm gelu matmul; do
    cp "$T2T_ROOT/kernels/$op/"*.py "$work/kernels/$op"
done
cp "$T2T_ROOT/examples/gradients/kernels/softmax/rows.py" "$work/kernels/softmax"
"$T2T_PYTHON" - "$work/ops.yaml" <<'OPS'
import sys

best = {op: ["- v4_optimized"] for op in ("softmax", "layernorm", "gelu", "matmul")}
rows = "- {name: rows, path: kernels/softmax/rows.py, entry: get_triton_softmax}"
others = {"softmax_backward": [rows], "softmax_columns": [rows]}
made, op = [], ""
for line in open(sys.argv[1]):
    made.append(line)
    if line.startswith("  ") and not line.startswith("   "):
        op = line.split(":")[0].strip()
    if line.strip() == "variants:":
        made += [f"      {variant}\n" for variant in {**best, **others}.get(op, [])]
open(sys.argv[1], "w").writelines(made)
OPS
cd "$work"
timeout --signal=INT --kill-after=20 "${T2T_LIMIT:-3600}" "$T2T_BIN" build "$@" > "$to/build.log" 2>&1 || code=1
tail -n 15 "$to/build.log"

"$T2T_PYTHON" - "$T2T_BIN" "$to" <<'TABLE'
"""Makes the table: of each variant the verdict, ms at the largest size, the host's us a call, and how many times as fast it is as torch, torch.compile and the fastest Triton variant."""
import json
import re
import subprocess
import sys

program, folder = sys.argv[1:]


def document(target, name):
    ran = subprocess.run([program, "artifact", target, name], capture_output=True, text=True)
    return json.loads(ran.stdout) if ran.returncode == 0 and ran.stdout.startswith("{") else None


ops, op = {}, ""
for line in open("ops.yaml"):
    if found := re.match(r"  (\w+):", line):
        op = found[1]
        ops[op] = {}
    elif found := re.match(r"      - (?:\{name: )?(\w+)", line):
        ops[op][found[1]] = "cuda" if "lang: cuda" in line else "triton"
kept = {}
lines = [("op", "pass", "variant", "verdict", "ms", "host us", "÷torch", "÷compile", "÷triton", "registers", "spills")]
for op, variants in ops.items():
    if document(f"{op}:analyze", "analysis") is None:
        continue
    baseline = document(f"{op}:baseline", "baseline")
    times = {}
    for name in variants:
        bench = document(f"{op}/{name}:bench", "bench")
        check = document(f"{op}/{name}:check", "verdict") or {}
        resources = document(f"{op}/{name}:compile", "resources") or {}
        kept[f"{op}/{name}"] = {"bench": bench, "verdict": check.get("verdict"), "resources": resources}
        times[name] = (bench["sizes"]["large"].get("variant") or {}).get("median") if bench else None
    large = baseline["sizes"]["large"] if baseline else {}
    kept[f"{op}:baseline"] = baseline
    triton = min((times[name] for name in variants if variants[name] == "triton" and times[name]), default=None)
    for name, taken in times.items():
        facts = kept[f"{op}/{name}"]
        kernels = facts["resources"].get("kernels", [])
        rivals = [(large.get(rival) or {}).get("median") for rival in ("torch", "torch.compile")] + [triton]
        ratios = [f"{rival / taken:.2f}" if rival and taken else "–" for rival in rivals]
        passes = facts["bench"]["protocol"].get("passes", "forward") if facts["bench"] else "–"
        most = max((kernel["registers"] or 0 for kernel in kernels), default=0)
        spills = sum(kernel["spills"] or 0 for kernel in kernels)
        took = f"{taken:.4f}" if taken else "–"
        host_us = (facts["bench"] or {}).get("host_us")
        host = f"{host_us:.1f}" if host_us is not None else "–"
        lines.append((op, passes, name, facts["verdict"] or "rejected", took, host, *ratios, str(most), str(spills)))
widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
table = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
print(table)
open(f"{folder}/table.txt", "w").write(table + "\n")
json.dump(kept, open(f"{folder}/figures.json", "w"), indent=1)
TABLE
tar czf "$to/logs.tgz" logs
"$T2T_BIN" cache export "$to/export.tar" > /dev/null || code=1
exit "$code"
