# shellcheck shell=bash
# Cancelling looks at the queue of the thread pool without the pool's lock: a worker takes the work in
# between, and the work is both run and cancelled.
# shellcheck disable=SC2034 # read by inject.sh
source=libuv1
packages='make cmake'
what="uv_cancel without the pool's lock"
file=src/threadpool.c
places='uv__work_cancel'
damage='/^static int uv__work_cancel/,/^}/{/uv_mutex_\(un\)\?lock(&mutex);/d}'
command=(./cancel)

build() {
    cmake -S . -B build -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='-g -O1' -DBUILD_TESTING=OFF &&
        make -C build -j2 uv_a &&
        "$CC" -g -O1 -pthread -Iinclude "$root/tests/real/drivers/libuv_cancel.c" \
            build/libuv_a.a -ldl -o cancel
}
