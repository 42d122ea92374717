#!/usr/bin/env bash
# How stable is replay? Records a failing run of every fixture at every level, replays its failing
# schedule and its first alternate RUNS times each (100 by default), and prints a table: in so many
# runs the claim came true, with the machine as it is, on one core, and with two busy loops beside.
#
#   benches/replay-stability.sh [FIXTURE...]
#
# SYMBIOSIS names the binary (target/release/symbiosis by default, which is built), LEVELS the
# optimisation levels.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
runs=${RUNS:-100}
levels=${LEVELS:--O0 -O1 -O2}
if [ -z "${SYMBIOSIS:-}" ]; then
    cargo build --release --quiet --bin symbiosis
    SYMBIOSIS=${CARGO_TARGET_DIR:-$root/target}/release/symbiosis
fi
scratch=$(mktemp -d)
loops=()
stop_loops() {
    for loop in "${loops[@]}"; do kill "$loop" 2>/dev/null || true; done
    loops=()
}
trap 'stop_loops; rm -rf "$scratch"' EXIT
start_loops() {
    for _ in 1 2; do
        (while :; do :; done) &
        loops+=($!)
    done
}

failed=0
# Prints `K of N` of a replay, or why there is none.
replayed() { # trace, prefix of the command, more arguments
    local trace=$1 prefix=$2 out
    shift 2
    # shellcheck disable=SC2086 # the prefix is several words
    out=$($prefix "$SYMBIOSIS" replay "$trace" --runs "$runs" --quiet "$@" 2>&1) || true
    local cell
    cell=$(sed -nE 's/^(reproduced|confirmed) ([0-9]+ of [0-9]+): .*/\2/p' <<<"$out" | head -n 1)
    printf '%s' "${cell:-$(tail -n 1 <<<"$out")}"
}

row() { # name, level, trace
    local cells=() cell
    for condition in normal one-core busy; do
        local prefix=""
        [ $condition = one-core ] && prefix="taskset -c 0"
        [ $condition = busy ] && start_loops
        for arguments in "" "--alternate 0"; do
            if [ "$1" = always ] && [ -n "$arguments" ]; then
                cells+=("-")
                continue
            fi
            # shellcheck disable=SC2086
            cell=$(replayed "$3" "$prefix" $arguments)
            [ "$cell" = "$runs of $runs" ] || failed=1
            cells+=("$cell")
        done
        stop_loops
    done
    printf '| %s | %s |' "$1" "$2"
    printf ' %s |' "${cells[@]}"
    printf '\n'
}

echo "| fixture | level | failing | alternate | failing, one core | alternate, one core | failing, two busy loops | alternate, two busy loops |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for folder in fixtures/programs/*/; do
        # Too long to be solved in a bench's time.
        [ "$(basename "$folder")" = shards ] || names+=("$(basename "$folder")")
    done
fi
for name in "${names[@]}"; do
    source=$(ls fixtures/programs/"$name"/buggy.c* | head -n 1)
    compiler=cc
    [ "${source##*.}" = cc ] && compiler=c++
    for level in $levels; do
        program=$scratch/$name$level
        "$SYMBIOSIS" $compiler -g "$level" -pthread "$source" -o "$program"
        noise=""
        grep -q '//~ RARE: noise' "$source" && noise=--noise
        # shellcheck disable=SC2086 # no word when there is no noise
        if ! "$SYMBIOSIS" record $noise --until-failure 3000 --timeout 20 --quiet \
            -o "$program.trace" -- "$program" >/dev/null 2>&1; then
            echo "| $name | $level | no failing run |"
            failed=1
            continue
        fi
        row "$name" "$level" "$program.trace"
    done
done
exit $failed
