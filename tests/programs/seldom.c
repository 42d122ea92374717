/*
 * An older version of a text is copied over where an editor has not saved a newer one, without a lock. LOCKED: with it; and
 * there the editor is the first in five runs of six, and nothing is copied: whose turn it is, a file with a letter for each
 * run knows.
 */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int version = 1;

static void *copy(void *pause)
{
    usleep(*(unsigned *)pause);
#ifdef LOCKED
    pthread_mutex_lock(&lock);
#endif
    if (version < 2)
        version = 2;
#ifdef LOCKED
    pthread_mutex_unlock(&lock);
#endif
    return &lock;
}

static void *edit(void *pause)
{
    usleep(*(unsigned *)pause);
    pthread_mutex_lock(&lock);
    version = 3;
    pthread_mutex_unlock(&lock);
    return &lock;
}

static int edits_first(void)
{
#ifdef LOCKED
    int file = open("runs", O_WRONLY | O_CREAT | O_APPEND, 0600);
    long runs = lseek(file, 0, SEEK_END);
    if (write(file, "r", 1) != 1)
        return 0;
    close(file);
    return runs % 6 != 4;
#else
    return -1;
#endif
}

int main(void)
{
    pthread_t threads[2];
    int first = edits_first();
    unsigned pauses[2] = { first == 1 ? 50000 : 0, first == 0 ? 50000 : 0 };

    pthread_create(&threads[0], NULL, copy, &pauses[0]);
    pthread_create(&threads[1], NULL, edit, &pauses[1]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(version == 3);
    return 0;
}
