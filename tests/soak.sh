#!/usr/bin/env bash
# The tests that kill, at as many moments as are asked for (200 of each kind), and a disk that is really full; and the clock
# set back while t2t runs, which takes a C compiler. They take a quarter of an hour; `cargo test` draws 20.
# usage: tests/soak.sh [MOMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."
export T2T_SOAK="${1:-200}"
exec cargo test --test it -- kills:: damage::a_disk_that_is_really_full clock:: --include-ignored
