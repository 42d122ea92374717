# shellcheck shell=bash
# A job is put into the queue of the thread pool without the pool's lock: of two that are added at
# once, one overwrites the other.
# shellcheck disable=SC2034 # read by inject.sh
source=libzstd
packages='make'
what="POOL_tryAdd without the pool's lock"
file=lib/common/pool.c
places='POOL_tryAdd|POOL_add_internal'
damage='/^int POOL_tryAdd(POOL_ctx\* ctx, POOL_function function, void\* opaque)$/,/^}/{/ZSTD_pthread_mutex_\(un\)\?lock/d}'
command=(./pool)

# Only what compression and decompression have in common.
build() {
    make -C lib -j2 libzstd.a-mt CFLAGS='-g -O1' ZSTD_LIB_COMPRESSION=0 ZSTD_LIB_DECOMPRESSION=0 \
        ZSTD_LIB_DICTBUILDER=0 ZSTD_LIB_DEPRECATED=0 &&
        "$CC" -g -O1 -pthread -DZSTD_MULTITHREAD -Ilib -Ilib/common \
            "$root/tests/real/drivers/zstd_pool.c" lib/libzstd.a -o pool
}
