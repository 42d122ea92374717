# shellcheck shell=bash
source=libzstd
packages='make'

build() { make -j2 -C programs zstd; }

# The quick half of its tests: the fuzzers of `make test` take hours.
own_tests() {
    make -C tests datagen
    make -C tests test-zstd
}

runs() {
    input text 700000
    recorded one-job ./programs/zstd -1 -T2 -k -f ../text -o ../text.zst
    recorded two-jobs ./programs/zstd -1 -T2 -B512K -k -f ../text -o ../text.zst
    recorded decompress ./programs/zstd -d -k -f ../text.zst -o ../text.out
}
