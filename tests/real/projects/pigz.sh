# shellcheck shell=bash
source=pigz
packages='make zlib1g-dev'

build() { make -j2 CC="$CC" pigz; }

own_tests() { make CC="$CC" test; }

runs() {
    input text 300000
    recorded compress ./pigz -k -f -p 2 -b 128 ../text
    recorded decompress ./pigz -d -k -f -p 2 ../text.gz
}

load() {
    binary big 12000000
    timed ./pigz -p 2 -k -c ../big
}
