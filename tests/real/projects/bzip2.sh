# shellcheck shell=bash
source=bzip2
packages='make'
quick=yes

build() { make -j2 CC="$CC" bzip2 bzip2recover; }

own_tests() { LD_LIBRARY_PATH=. make CC="$CC" test; }

# Debian's makefile links the program with the shared library that it has just built.
runs() {
    export LD_LIBRARY_PATH=.
    input text 20000
    recorded compress ./bzip2 -k -f ../text
    recorded decompress ./bzip2 -k -d -f ../text.bz2
}
