# shellcheck shell=bash
source=sqlite3
packages='make tcl'

# With Debian's options, as far as they concern code that is used here. Of the thread tests, the
# first two are older than the library.
build() {
    CFLAGS="-g -O2 -fno-strict-aliasing -DSQLITE_SECURE_DELETE -DSQLITE_ENABLE_COLUMN_METADATA \
        -DSQLITE_ENABLE_UNLOCK_NOTIFY -DSQLITE_OMIT_LOOKASIDE=1 -DSQLITE_THREADSAFE=1" \
        ./configure --enable-threadsafe --disable-amalgamation --disable-tcl --disable-readline \
        --disable-shared
    make -j2 libsqlite3.la
    local number
    for number in 4 5; do
        "$CC" -g -O1 -pthread -I. "test/threadtest$number.c" .libs/libsqlite3.a -lm -ldl -lz \
            -o "threadtest$number"
    done
    "$CC" -g -O1 -pthread -I. -Isrc -DSQLITE_THREADSAFE=1 test/threadtest3.c \
        src/test_multiplex.c .libs/libsqlite3.a -lm -ldl -lz -o threadtest3
    "$CC" -g -O1 -pthread -I. "$root/tests/real/drivers/sqlite.c" .libs/libsqlite3.a -lm -ldl -lz \
        -o threads
}

own_tests() {
    ./threadtest3 cgt_pager_1 walthread5
    ./threadtest4 -serialized 4
    ./threadtest4 -multithread -wal 4
    ./threadtest5
}

runs() {
    recorded threads ./threads
    recorded threadtest5 ./threadtest5 -num-workers 2
}
