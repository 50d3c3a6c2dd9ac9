#!/usr/bin/env bash
# The trial: kills, damages, losses of power, commands side by side, faults of nodes, fuzz, limits, clocks, and probes of the sandbox as each user that there is. Each kind goes on for as
# long as it is told; `cargo test` runs the same tests a few rounds each. At the end there is a line for each kind, of what its tests counted.
# usage: tests/soak.sh [--minutes N]
# N (or SOAK_MINUTES; 60) is how long the fuzz takes. Beside it kills, damages, power, commands side by side and nodes of a cluster take a quarter of N each, and the rest as long as it takes.
# `--minutes 1` tries it out. What each kind said is in target/soak. The exit code is 1 where anything was wrong, or a kind counted nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes="${SOAK_MINUTES:-60}"
case "${1:-}" in
    --minutes) minutes="${2:?--minutes takes a number}" ;;
    "") ;;
    *) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
esac
[[ "$minutes" =~ ^[1-9][0-9]*$ ]] || { echo "error: not a number of minutes: $minutes" >&2; exit 2; }

cargo build --bin t2t
# Returns the binary of a target of tests.
binary() { cargo test --test "$1" --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*Executable.*(\(.*\))$/\1/p'; }
tests="$(binary it)"
core="$(binary core)"
python="${T2T_TEST_PYTHON:-.venv/bin/python}"
said="target/soak"
rm -rf "$said" && mkdir -p "$said"
left_out=()
is_bad=0

# Runs all tests of a kind at once, until its time is over, and is 1 where anything was wrong: KIND SECONDS COMMAND...
kind() {
    local name="$1" seconds="$2" begin="$SECONDS" code=0
    shift 2
    T2T_SOAK_SECONDS="$seconds" "$@" --nocapture --test-threads=64 >"$said/$name" 2>&1 || code=$?
    echo "$name: $((SECONDS - begin)) s, $(sed -n 's/^test result: //p' "$said/$name" | cut -d';' -f1-2)"
    if [[ $code != 0 ]]; then
        grep -a 'FAILED$\|panicked at\|^error' "$said/$name" | sed 's/^/    /' || echo "    exit code $code: see $said/$name"
        return 1
    fi
}

quarter=$((minutes * 15))
set -m # The fuzz in a process group of its own, so that all of it can be killed.
kind fuzz $((minutes * 60)) "$core" fuzz:: &
fuzz=$!
set +m
trap 'kill -- "-$fuzz" 2>/dev/null || true' EXIT
kind kills "$quarter" "$tests" kills:: cleaned::a_killed || is_bad=1
kind damages "$quarter" "$tests" damage:: --include-ignored || is_bad=1
kind power "$quarter" "$tests" power:: || is_bad=1
kind together "$quarter" "$tests" together:: cleaned::who_looks || is_bad=1
kind clusters "$quarter" "$tests" clusters::faults || is_bad=1
wait "$fuzz" || is_bad=1
kind limits 1 "$tests" limits:: || is_bad=1
if command -v cc >/dev/null; then
    kind clocks 1 "$tests" clock:: faults::a_clock --include-ignored || is_bad=1
else
    left_out+=("clocks: there is no C compiler \`cc\`")
fi

# The sandbox, as every user that there is. What the worker's tests need, readable by another user.
walls=(probes:: worker_ secrets::)
kind walls-here 1 "$tests" "${walls[@]}" || is_bad=1
kind kernels-here 1 "$tests" bad_kernels:: || is_bad=1
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
# A temporary folder of root's may lie where nobody else comes.
user=(env)
# Where the kernel gives no namespaces a child has one wall less. A container's root, who has one user alone, cannot try what takes two.
apart=(unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh)
if [[ $EUID == 0 ]]; then
    user=(setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups --)
else
    left_out+=("probes and bad kernels as root: this is not root")
fi
chmod 755 "$folder"
mkdir -m 777 "$folder/scratch"
cp -r "$tests" target/debug/t2t tests "$folder/"
"$python" tests/portable_python.py "$folder/python"
chmod -R a+rX "$folder"
as_user=("${user[@]}" env -i -C "$folder/scratch" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" PATH="$folder/python/bin:/usr/bin:/bin" HOME="$folder/scratch"
    TMPDIR="$folder/scratch" T2T_ROOT="$folder" T2T_BIN="$folder/t2t" T2T_TEST_PYTHON="$folder/python/bin/python" T2T_TEST_MODULE="$folder/python/module"
    T2T_SOAK_SECONDS=1)
copy="$folder/$(basename "$tests")"
if [[ $EUID != 0 ]]; then
    :
elif ! "${as_user[@]}" "$folder/python/bin/python" -c 'import t2t_worker' 2>"$said/ordinary"; then
    left_out+=("probes as an ordinary user: \`nobody\` cannot run a copy of the interpreter: $(tail -1 "$said/ordinary")")
else
    kind walls-ordinary 1 "${as_user[@]}" "$copy" "${walls[@]}" || is_bad=1
    if "${as_user[@]}" "$folder/python/bin/python" -c 'import torch, triton' 2>"$said/packages"; then
        kind kernels-ordinary 1 "${as_user[@]}" "$copy" bad_kernels:: || is_bad=1
    else
        left_out+=("bad kernels as an ordinary user: \`nobody\` may not read the packages: $(tail -1 "$said/packages")")
    fi
fi
if "${as_user[@]}" "${apart[@]}" true 2>"$said/apart"; then
    kind walls-apart 1 "${as_user[@]}" "${apart[@]}" "$copy" "${walls[@]::2}" || is_bad=1
else
    left_out+=("probes without namespaces: $(tail -1 "$said/apart")")
fi

echo
# What the tests counted, added up: `soak: KIND 3 DONE, 0 wrong`.
cat "$said"/* | grep -ao 'soak: [a-z ]* [0-9]* [a-z ]*, [01] wrong' | sed -E 's/^soak: ([a-z ]*) ([0-9]+) ([a-z ]+), ([01]) wrong$/\1\t\2\t\3\t\4/' |
    awk -F'\t' '{ done[$1] += $2; word[$1] = $3; wrong[$1] += $4 }
        END { for (kind in done) { print kind ": " done[kind] " " word[kind] ", " wrong[kind] " wrong"; if (!done[kind]) empty = 1 } exit empty }' |
    sort || is_bad=1
for what in ${left_out[@]+"${left_out[@]}"}; do
    echo "not run: $what"
done
failed="$(cat "$said"/* | sed -n 's/^test result: .* \([0-9]*\) failed;.*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')"
echo "failed tests: $failed"
exit "$is_bad"
