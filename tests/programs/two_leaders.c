/* Members of a cluster become its leader again and again, and step down. That no term had two of them is checked at the end.
 * Another member may have become leader since one looked whether there is any; in most rounds nobody did. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MEMBERS 3
#define ROUNDS 120

static atomic_int leader, term;
static pthread_mutex_t elected_lock = PTHREAD_MUTEX_INITIALIZER;
static int elected[MEMBERS * ROUNDS + 1];

static void campaign(int self)
{
    if (atomic_load(&leader) != 0) /* looks */
        return;
    atomic_store(&leader, self); /* leads */
    int now = atomic_load(&term);
    pthread_mutex_lock(&elected_lock);
    elected[now]++;
    pthread_mutex_unlock(&elected_lock);
}

static void *member(void *number)
{
    int self = (int)(long)number;
    for (int round = 0; round < ROUNDS; round++) {
        campaign(self);
        if (round % 3 == 0)
            sched_yield();
        if (atomic_load(&leader) == self) {
            atomic_fetch_add(&term, 1);
            atomic_store(&leader, 0);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t members[MEMBERS];
    for (long number = 0; number < MEMBERS; number++)
        pthread_create(&members[number], NULL, member, (void *)(number + 1));
    for (int number = 0; number < MEMBERS; number++)
        pthread_join(members[number], NULL);
    int most = 0;
    for (int number = 0; number <= MEMBERS * ROUNDS; number++)
        most = elected[number] > most ? elected[number] : most;
    assert(most <= 1);
    return 0;
}
