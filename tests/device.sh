#!/usr/bin/env bash
# What a lent device is for: builds the six ops from nothing, publishes the results, and runs the tests that need a device, from carried binaries.
# The variables are those of tests/gpu.sh; the machine needs no Rust, only a Python with torch and triton.
#
# usage: tests/device.sh FOLDER [publish | tests]
# FOLDER gets results.tgz (assets/results), export.tar (the cache), logs.tgz and the output of both parts. Without a second argument both are run; on one H200
# the first takes five minutes, the second 15, and on two of them 8. Afterwards, where the commit is checked out: unpack results.tgz there, commit, `t2t cache import export.tar`,
# `t2t publish --as-device nvidia-h200`, commit, and see that `t2t build --require-cached --as-device nvidia-h200` says fresh.
set -euo pipefail
: "${T2T_BIN:?}" "${T2T_TESTS:?}" "${T2T_ROOT:?}"
to="$(realpath "$1")"
part="${2:-both}"
code=0
cd "$T2T_ROOT"
if [ "$part" != tests ]; then
    "$T2T_BIN" build > "$to/build.log" 2>&1 || code=$?
    tail -n 12 "$to/build.log"
    "$T2T_BIN" publish || code=$?
    "$T2T_BIN" cache export "$to/export.tar" || code=$?
    tar czf "$to/results.tgz" assets/results
    tar czf "$to/logs.tgz" logs
fi
if [ "$part" != publish ]; then
    bash tests/gpu.sh > "$to/gpu.log" 2>&1 || code=$?
    grep -E '^test |deserves|is seen' "$to/gpu.log" || true
fi
exit "$code"
