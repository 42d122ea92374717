/* Two bugs in what one loop does: packets are counted without a lock, and so are bytes. -DPACKETS_FIXED and -DBYTES_FIXED mend one
   of them each. */
#include <assert.h>
#include <pthread.h>

struct counts {
    pthread_mutex_t lock;
    long packets;
    long bytes;
};

static struct counts in = {PTHREAD_MUTEX_INITIALIZER, 0, 0};

static void add_packet(struct counts *counts)
{
#ifdef PACKETS_FIXED
    pthread_mutex_lock(&counts->lock);
#endif
    counts->packets++;
#ifdef PACKETS_FIXED
    pthread_mutex_unlock(&counts->lock);
#endif
}

static void add_bytes(struct counts *counts, long bytes)
{
#ifdef BYTES_FIXED
    pthread_mutex_lock(&counts->lock);
#endif
    counts->bytes += bytes;
#ifdef BYTES_FIXED
    pthread_mutex_unlock(&counts->lock);
#endif
}

static void *receive(void *unused)
{
    for (int i = 0; i < 3; i++) {
        add_packet(&in);
        add_bytes(&in, 10);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, receive, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(in.packets == 6);
    assert(in.bytes == 60);
    return 0;
}
