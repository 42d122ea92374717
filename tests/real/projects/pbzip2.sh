# shellcheck shell=bash
source=pbzip2
packages='make libbz2-dev'

# As Debian does, with the system's library.
# Newer standards read its "%"PRIuMAX as a literal of its own.
build() { make CXX="$CXX -Wno-reserved-user-defined-literal"; }

# It has none.
own_tests() { :; }

runs() {
    input text 300000
    recorded compress ./pbzip2 -1 -p2 -k -f ../text
    recorded decompress ./pbzip2 -d -p2 -k -f ../text.bz2
}

load() {
    binary big 12000000
    timed ./pbzip2 -p2 -k -c ../big
}
