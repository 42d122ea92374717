/* What a run reads before it has a second thread decides whether it fails. The file tells the first run from those that a
 * replay makes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;

static void *work(void *argument)
{
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    users = 1;
    pthread_mutex_unlock(&lock);
    if (access("was-here", F_OK) != 0) {
        FILE *mark = fopen("was-here", "w");
        if (mark != NULL)
            fclose(mark);
        exit(3);
    }
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
