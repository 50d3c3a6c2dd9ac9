#!/usr/bin/env bash
# How much of a device's time the six ops take from nothing, by an earlier version of t2t and by this one, in turns on one machine: earlier, this, this, earlier.
# The variables are those of tests/gpu.sh. EARLIER is a folder with that version's `t2t`, `t2t_worker.abi3.so`, and its checkout as `root/`.
#
# usage: tests/growth.sh FOLDER EARLIER [TURNS]
# FOLDER gets a file of figures for each turn, as benches/sequential.py writes them, and its table beside it. A turn takes five to six minutes on an H200.
# TURNS are some of `1 2 3 4`, for machines that are lent for less; later calls with the same FOLDER add theirs.
set -euo pipefail
: "${T2T_BIN:?}" "${T2T_ROOT:?}" "${T2T_TEST_MODULE:?}"
mkdir -p "$1"
to="$(realpath "$1")" earlier="$(realpath "$2")"
python="${T2T_TEST_PYTHON:-python3}"

turn() {
    local name="$1" bin="$2" root="$3" module="$4"
    (
        cd "$root"
        export T2T_BIN="$bin" T2T_ROOT="$root" T2T_HARNESS="$root/python" PYTHONPATH="$module"
        "$python" benches/sequential.py "$root" --only-t2t --out "$to/$name.json" > "$to/$name.txt" 2>&1
    ) || echo "$name: exit code $?"
    echo "$name"
    tail -n 12 "$to/$name.txt"
}

for number in ${3:-1 2 3 4}; do
    case "$number" in
        1 | 4) turn "$number-earlier" "$earlier/t2t" "$earlier/root" "$earlier" ;;
        2 | 3) turn "$number-this" "$T2T_BIN" "$T2T_ROOT" "$T2T_TEST_MODULE" ;;
    esac
done
