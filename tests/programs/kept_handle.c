/* A thread looks whether another one has been created. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_t worker;
static int known;

static void *look(void *unused)
{
    known = worker != 0;
    return unused;
}

static void *work(void *unused)
{
    return unused;
}

int main(void)
{
    pthread_t looker;
    pthread_create(&looker, NULL, look, NULL);
    pthread_create(&worker, NULL, work, NULL);
    pthread_join(worker, NULL);
    pthread_join(looker, NULL);
    assert(known > 1);
    return 0;
}
