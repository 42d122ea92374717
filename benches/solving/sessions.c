/* Sessions that are counted by reference: four threads take one, use it, and give it back, so many times as the
 * argument says. Bug: session_put() decrements the count and looks at it in two steps, so two threads may see 0, and free
 * the session twice. The crash comes later, where the allocator has given it to two at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define SLOTS 16
struct session { atomic_int refs; int id; char *name; long bytes; };
static struct session *slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_long served;
static int requests = 50000;

static struct session *session_new(int id) {
    struct session *s = malloc(sizeof *s);
    atomic_init(&s->refs, 1);
    s->id = id; s->bytes = 0;
    s->name = malloc(24);
    snprintf(s->name, 24, "session-%d", id);
    return s;
}
static void session_put(struct session *s) {
    atomic_fetch_sub(&s->refs, 1);
    if (atomic_load(&s->refs) == 0) {
        free(s->name);
        free(s);
    }
}
static struct session *session_get(int slot) {
    pthread_mutex_lock(&lock);
    struct session *s = slots[slot];
    if (s) atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&lock);
    return s;
}
static void session_replace(int slot, int id) {
    struct session *fresh = session_new(id);
    pthread_mutex_lock(&lock);
    struct session *old = slots[slot];
    slots[slot] = fresh;
    pthread_mutex_unlock(&lock);
    if (old) session_put(old);
}
static void *serve(void *arg) {
    unsigned seed = (unsigned)(long)arg + 3;
    for (int i = 0; i < requests; i++) {
        seed = seed * 1664525 + 1013904223;
        int slot = (seed >> 20) % SLOTS;
        if ((seed >> 8) % 64 == 0) { session_replace(slot, i); continue; }
        struct session *s = session_get(slot);
        if (!s) continue;
        s->bytes += (long)s->name[0] + s->id;
        session_put(s);
        atomic_fetch_add(&served, 1);
    }
    return NULL;
}
int main(int argc, char **argv) {
    if (argc > 1) requests = atoi(argv[1]);
    pthread_t t[4];
    for (int i = 0; i < SLOTS; i++) slots[i] = session_new(i);
    for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, serve, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < SLOTS; i++) session_put(slots[i]);
    printf("%ld\n", atomic_load(&served));
    return 0;
}
