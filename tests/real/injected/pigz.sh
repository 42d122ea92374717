# shellcheck shell=bash
# A job is announced before it is in the list: a thread that looks at once finds none.
# shellcheck disable=SC2034 # read by inject.sh
source=pigz
packages='make zlib1g-dev'
what="a job is announced, and the list's lock given back, before it is in the list"
file=pigz.c
places='parallel_compress'
damage='/^        possess(compress_have);$/{n;s/^\( *\)job->next = NULL;/\1twist(compress_have, BY, +1);\n&/};/^ *compress_tail = &(job->next);$/{n;d}'
noise=0.05,500
tries=300
command=(./pigz -k -f -p 2 -b 32 text)

build() {
    make -j2 CC="$CC" pigz && make_input text 98304
}
