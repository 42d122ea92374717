// Work that was cancelled must not have run.
#include <assert.h>
#include <stdlib.h>
#include <uv.h>

static int ran;

static void work(uv_work_t *job)
{
    (void)job;
    ran = 1;
}

static void after(uv_work_t *job, int status)
{
    (void)job;
    assert(!(ran && status == UV_ECANCELED));
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    uv_work_t job;
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    uv_queue_work(loop, &job, work, after);
    uv_cancel((uv_req_t *)&job);
    uv_run(loop, UV_RUN_DEFAULT);
    return 0;
}
