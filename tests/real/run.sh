#!/usr/bin/env bash
# Real programs, as Debian has them: builds each with its own build system and `symbiosis cc`, runs
# its own tests, records a run, and lets `symbiosis check` walk every thread of it.
#
#   tests/real/run.sh                 all projects
#   tests/real/run.sh pigz zstd       these
#   tests/real/run.sh --quick         a few that take minutes together
#   tests/real/run.sh --no-tests P    without the projects' own tests
#
# The last thing printed, on standard output, is a table for docs/real-programs.md; its times are
# processor time, which other work on the machine changes little. The status is 0
# when every project built, passed its tests, lost no thread, and has less than one gap in 10,000
# instructions; 77 when the sources cannot be got, for want of a network, say; else 1.
#
# A project is a file in projects/ that sets
#   source      Debian's name of the source package
#   packages    Debian packages that building and testing it need
#   quick       "yes" when it belongs to --quick
# and defines, each run in the unpacked source with CC and CXX exported,
#   build       builds it
#   own_tests   runs its own tests
#   runs        calls `recorded NAME COMMAND...` for each run to record: COMMAND has to pass.
#               `input FILE BYTES` makes an input.
#   load        where its recording is to be measured (benches/real-overhead.sh): calls
#               `timed COMMAND...` with a second or two of work for several threads;
#               `binary FILE BYTES` makes an input of a program's bytes
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/real/lib.sh
. "$root/tests/real/lib.sh"

quick=no
tests=yes
names=()
for argument in "$@"; do
    case $argument in
        --quick) quick=yes ;;
        --no-tests) tests=no ;;
        -*) fail "$argument is unknown: --quick, --no-tests, or names of files in tests/real/projects" ;;
        *) names+=("$argument") ;;
    esac
done
if [ ${#names[@]} -eq 0 ]; then
    for file in "$root"/tests/real/projects/*.sh; do
        if [ "$quick" = no ] || grep -q '^quick=yes' "$file"; then
            names+=("$(basename "$file" .sh)")
        fi
    done
fi
for name in "${names[@]}"; do
    [ -e "$root/tests/real/projects/$name.sh" ] || fail "there is no tests/real/projects/$name.sh"
done

# A quick run is part of the tests, which build without optimisation.
if [ "$quick" = yes ]; then find_symbiosis dev; else find_symbiosis release; fi
table=$work/table
bad=0
: >"$table"

input() { [ -e "$place/$1" ] || make_input "$place/$1" "$2"; }

# Records a passing run, checks it, and adds a line to the table.
recorded() { # name command...
    local run=$1 trace=$place/$1.trace check=$place/$1.check record_time check_time status=0
    local name=$project
    shift
    rm -rf "$trace"
    if ! logged "$place/$run.record.log" "$symbiosis" record --timeout 120 -o "$trace" -- "$@"; then
        say "$name $run: the recorded run failed (see $place/$run.record.log)"
        bad=1
        return 0
    fi
    record_time=$seconds
    logged "$check" timeout 600 "$symbiosis" check "$trace" || status=$?
    check_time=$seconds
    local instructions gaps lost
    instructions=$(instructions_of "$check")
    gaps=$(gaps_of "$check")
    lost=$(lost_of "$check")
    if [ -z "$instructions" ]; then
        say "$name $run: check gave no answer, status $status (see $check)"
        bad=1
        return 0
    fi
    if [ "$lost" -ne 0 ] || [ $((gaps * 10000)) -ge "$instructions" ]; then
        say "$name $run: $gaps gaps, $lost threads lost (see $check)"
        bad=1
    fi
    printf '| %s %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s kB | %s | %s |\n' \
        "$name" "$version" "$build_time" "$test_time" "\`$run\`" \
        "$(threads_of "$check")" "$lost" "$instructions" "$(events_of "$check")" \
        "$(cells_of "$check")" "$gaps" "$(du -sk "$trace" | cut -f 1)" \
        "$record_time" "$check_time" | tee -a "$table" >&2
}

project() { # name
    project=$1
    local name=$project
    place=$work/projects/$name
    source='' packages='' quick=''
    unset -f build own_tests runs
    # shellcheck source=/dev/null
    . "$root/tests/real/projects/$name.sh"
    # shellcheck disable=SC2086 # a list
    install_packages $packages || return "$skip_status"
    rm -rf "$place"
    mkdir -p "$place"
    get_source "$source" "$place/source" || return $?
    export CC=symbiosis-cc CXX=symbiosis-c++
    cd "$place/source"
    say "$name $version: building"
    logged "$place/build.log" checked build || fail "$name does not build (see $place/build.log)"
    build_time=$seconds
    test_time='not run'
    if [ "$tests" = yes ]; then
        say "$name: its own tests"
        logged "$place/tests.log" checked own_tests ||
            fail "$name: its own tests fail (see $place/tests.log)"
        test_time=$seconds
    fi
    say "$name: recording"
    runs
    return $bad
}

worst=0
skipped=0
for name in "${names[@]}"; do
    # A shell of its own: projects may change directories and variables.
    set +e
    (
        set -e
        project "$name"
    )
    status=$?
    set -e
    case $status in
        0) ;;
        "$skip_status") skipped=1 ;;
        *) worst=1 ;;
    esac
done

echo '| program | build s | its tests s | recorded run | threads | lost | instructions | events | shared cells | gaps | trace | record s | check s |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
cat "$table"
if [ "$worst" -eq 0 ] && [ "$skipped" -ne 0 ]; then exit "$skip_status"; fi
exit "$worst"
