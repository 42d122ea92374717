# shellcheck shell=bash
# Registering a file system changes a list that all threads share without its lock: one of two that
# register at once is lost.
# shellcheck disable=SC2034 # read by inject.sh
source=sqlite3
packages='make tcl'
what="sqlite3_vfs_register without its lock"
file=src/os.c
places='sqlite3_vfs_register'
damage='/^int sqlite3_vfs_register(/,/^}/{/sqlite3_mutex_\(enter\|leave\)(mutex);/d}'
command=(./vfs)

build() {
    CFLAGS='-g -O1 -DSQLITE_THREADSAFE=1' ./configure --enable-threadsafe \
        --disable-amalgamation --disable-tcl --disable-readline --disable-shared &&
        make -j2 libsqlite3.la &&
        "$CC" -g -O1 -pthread -I. "$root/tests/real/drivers/sqlite_vfs.c" \
            .libs/libsqlite3.a -lm -ldl -lz -o vfs
}
