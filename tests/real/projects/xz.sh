# shellcheck shell=bash
source=xz-utils
packages='make'

build() {
    ./configure --disable-shared --disable-nls
    make -j2
}

own_tests() { make check; }

runs() {
    input text 60000
    recorded compress ./src/xz/xz -0 -T2 --block-size=20000 -k -f ../text
    recorded decompress ./src/xz/xz -d -T2 -k -f ../text.xz
}

load() {
    binary big 12000000
    timed ./src/xz/xz -1 -T2 --block-size=500000 -k -c ../big
}
