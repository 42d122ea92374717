// Two threads register a file system each: both have to be there afterwards.
#include <assert.h>
#include <pthread.h>
#include <sqlite3.h>

static sqlite3_vfs systems[2];

static void *add(void *system)
{
    sqlite3_vfs_register(system, 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    sqlite3_initialize();
    for (int i = 0; i < 2; i++) {
        systems[i] = *sqlite3_vfs_find(NULL);
        systems[i].zName = i ? "second" : "first";
        pthread_create(&threads[i], NULL, add, &systems[i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    int found = 0;
    for (sqlite3_vfs *at = sqlite3_vfs_find(NULL); at; at = at->pNext)
        found += at == &systems[0] || at == &systems[1];
    assert(found == 2);
    return 0;
}
