/* Texts that two threads copy and append to under a lock: how long they are, the one thread does not know of the other. */
#include <assert.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char name[32] = "none", path[64];

static void *work(void *text)
{
    for (int i = 0; i < 3; i++) {
        char seen[64];
        pthread_mutex_lock(&lock);
        strcpy(name, text);
        strcpy(path, "/dir/");
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        if (strlen(path) < 20)
            strcat(path, name);
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        strcpy(seen, path);
        pthread_mutex_unlock(&lock);
        assert(seen[0] == '/' && strlen(seen) >= 5);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, work, "abc");
    pthread_create(&threads[1], 0, work, "longer");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
