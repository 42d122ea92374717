// A thread's stack lies where a large object was that has been freed, and so do its `errno` and what
// another thread writes to its local variable.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static int *volatile question;
static sem_t asked, answered;

static void *worker(void *unused) {
    int answer = 0;
    if (open("/no/such/directory/file", O_RDONLY) >= 0 || errno != ENOENT)
        return "no such error";
    question = &answer;
    sem_post(&asked);
    sem_wait(&answered);
    return answer == 42 ? NULL : "another answer";
}

int main(void) {
    pthread_t thread;
    void *result;
    sem_init(&asked, 0, 0);
    sem_init(&answered, 0, 0);
    char *large = malloc(64 << 20);
    if (!large)
        return 1;
    *(char *volatile)large = 1;
    free(large);
    pthread_create(&thread, NULL, worker, NULL);
    sem_wait(&asked);
    *question = 42;
    sem_post(&answered);
    pthread_join(thread, &result);
    return result != NULL;
}
