#!/usr/bin/env bash
# What a run costs when it is recorded, and when it follows a schedule.
#
# usage: benches/replay-cost.sh [FIXTURE ...]      (default: shards, of more than 10,000 events)
#
# For each fixture: compiles it with and without instrumentation, records a failing run under PCT,
# takes the order of its turns as the failing schedule (`symbiosis replay --observed`: nothing has to
# be solved), checks that it reproduces the failure, and then runs all kinds of run in turn, ROUNDS
# times. Prints the median wall time of each kind and its ratio to the plain run of the instrumented
# binary.
#
# Environment: SYMBIOSIS (the binary; default: `symbiosis` in PATH), ROUNDS (21), LEVEL (-O1).
set -euo pipefail
ulimit -c 0
root=$(cd "$(dirname "$0")/.." && pwd)
symbiosis=${SYMBIOSIS:-symbiosis}
rounds=${ROUNDS:-21}
level=${LEVEL:--O1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs a command without its output and appends its wall time in microseconds to a file.
timed() {
    local file=$1 begin end
    shift
    begin=${EPOCHREALTIME/./}
    "$@" >/dev/null 2>&1 || true
    end=${EPOCHREALTIME/./}
    echo $((end - begin)) >>"$file"
}

median() {
    sort -n "$1" | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

cost() {
    local name=$1 source compiler clang directory kind
    directory=$work/$name
    mkdir "$directory"
    source=$(ls "$root/fixtures/programs/$name/"buggy.c*)
    compiler=cc clang=clang
    if [[ $source == *.cc ]]; then compiler=c++ clang=clang++; fi
    cd "$directory"
    "$clang" -g "$level" -pthread "$source" -o native
    "$symbiosis" "$compiler" -g "$level" -pthread "$source" -o program
    "$symbiosis" record -q --noise=pct --until-failure 5000 -o failing.trace -- ./program \
        >/dev/null 2>&1
    local events summary
    events=$("$symbiosis" check failing.trace | grep -o '[0-9]* events' || true)
    "$symbiosis" replay -q --observed --print-schedule --runs 20 failing.trace >schedule.text
    summary=$(grep '^reproduced' schedule.text | cut -d: -f1)
    # The answer's summary follows the schedule on standard output.
    grep -E '^(symbiosis-schedule|end |input |t[0-9.]+ [>!])' schedule.text >follow.text
    for ((round = 0; round < rounds; round++)); do
        timed native.times ./native
        timed plain.times ./program
        mkdir traced scheduled
        SYMBIOSIS_TRACE_DIR=$directory/traced timed recorded.times ./program
        SYMBIOSIS_SCHEDULE=$directory/follow.text timed followed.times ./program
        SYMBIOSIS_SCHEDULE=$directory/follow.text SYMBIOSIS_TRACE_DIR=$directory/scheduled \
            timed replayed.times ./program
        rm -r traced scheduled
    done
    local plain
    plain=$(median plain.times)
    echo "$name: $events, $level, median of $rounds; $summary"
    for kind in native plain recorded followed replayed; do
        awk -v kind="$kind" -v time="$(median "$kind.times")" -v plain="$plain" \
            'BEGIN { printf "  %-9s %8.2f ms  %5.2f\n", kind, time / 1000, time / plain }'
    done
}

if [[ $# -eq 0 ]]; then set -- shards; fi
for fixture in "$@"; do cost "$fixture"; done
