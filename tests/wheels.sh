#!/usr/bin/env bash
# Builds the two wheels that an installation of t2t takes, for Linux with glibc 2.28 or later, and tries them in bare environments of each Python:
# no Rust, no network, no package beside the wheels. Needs a Rust toolchain, uv, and the Pythons.
#
# usage: tests/wheels.sh FOLDER [PYTHON]...
# FOLDER gets the wheels. Without PYTHON those of 3.10 to 3.13 are tried that are on the path. maturin refuses a wheel with a symbol of a later glibc.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
to="$(realpath "$1")"
shift
# zig links against the older glibc.
for manifest in crates/worker/Cargo.toml Cargo.toml; do
    uvx --with ziglang==0.17.1 maturin@1.16.0 build --release --zig --compatibility manylinux_2_28 --out "$to" --manifest-path "$manifest"
done
pythons=("$@")
[ $# -gt 0 ] || for version in 3.10 3.11 3.12 3.13; do
    if command -v "python$version" >/dev/null; then pythons+=("python$version"); fi
done
[ ${#pythons[@]} -gt 0 ] || { echo "no Python to try the wheels in" >&2; exit 2; }
for python in "${pythons[@]}"; do
    room="$(mktemp -d)"
    "$python" -m venv "$room/venv"
    "$room/venv/bin/pip" install --quiet --no-index --no-deps "$to"/t2t-*.whl "$to"/t2t_worker-*.whl
    # From an empty folder, with an environment that knows nothing of this repository.
    (
        cd "$room"
        bare=(env -i HOME="$room" PATH="$room/venv/bin:/usr/bin:/bin")
        "${bare[@]}" t2t --version
        "${bare[@]}" t2t add softmax --write
        test -s kernels/softmax/v4_optimized.py
        "${bare[@]}" python -c 'import t2t, t2t_worker, sys; print("python", sys.version.split()[0], "imports", t2t.__name__, "and", t2t_worker.__name__)'
    )
    rm -rf "$room"
done
