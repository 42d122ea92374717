# shellcheck shell=bash
source=redis
packages='make pkg-config procps tcl libjemalloc-dev liblzf-dev libsystemd-dev'

# Without TLS, else as Debian does: with the system's jemalloc.
build() {
    make -j2 V=1 CC="$CC" BUILD_TLS=no USE_SYSTEM_JEMALLOC=yes USE_JEMALLOC=yes \
        CFLAGS='-g -O2 -I/usr/include/liblzf' LDFLAGS='-Wl,-no-as-needed -ldl -latomic -llzf'
}

# The whole suite takes an hour.
own_tests() {
    ./runtest --clients 1 --single unit/type/incr --single unit/keyspace --single unit/multi
    ./runtest --clients 1 --single unit/type/string --config io-threads 4 \
        --config io-threads-do-reads yes
}

# A client that is not recorded works and then ends the server.
client() {
    until ./src/redis-cli -p 7399 ping; do sleep 0.2; done
    ./src/redis-benchmark -p 7399 -n 200 -c 16 -t set,get,incr,lpush -q
    ./src/redis-cli -p 7399 shutdown nosave
}

runs() {
    client >../client.log 2>&1 &
    recorded io-threads ./src/redis-server --port 7399 --save '' --io-threads 4 \
        --io-threads-do-reads yes
    wait
}

# The client is of the same build, and is not measured.
load() {
    {
        until ./src/redis-cli -p 7399 ping; do sleep 0.2; done
        ./src/redis-benchmark -p 7399 -n 100000 -c 16 -P 16 -t set,get,incr,lpush,hset -q
        ./src/redis-cli -p 7399 shutdown nosave
    } >../load.log 2>&1 &
    timed ./src/redis-server --port 7399 --save '' --io-threads 2 --io-threads-do-reads yes
    wait
}
