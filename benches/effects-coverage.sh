#!/bin/sh
# How many of the library functions that real programs import are described in crates/ir/effects:
# counts the undefined functions of all programs and libraries in the given folders (/usr/bin and
# /usr/sbin by default), one occurrence per file that imports the function, of the C library, the
# mathematical library, libstdc++ and libgcc.
set -eu
[ $# -gt 0 ] || set -- /usr/bin /usr/sbin
cd "$(dirname "$0")/.."
find "$@" -maxdepth 1 -type f | sort | while read -r file; do
    readelf -W --dyn-syms "$file" 2>/dev/null || true # Scripts are no programs.
done | awk '
    /^Symbol table/ { files++ }
    $4 == "FUNC" && $7 == "UND" && $8 ~ /@(GLIBC|GLIBCXX|CXXABI|GCC)_/ {
        sub(/@.*/, "", $8); count[$8]++
    }
    END {
        print "files", files
        for (name in count) print count[name], name
    }' | cargo run -q -p ir --example effects_coverage
