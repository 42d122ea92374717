# shellcheck shell=bash
source=libzstd
packages='make'

build() { make -j2 -C programs zstd; }

# The quick half of its tests: the fuzzers of `make test` take hours.
own_tests() {
    make -C tests datagen
    make -C tests test-zstd
}

# Input of an unknown size goes to the worker threads however small it is; more than one job takes
# more than half a megabyte.
runs() {
    input small 30000
    recorded one-job sh -c 'exec ./programs/zstd -1 -T2 -f -o ../small.zst < ../small'
    recorded decompress ./programs/zstd -d -k -f ../small.zst -o ../small.out
    input text 700000
    recorded two-jobs ./programs/zstd -1 -T2 -B512K -k -f ../text -o ../text.zst
}

load() {
    binary big 12000000
    timed ./programs/zstd -9 -T2 -k -c ../big
}
