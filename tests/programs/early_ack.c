/* A message is in the mailbox before the table knows that it has to be acknowledged. The run that fails ends soon; in one
 * that passes the consumer computes for long, and waits for nobody meanwhile. */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

enum { MESSAGES = 6, SIZE = 64, ROUNDS = 200 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    int tags[MESSAGES];
    int put, taken;
} mailbox = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    int pending[MESSAGES];
    int count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned char bodies[MESSAGES][SIZE];
static unsigned sums[MESSAGES];

static void publish(int tag)
{
    pthread_mutex_lock(&mailbox.lock);
    mailbox.tags[mailbox.put++] = tag;
    pthread_cond_signal(&mailbox.filled);
    pthread_mutex_unlock(&mailbox.lock);
    if (tag == MESSAGES / 2 - 1)
        usleep(30000);
    pthread_mutex_lock(&table.lock);
    table.pending[tag] = 1;
    table.count++;
    pthread_mutex_unlock(&table.lock);
}

static int take(void)
{
    pthread_mutex_lock(&mailbox.lock);
    while (mailbox.taken == mailbox.put)
        pthread_cond_wait(&mailbox.filled, &mailbox.lock);
    int tag = mailbox.tags[mailbox.taken++];
    pthread_mutex_unlock(&mailbox.lock);
    return tag;
}

static void acknowledge(int tag)
{
    pthread_mutex_lock(&table.lock);
    assert(table.pending[tag]);
    table.pending[tag] = 0;
    table.count--;
    pthread_mutex_unlock(&table.lock);
}

static void *produce(void *argument)
{
    int first = *(int *)argument;
    for (int tag = first; tag < first + MESSAGES / 2; tag++) {
        for (int i = 0; i < SIZE; i++)
            bodies[tag][i] = (unsigned char)(tag * i);
        publish(tag);
    }
    return argument;
}

static void *consume(void *argument)
{
    for (int i = 0; i < MESSAGES; i++) {
        int tag = take();
        usleep(3000);
        acknowledge(tag);
        for (int round = 0; i >= MESSAGES / 2 && round < ROUNDS; round++)
            for (int at = 0; at < SIZE; at++)
                sums[tag] = sums[tag] * 31 + bodies[tag][at];
    }
    return argument;
}

int main(void)
{
    int firsts[] = {0, MESSAGES / 2};
    pthread_t producers[2], consumer;
    pthread_create(&consumer, 0, consume, 0);
    for (int i = 0; i < 2; i++) {
        pthread_create(&producers[i], 0, produce, &firsts[i]);
        usleep(2000); /* the message that is told too late comes before the other producer's */
    }
    for (int i = 0; i < 2; i++)
        pthread_join(producers[i], 0);
    pthread_join(consumer, 0);
    return table.count;
}
