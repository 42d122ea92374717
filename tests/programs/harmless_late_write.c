/* A worker answers too late, where nobody looks any more; what fails is that a count is updated without a lock. */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* So long that a variable of its own lies deep in the stack. */
struct answer {
    int value;
    char text[4000];
};

static struct answer *wanted;
static int count;

static void *work(void *argument)
{
    pthread_mutex_lock(&mutex);
    struct answer *answer = wanted;
    pthread_mutex_unlock(&mutex);
    usleep(2000);
    pthread_mutex_lock(&mutex);
    answer->value = 7;
    pthread_mutex_unlock(&mutex);
    int seen = count;
    usleep(1000);
    count = seen + 1;
    return argument;
}

static __attribute__((noinline)) void ask(pthread_t *worker)
{
    struct answer answer;
    answer.value = 0;
    wanted = &answer;
    pthread_create(worker, NULL, work, NULL);
    usleep(500);
}

int main(void)
{
    pthread_t worker;
    ask(&worker);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    usleep(2000);
    int seen = count;
    usleep(1000);
    count = seen + 1;
    pthread_join(worker, NULL);
    assert(count == 2);
    return 0;
}
