/* A thread uses the configuration without waiting for the one that loads it. The process dies
 * before the configuration is loaded, so that the write which came too late never happens. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct configuration {
    int level;
    char name[16];
};

static struct configuration *configuration;

static void *load(void *argument)
{
    usleep(400000);
    struct configuration *loaded = malloc(sizeof *loaded);
    if (loaded == NULL)
        return argument;
    loaded->level = 3;
    snprintf(loaded->name, sizeof loaded->name, "main");
    configuration = loaded;
    return argument;
}

static void *use(void *argument)
{
    usleep(50000);
    printf("level %d of %s\n", configuration->level, configuration->name);
    return argument;
}

int main(void)
{
    pthread_t loader, user;
    pthread_create(&loader, NULL, load, NULL);
    pthread_create(&user, NULL, use, NULL);
    pthread_join(loader, NULL);
    pthread_join(user, NULL);
    return 0;
}
