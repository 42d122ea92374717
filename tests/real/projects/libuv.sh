# shellcheck shell=bash
source=libuv1
packages='make cmake netbase'
# The suite refuses to run as root, and its time limits are for a machine that does nothing else.
export UV_RUN_AS_ROOT=1 UV_TEST_TIMEOUT_MULTIPLIER=10

build() {
    cmake -S . -B build -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='-g -O2'
    make -C build -j2 uv_a uv_run_tests_a
    "$CC" -g -O1 -pthread -Iinclude "$root/tests/real/drivers/libuv.c" build/libuv_a.a -ldl -o work
}

# What has threads, signals, children, forks, files, and sockets of this machine. Each test is a
# process of its own.
own_tests() {
    local tests=(
        threadpool_queue_work_simple threadpool_queue_work_einval threadpool_multiple_event_loops
        threadpool_cancel_getaddrinfo threadpool_cancel_work threadpool_cancel_fs
        threadpool_cancel_single async async_null_cb thread_create thread_equal
        thread_local_storage thread_mutex thread_mutex_recursive thread_rwlock
        thread_rwlock_trylock semaphore_1 semaphore_2 semaphore_3 condvar_1 condvar_2 condvar_3
        condvar_4 condvar_5 barrier_1 barrier_2 barrier_3 signal_multiple_loops
        we_get_signal we_get_signals fork_timer fork_socketpair fork_threadpool_queue_work_simple
        fs_file_async fs_file_sync fs_file_loop fs_async_dir fs_async_sendfile fs_mkdtemp
        getaddrinfo_basic getaddrinfo_concurrent tcp_ping_pong pipe_ping_pong tcp_writealot
        spawn_exit_code spawn_stdout spawn_stdin spawn_and_kill spawn_and_ping
        process_title loop_alive loop_stop loop_update_time timer timer_again
        queue_foreach_delete walk_handles active poll_duplex poll_unidirectional
    )
    local name failed=()
    for name in "${tests[@]}"; do
        (cd build && ./uv_run_tests_a "$name") || failed+=("$name")
    done
    [ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" && return 1; }
}

runs() {
    recorded work ./work
    # A test's name twice: the test itself, not its watcher in a process of its own.
    local name
    cd build
    for name in threadpool_multiple_event_loops fs_file_async signal_multiple_loops; do
        recorded "$name" ./uv_run_tests_a "$name" "$name"
    done
    cd ..
}
