/* Atomic operations on what need not be aligned are functions of libatomic for one size each. */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

struct __attribute__((packed)) record {
    char kind;
    uint32_t uses;
    uint64_t bytes;
    uint16_t peers;
};

static struct record record;

static void *use(void *argument)
{
    __atomic_fetch_add(&record.bytes, 100, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&record.peers, 4, __ATOMIC_SEQ_CST);
    uint32_t uses = __atomic_load_n(&record.uses, __ATOMIC_SEQ_CST);
    __atomic_store_n(&record.uses, uses + 1, __ATOMIC_SEQ_CST);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, use, NULL);
    pthread_create(&threads[1], NULL, use, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(record.bytes == 200 && record.peers == 4);
    assert(record.uses == 2);
    return 0;
}
