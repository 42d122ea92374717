// Two branches begin with the same: each has it in its own lines.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int state;

static int look(void)
{
    pthread_mutex_lock(&lock);
    int found = state;
    pthread_mutex_unlock(&lock);
    return found;
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    state = 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    int sum = 0;
    (void)arguments;
    pthread_create(&thread, NULL, work, NULL);
    if (count > 1)
        sum += look() * 3;
    else
        sum += look() + 2; // the branch
    pthread_join(thread, NULL);
    printf("%d\n", sum);
    return 0;
}
