// Two threads hand a job each to zstd's thread pool: both have to be done when the pool is gone.
#include <assert.h>
#include <pthread.h>
#include <pool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void job(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    done++;
    pthread_mutex_unlock(&lock);
}

static void *add(void *pool)
{
    int added = POOL_tryAdd(pool, job, NULL);
    assert(added);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    POOL_ctx *pool = POOL_create(1, 4);
    pthread_create(&thread, NULL, add, pool);
    add(pool);
    pthread_join(thread, NULL);
    POOL_free(pool);
    assert(done == 2);
    return 0;
}
