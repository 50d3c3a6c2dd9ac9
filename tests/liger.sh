#!/usr/bin/env bash
# Adopts Liger-Kernel 0.8.5 from PyPI: checks all that tests/liger declares of it on the interpreter, prints a table, and ends with 1 where a row is not what
# tests/liger/expected.json says. It takes some minutes, after `uv sync`.
# usage: tests/liger.sh [PYTHON]
# PYTHON is an interpreter that has torch, Triton and liger-kernel; without one a temporary environment is made over that of this clone. $T2T names another t2t.
set -euo pipefail
cd "$(dirname "$0")/.."
t2t="$(realpath "${T2T:-.venv/bin/t2t}")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
site='import sysconfig; print(sysconfig.get_path("purelib"))'
if [ $# -gt 0 ]; then
    python="$(command -v "$1")"
else
    python="$work/environment/bin/python"
    .venv/bin/python -m venv --without-pip "$work/environment"
    .venv/bin/python -c "$site" > "$("$python" -c "$site")/above.pth"
    uv pip install -q --link-mode copy --no-deps liger-kernel==0.8.5 --python "$python"
fi
cp -r tests/liger "$work/workspace"
tests="$PWD/tests/liger"
cd "$work/workspace"
export T2T_PYTHON="$python"
# These three are declared by t2t itself.
for kernel in softmax::LigerSoftmaxFunction layer_norm::LigerLayerNormFunction rms_norm::LigerRMSNormFunction; do
    "$t2t" --device cpu -q adopt "liger_kernel.ops.$kernel.apply" --as "adopted_${kernel%%::*}" --torch "${kernel%%::*}" || true
done
"$t2t" --device cpu build --phase check --junit "$work/checks.xml" || true
package="$("$python" -c "$site")/liger_kernel/ops"
"$python" "$tests/table.py" ops.yaml "$work/checks.xml" "$tests/expected.json" "$package"
