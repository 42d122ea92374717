#!/usr/bin/env bash
# What recording costs: whole programs of about a second of work, against the same programs native
# and under ThreadSanitizer.
#
# usage: benches/record-overhead.sh [PROGRAM ...]      (default: all of benches/programs)
#
# Each program is built three times at -O2: native, with -fsanitize=thread, and with `symbiosis cc`.
# The three take turns, ROUNDS times; each round's times are divided by the native time of the same
# round, and medians of these ratios are printed, for processor time (user and system, whole process)
# and for wall time. The recorded program writes its raw trace directory, as under `symbiosis record`;
# sealing, which `record` does after the program has ended, is not part of it. The sizes are those of
# the raw streams of the last round, before compression.
#
# Environment: SYMBIOSIS (the binary; default: `symbiosis` in PATH), ROUNDS (5), LEVEL (-O2), TRACES
# (a directory to write the traces in; default: a temporary one), KEEP (a directory to leave the
# programs in).
set -euo pipefail
ulimit -c 0
root=$(cd "$(dirname "$0")/.." && pwd)
symbiosis=${SYMBIOSIS:-symbiosis}
rounds=${ROUNDS:-5}
level=${LEVEL:--O2}
work=$(mktemp -d)
traces=${TRACES:-$work}
trap 'rm -rf "$work" "$traces/overhead.raw"' EXIT

# shellcheck source=benches/overhead-lib.sh
. "$root/benches/overhead-lib.sh"

build() {
    local source=$1 to=$2 clang=clang compiler=cc
    if [[ $source == *.cc ]]; then clang="clang++ -std=c++17" compiler="c++ -std=c++17"; fi
    # shellcheck disable=SC2086 # The standard is an option of its own.
    {
        $clang -g "$level" -pthread "$source" -o "$to/native"
        $clang -g "$level" -pthread -fsanitize=thread "$source" -o "$to/tsan"
        "$symbiosis" $compiler -g "$level" -pthread "$source" -o "$to/ours"
    }
}

overhead() {
    local name=$1 source directory sizes
    source=$(ls "$root/benches/programs/$name".c*)
    directory=${KEEP:-$work}/$name
    mkdir -p "$directory"
    build "$source" "$directory"
    "$directory/native" >/dev/null
    : >"$directory/times"
    for ((round = 0; round < rounds; round++)); do
        rm -rf "$traces/overhead.raw"
        mkdir "$traces/overhead.raw"
        {
            "$work/measure" "$directory/native"
            SYMBIOSIS_TRACE_DIR=$traces/overhead.raw "$work/measure" "$directory/ours"
            "$work/measure" "$directory/tsan"
        } | tr '\n' ' ' >>"$directory/times"
        echo >>"$directory/times"
    done
    sizes=$(stream_bytes "$traces/overhead.raw")
    overhead_row "$name" "$directory/times" "$sizes"
}

if [[ $# -eq 0 ]]; then
    for source in "$root"/benches/programs/*.c*; do
        source=${source##*/}
        set -- "$@" "${source%.*}"
    done
fi
overhead_header
for program in "$@"; do overhead "$program"; done
