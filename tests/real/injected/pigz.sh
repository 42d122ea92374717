# shellcheck shell=bash
# A buffer of a pool is handed out after the pool's lock is given back: two threads get the same one.
# shellcheck disable=SC2034 # read by inject.sh
source=pigz
packages='make zlib1g-dev'
what="get_space gives the pool's lock back before it takes the buffer off the list"
file=pigz.c
places='get_space'
damage='/^local struct space \*get_space/,/^}/{/twist(pool->have, BY, -1);/d;s/^\( *\)space = pool->head;/\1twist(pool->have, BY, -1);\n&/}'
noise=0.05,500
tries=300
command=(./pigz -k -f -p 2 -b 32 text)

build() {
    make -j2 CC="$CC" pigz && make_input text 131072
}
