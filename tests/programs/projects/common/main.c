/* Two threads fill a queue that the initial one empties. With an argument, a plug-in is loaded from
   that file, used, unloaded, and loaded and used again. Prints "sum 190", then the plug-in's. */
#include "queue.h"

#include <dlfcn.h>
#include <stdio.h>

static struct queue queue;

static void *fill(void *argument)
{
    int item;
    for (item = 0; item < 10; item++)
        queue_put(&queue, weigh(twist(item)));
    return argument;
}

static int use_plugin(const char *file)
{
    int (*work)(int);
    int result;
    void *plugin = dlopen(file, RTLD_NOW);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    work = (int (*)(int))dlsym(plugin, "plugin_work");
    result = work ? work(3) : -1;
    dlclose(plugin);
    return result;
}

int main(int count, char **arguments)
{
    pthread_t threads[2];
    int i, sum = 0;
    queue_init(&queue);
    for (i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, fill, 0);
    for (i = 0; i < 20; i++)
        sum += queue_take(&queue);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    queue_destroy(&queue);
    printf("sum %d\n", sum);
    if (count > 1) {
        printf("plugin %d\n", use_plugin(arguments[1]));
        printf("plugin %d\n", use_plugin(arguments[1]));
    }
    return sum != 190;
}
