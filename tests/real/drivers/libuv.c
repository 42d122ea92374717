// A loop, its thread pool, an async handle and a pipe: what libuv's users have.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define JOBS 40

static uv_async_t wake;
static uv_mutex_t lock;
static long total;
static int done;

static void work(uv_work_t *job)
{
    long sum = 0;
    for (long i = 0; i < 200; i++)
        sum += i * (long)(size_t)job->data % 7;
    uv_mutex_lock(&lock);
    total += sum;
    uv_mutex_unlock(&lock);
    uv_async_send(&wake);
}

static void after(uv_work_t *job, int status)
{
    if (status)
        abort();
    free(job);
    done++;
    if (done == JOBS)
        uv_close((uv_handle_t *)&wake, NULL);
}

static void woken(uv_async_t *handle) { (void)handle; }

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    uv_mutex_init(&lock);
    uv_async_init(loop, &wake, woken);
    for (long i = 0; i < JOBS; i++) {
        uv_work_t *job = calloc(1, sizeof *job);
        job->data = (void *)i;
        uv_queue_work(loop, job, work, after);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    printf("total %ld\n", total);
    return uv_loop_close(loop) != 0 || done != JOBS;
}
