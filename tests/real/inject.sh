#!/usr/bin/env bash
# Real programs with a bug put in: builds each from Debian's source with one lock taken out or one
# order swapped, provokes the failure, records and solves it, and asks that the replay confirms it and
# that the projection names the damaged place.
#
#   tests/real/inject.sh              all
#   tests/real/inject.sh libuv        these
#
# The last thing printed, on standard output, is a table for docs/real-programs.md. The status is 0
# when all of that held for each, 77 when the sources cannot be got, else 1.
#
# A bug is a file in injected/ that sets
#   source     Debian's name of the source package
#   packages   Debian packages that building needs
#   what       the damage, in a few words
#   file       the damaged file
#   places     the functions that the projection may name, as a regular expression; each begins at
#              the beginning of a line and ends with a brace there
#   damage     a script for sed that does the damage
#   tries      after how many runs the failure is given up
#   noise      what `record --noise=` gets; its default without
# and defines, run in the unpacked source with CC and CXX exported,
#   build      builds what is needed
# and sets `command`, an array: the program to run, and its arguments.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/real/lib.sh
. "$root/tests/real/lib.sh"

# Lines of functions: "first last" for each that matches.
lines_of() { # regular-expression file
    awk -v wanted="^([a-zA-Z_].*[ *])?($1)\\\\(" '
        $0 ~ wanted && !/;[ \t]*$/ { first = NR }
        first && /^}/ { print first, NR; first = 0 }' "$2"
}

# Does the projection name one of the lines of the damaged functions?
names_place() { # solution file places
    local base line first last
    base=$(basename "$2")
    grep -oE "$(printf '%s' "$base" | sed 's/\./\\./g'):[0-9]+" "$1" | sed 's/.*://' | sort -un |
        while read -r line; do
            lines_of "$3" "$2" | while read -r first last; do
                if [ "$line" -ge "$first" ] && [ "$line" -le "$last" ]; then echo yes; fi
            done
        done | grep -c yes >/dev/null
}

injected() { # name
    local name=$1 place=$work/injected/$1 record_time solve_time kind events shown replay alternate
    source='' packages='' what='' file='' places='' damage='' tries=2000 noise='' command=()
    # shellcheck source=/dev/null
    . "$root/tests/real/injected/$name.sh"
    # shellcheck disable=SC2086 # a list
    install_packages $packages || return "$skip_status"
    rm -rf "$place"
    mkdir -p "$place"
    get_source "$source" "$place/source" || return $?
    export CC=symbiosis-cc CXX=symbiosis-c++
    cd "$place/source"
    cp "$file" "$place/before"
    sed -i "$damage" "$file"
    if cmp -s "$file" "$place/before"; then fail "$name: the damage changes nothing in $file"; fi
    say "$name $version: building with $what"
    logged "$place/build.log" build || fail "$name does not build (see $place/build.log)"
    say "$name: recording until it fails"
    logged "$place/record.log" "$symbiosis" record "--noise${noise:+=$noise}" --timeout 60 --until-failure "$tries" \
        -o "$place/failing.trace" -- "${command[@]}" || true
    record_time=$seconds
    [ -d "$place/failing.trace" ] || fail "$name did not fail (see $place/record.log)"
    say "$name: solving"
    logged "$place/solution" timeout 900 "$symbiosis" solve "$place/failing.trace" ||
        say "$name: solve ended with a status other than 0"
    solve_time=$seconds
    kind=$(sed -n 's/^failure: //p' "$place/solution")
    events=$(sed -nE 's/^failing schedule: ([0-9]+) events.*/\1/p' "$place/solution")
    shown=$(sed -nE 's/^shown: ([0-9]+) of .*/\1/p' "$place/solution")
    replay=$(sed -nE 's/^failing schedule: .*\(replay: (.*)\)$/\1/p' "$place/solution")
    alternate=$(sed -nE 's/^alternate 0 .*\(replay: (.*)\).*/\1/p' "$place/solution")
    [ "$replay" = confirmed ] || fail "$name: the failure was not replayed (see $place/solution)"
    names_place "$place/solution" "$file" "$places" ||
        fail "$name: the projection does not name $places in $file (see $place/solution)"
    printf '| %s %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$source" "$version" "$what" \
        "$kind" "$record_time" "$solve_time" "$events" "$shown" "$replay" "${alternate:-none}" |
        tee -a "$table" >&2
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for file in "$root"/tests/real/injected/*.sh; do
        names+=("$(basename "$file" .sh)")
    done
fi
for name in "${names[@]}"; do
    [ -e "$root/tests/real/injected/$name.sh" ] || fail "there is no tests/real/injected/$name.sh"
done
find_symbiosis release
mkdir -p "$work"
table=$work/injected-table
: >"$table"
worst=0
skipped=0
for name in "${names[@]}"; do
    set +e
    (
        set -e
        injected "$name"
    )
    status=$?
    set -e
    case $status in
        0) ;;
        "$skip_status") skipped=1 ;;
        *) worst=1 ;;
    esac
done
echo '| program | damage | failure | record s | solve s | events | shown | replay | alternate |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
cat "$table"
if [ "$worst" -eq 0 ] && [ "$skipped" -ne 0 ]; then exit "$skip_status"; fi
exit "$worst"
