/* Two bugs: lines are counted without a lock, and a log is used that may be closed behind the look at it. What the second one
   does is checked behind what the first one does. -DLINES_FIXED mends the first. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

struct log {
    int open;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log *current;
static int written;
static int seen_closed;

static void append(void)
{
#ifdef LINES_FIXED
    pthread_mutex_lock(&lock);
#endif
    int at = written;
    written = at + 1;
#ifdef LINES_FIXED
    pthread_mutex_unlock(&lock);
#endif
}

static void look(void)
{
    pthread_mutex_lock(&lock);
    struct log *log = current;
    pthread_mutex_unlock(&lock);
    if (log != NULL && !log->open)
        seen_closed = 1;
}

static void *work(void *unused)
{
    for (int i = 0; i < 2; i++) {
        append();
        look();
    }
    return unused;
}

static void *close_log(void *unused)
{
    pthread_mutex_lock(&lock);
    current->open = 0;
    current = NULL;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    struct log log = {1};
    pthread_t threads[3];
    current = &log;
    pthread_create(&threads[0], NULL, work, NULL);
    pthread_create(&threads[1], NULL, work, NULL);
    pthread_create(&threads[2], NULL, close_log, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(written == 4);
    assert(!seen_closed);
    return 0;
}
