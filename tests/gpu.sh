#!/usr/bin/env bash
# Runs the tests that need a CUDA device, from carried binaries: the machine needs no Rust, only a Python with torch and triton.
# Where it has several devices, one or all are used, as the test needs it; CUDA_VISIBLE_DEVICES is honored.
#
#   T2T_BIN          the t2t binary
#   T2T_TESTS        the test binary: `cargo test --no-run` names it (tests/it/main.rs)
#   T2T_ROOT         a copy of the repository
#   T2T_TEST_MODULE  the folder with t2t_worker.abi3.so, where the Python lacks it
#   T2T_TEST_THREADS how many tests run at once, four a device where it is not set: more wait so long for a device that time limits end what is right
set -euo pipefail
: "${T2T_BIN:?}" "${T2T_TESTS:?}" "${T2T_ROOT:?}"
export T2T_BIN T2T_ROOT T2T_TEST_PYTHON="${T2T_TEST_PYTHON:-$(command -v python3)}"
[ -e /proc/driver/nvidia/gpus ] || { echo "no CUDA device: nothing was run" >&2; exit 2; }
# Tests that run at once take turns on a device by the machine's locks. The one that holds a device against all others runs alone.
alone=gpu::two_workspaces
threads="${T2T_TEST_THREADS:-$((4 * $("$T2T_TEST_PYTHON" -c 'import torch; print(torch.cuda.device_count())')))}"
code=0
"$T2T_TESTS" gpu:: --ignored --show-output --test-threads "$threads" --skip "$alone" || code=$?
"$T2T_TESTS" "$alone" --ignored --show-output || code=$?
exit "$code"
