# shellcheck shell=bash
source=zlib
packages='make'
quick=yes

build() {
    ./configure --static
    make -j2
}

own_tests() { make test; }

# zlib itself has one thread.
runs() {
    input text 40000
    recorded minigzip sh -c 'exec ./minigzip < ../text > ../text.gz'
    recorded example ./example ../example.gz
}
