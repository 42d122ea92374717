#!/usr/bin/env bash
# What recording costs: real programs, as Debian has them, against themselves native and under
# ThreadSanitizer.
#
# usage: benches/real-overhead.sh [PROJECT ...]      (default: all of tests/real/projects with a load)
#
# Each project is built three times with its own build system and options: with clang, with clang
# -fsanitize=thread, and with `symbiosis cc`. What it links from the system is the same in all three.
# Its load (see tests/real/run.sh) is then run by the three in turn, ROUNDS times; the table is that of
# record-overhead.sh.
#
# Environment: SYMBIOSIS (the binary; default: a release build), ROUNDS (3), SYMBIOSIS_REAL_DIR (where
# sources and builds go and stay; default: the target directory).
set -euo pipefail
ulimit -c 0
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/real/lib.sh
. "$root/tests/real/lib.sh"
mkdir -p "$work"
# shellcheck source=benches/overhead-lib.sh
. "$root/benches/overhead-lib.sh"
find_symbiosis release
rounds=${ROUNDS:-3}
variants=(native ours tsan)

if [ $# -eq 0 ]; then
    for file in $(grep -l '^load()' "$root"/tests/real/projects/*.sh); do
        set -- "$@" "$(basename "$file" .sh)"
    done
fi

# The first bytes of clang's library, which compresses as programs do.
binary() { # file bytes
    local library
    [ ! -e "$place/$1" ] || return 0
    library=$(ldd "$(realpath "$(command -v clang)")" | awk '/libLLVM/ { print $3; exit }')
    head -c "$2" "$library" >"$place/$1"
}

# Runs a command of a load and adds what it took to the round.
timed() { # command...
    local directory=
    if [ "$variant" = ours ]; then
        directory=$place/raw
        rm -rf "$directory"
        mkdir "$directory"
    fi
    SYMBIOSIS_TRACE_DIR=$directory "$work/measure" "$@" | tr '\n' ' ' >>"$place/times"
}

build_variant() {
    case $variant in
        native) export CC=clang CXX=clang++ ;;
        tsan) export CC='clang -fsanitize=thread' CXX='clang++ -fsanitize=thread' ;;
        ours) export CC=symbiosis-cc CXX=symbiosis-c++ ;;
    esac
    [ ! -e "$place/$variant.built" ] || return 0
    rm -rf "${place:?}/$variant"
    get_source "$source" "$place/$variant" || return $?
    cd "$place/$variant"
    say "$project: building $variant"
    checked build >"$place/$variant.log" 2>&1 || fail "$project does not build (see $place/$variant.log)"
    touch "$place/$variant.built"
}

overhead() { # project
    project=$1
    place=$work/overhead/$project
    source='' packages=''
    unset -f build load
    # shellcheck source=/dev/null
    . "$root/tests/real/projects/$project.sh"
    declare -F load >/dev/null || fail "tests/real/projects/$project.sh has no load"
    # shellcheck disable=SC2086 # a list
    install_packages $packages || return "$skip_status"
    mkdir -p "$place"
    for variant in "${variants[@]}"; do build_variant || return $?; done
    : >"$place/times"
    for ((round = 0; round < rounds; round++)); do
        for variant in "${variants[@]}"; do
            cd "$place/$variant"
            load || fail "$project: the load of $variant fails"
        done
        echo >>"$place/times"
    done
    overhead_row "$project" "$place/times" "$(stream_bytes "$place/raw")"
    rm -rf "$place/raw"
}

overhead_header
for name in "$@"; do overhead "$name"; done
