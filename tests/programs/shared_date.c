/* Two threads ask for the parts of a date, which the C library gives in one object that all threads share. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static void *look(void *argument)
{
    const time_t *when = argument;
    for (int i = 0; i < 4; i++) {
        const struct tm *parts = gmtime(when);
        int day = parts->tm_yday;
        assert(day == (*when / 86400) % 365);
    }
    return NULL;
}

int main(void)
{
    time_t dates[2] = {86400 * 10, 86400 * 200};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, look, &dates[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
