/* Memory that the C library hands out or fills: texts, tables, and a buffer that one thread fills
 * and another compares. */
#include <assert.h>
#include <ctype.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char buffer[32];
static int ends[2];
static int filled;

static void *fill(void *unused)
{
    pthread_mutex_lock(&lock);
    ssize_t length = read(ends[0], buffer, sizeof buffer);
    filled = length > 0;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

static int version_is_old(void)
{
    const char *version = gnu_get_libc_version();
    return version[0] == '2' && version[1] == '.' && atoi(version + 2) < 21;
}

static int letters(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += isalpha((unsigned char)*text) != 0;
    return count;
}

int main(void)
{
    pthread_t filler;
    if (pipe(ends) || write(ends[1], "a test", 7) != 7)
        return 1;
    pthread_create(&filler, NULL, fill, NULL);
    pthread_mutex_lock(&lock);
    while (!filled)
        pthread_cond_wait(&changed, &lock);
    int same = strcmp(buffer, "a test") == 0;
    pthread_mutex_unlock(&lock);
    pthread_join(filler, NULL);
    const char *message = strerror(2);
    assert(same && message[0] != '\0');
    assert(letters("ab1 c") == 3);
    return version_is_old();
}
