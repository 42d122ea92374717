/* A count of references that is not changed in one step. ATOMIC is the patch that helps, LATE one that
 * does not: the count is read earlier. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
    int references;
    int *data;
};

static void put(struct job *job) {
#if defined(ATOMIC)
    int left = __atomic_sub_fetch(&job->references, 1, __ATOMIC_SEQ_CST);
#elif defined(LATE)
    int before = job->references;
    int left = before - 1;
    job->references = left;
#else
    int left = --job->references;
#endif
    if (left == 0) {
        free(job->data);
        job->data = NULL;
    }
}

static void *work(void *argument) {
    put(argument);
    return NULL;
}

int main(void) {
    struct job job = {3, malloc(16)};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &job);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    put(&job);
    if (job.data != NULL) {
        fprintf(stderr, "leaked\n");
        exit(3);
    }
    return 0;
}
