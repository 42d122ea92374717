/* Two threads give a node back. Each takes one from its count, and looks only then whether that was the last one:
 * both see 0, and free the node. Nothing is noticed before the allocator has given it to both of them, one has written to
 * it, and the other one's allocator takes what is there for its list of free blocks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    atomic_int count;
    char text[20];
};

static struct node *node;

static void put(struct node *given, int later)
{
    atomic_fetch_sub(&given->count, 1);
    usleep(20000);
    if (atomic_load(&given->count) == 0) {
        usleep(later);
        free(given);
    }
}

static void *write_text(void *argument)
{
    (void)argument;
    put(node, 20000);
    usleep(60000);
    char *text = malloc(sizeof *node);
    memset(text, 'A', sizeof *node);
    usleep(100000);
    return text;
}

static void *read_text(void *argument)
{
    (void)argument;
    struct node *other = malloc(sizeof *other);
    free(other);
    put(node, 40000);
    usleep(90000);
    struct node *first = malloc(sizeof *first);
    struct node *second = malloc(sizeof *second);
    free(first);
    return second;
}

int main(void)
{
    pthread_t one, other;
    node = malloc(sizeof *node);
    atomic_init(&node->count, 2);
    pthread_create(&one, NULL, write_text, NULL);
    pthread_create(&other, NULL, read_text, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
