#!/bin/sh
# What an avoidance rule costs, and what it does: for each program (default: bank ring lazy_table
# courier averages of fixtures/programs) the failing run is recorded, the first repair's rule is
# written by `symbiosis fix --avoid`, and the program as it is runs without and with it.
#
#   benches/avoid.sh [PROGRAM...]
#
# SYMBIOSIS (default target/release/symbiosis) is the tool, RUNS (200) the number of noisy runs,
# PLAIN (100) the number of plain runs that are timed. Prints a Markdown table: failing runs under
# noise without and with the rule; seconds of all plain runs without and with it, the faster of
# three goes each, and their ratio.
set -eu
repository=$(cd "$(dirname "$0")/.." && pwd)
tool=${SYMBIOSIS:-$repository/target/release/symbiosis}
runs=${RUNS:-200}
plain=${PLAIN:-100}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
[ $# -gt 0 ] || set -- bank ring lazy_table courier averages

failures() { # the rule or nothing
    failed=0
    seed=1
    while [ "$seed" -le "$runs" ]; do
        SYMBIOSIS_AVOID=$1 SYMBIOSIS_NOISE=random,$seed,20000,200,100000 ./program >out 2>err || failed=$((failed + 1))
        grep -q 'let go too early' err && early=$((early + 1))
        seed=$((seed + 1))
    done
    echo "$failed"
}

seconds() { # the rule or nothing
    best=
    for _ in 1 2 3; do
        begin=$(date +%s%N)
        run=1
        while [ "$run" -le "$plain" ]; do
            SYMBIOSIS_AVOID=$1 ./program >out 2>&1 || true
            run=$((run + 1))
        done
        took=$(($(date +%s%N) - begin))
        if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
    done
    echo "$best"
}

echo "| program | failing of $runs without | with the rule | seconds for $plain runs without | with | ratio |"
echo "| --- | --- | --- | --- | --- | --- |"
for name in "$@"; do
    rm -rf failing.trace program* rule
    folder=$repository/fixtures/programs/$name
    if [ -f "$folder/buggy.cc" ]; then
        cp "$folder/buggy.cc" program.cc
        "$tool" c++ -g -O1 -pthread program.cc -o program
    else
        cp "$folder/buggy.c" program.c
        "$tool" cc -g -O1 -pthread program.c -o program
    fi
    "$tool" record --noise --until-failure 3000 -o failing.trace -- ./program >out 2>&1
    "$tool" fix failing.trace --repairs 1 --runs 5 --avoid rule >fix.txt
    early=0
    without=$(failures "")
    with=$(failures rule)
    before=$(seconds "")
    after=$(seconds rule)
    echo "$name $without $with $before $after" | awk '{
        printf "| `%s` | %d | %d | %.2f | %.2f | %.2f |\n", $1, $2, $3, $4 / 1e9, $5 / 1e9, $5 / $4 }'
done
