#!/usr/bin/env bash
# Goes through rounds of `t2t improve` on a CUDA device, with a scripted author, and says what they came to and what they took.
# The author's kernels of torch.add are in turn slower, as fast, wrong, and faster than the one that is there. Ends with 1 where a round ends otherwise than it has to, or where
# screening a candidate that loses took more than three seconds of the device.
#
#   T2T_BIN          the t2t binary
#   T2T_ROOT         a copy of the repository
#   T2T_PYTHON       a Python with torch and triton, where python3 has none
#   T2T_TEST_MODULE  the folder with t2t_worker.abi3.so, where the Python lacks it
#
# usage: tests/improve.sh [FOLDER]     FOLDER gets the rounds, their picture, the log and what the author was asked
set -euo pipefail
: "${T2T_BIN:?}" "${T2T_ROOT:?}"
export T2T_PYTHON="${T2T_PYTHON:-$(command -v python3)}"
[ -z "${T2T_TEST_MODULE:-}" ] || export PYTHONPATH="$T2T_TEST_MODULE"
to="${1:-}"
[ -z "$to" ] || { mkdir -p "$to"; to="$(realpath "$to")"; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kernels/add" "$work/authors"
cat > "$work/ops.yaml" <<'OPS'
version: 1
generators:
  agent: {command: [./authors/agent]}
defaults:
  bench: {sizes: {small: [512, 512], large: [8192, 4096]}}
ops:
  add:
    torch: torch.add
    inputs: {input: [M, N], other: [M, N]}
    kwargs: {alpha: 0.5}
    variants: [v1]
OPS
right="$T2T_ROOT/tests/bad_kernels/right.py"
with_block() { sed "s/, 64)/, $1)/; s/BLOCK_SIZE=64/BLOCK_SIZE=$1/" "$right"; }
with_block 128 > "$work/kernels/add/v1.py"
with_block 16 > "$work/authors/1.py"
with_block 128 | sed 's/offsets/places/g' > "$work/authors/2.py"
with_block 1024 | sed 's/alpha \* y/y/' > "$work/authors/3.py"
with_block 1024 > "$work/authors/4.py"
cat > "$work/authors/agent" <<'AGENT'
#!/bin/sh
here=$(dirname "$0")
round=$(sed -n 's/^  "attempt": \([0-9]*\),$/\1/p' request.json)
cp prompt.md "$here/prompt$round.md"
cp "$here/$round.py" "$T2T_FILE"
AGENT
chmod +x "$work/authors/agent"
cd "$work"
"$T2T_BIN" improve add/v1 --generator agent --rounds 4 --overwrite
"$T2T_BIN" build
if [ -n "$to" ]; then
    cp -r assets/rounds logs authors "$to"
fi
python3 - <<'CHECK'
import json
import sys

rounds = json.load(open("assets/rounds/add.json"))["variants"]["v1"]
wanted = [["slower"], ["no-gain", "unclear", "not-better"], ["rejected"], ["better"]]
wrong = 0
for one, ends in zip(rounds, wanted):
    screened = one["screened"] or {}
    seconds = screened.get("device_s", 0.0)
    is_right = one["end"] in ends and (one["end"] in ("better", "not-better") or seconds <= 3.0)
    wrong += not is_right
    figures = {name: screened.get(name) for name in ("pairs", "why", "ratio", "interval", "device_s")}
    print("ok   " if is_right else "WRONG", one["round"], one["end"], f"{one['seconds']:.1f} s in all", figures)
sys.exit(1 if wrong or len(rounds) != len(wanted) else 0)
CHECK
