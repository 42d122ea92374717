# shellcheck shell=bash
source=lbzip2
packages='make'

build() {
    ./configure
    make -j2
}

own_tests() { make check; }

runs() {
    input text 150000
    recorded compress ./src/lbzip2 -1 -n 2 -k -f ../text
    recorded decompress ./src/lbzip2 -d -n 2 -k -f ../text.bz2
}

load() {
    binary big 12000000
    timed ./src/lbzip2 -n 2 -k -c ../big
}
