/*
 * Jobs add to a total, called by a library's threads. One of two updates is made under the library's
 * lock, in a callback in a callback; the total is added to without it.
 */
#include "pool.h"
#include <assert.h>

static int total, visits;

static void visit(void *item)
{
    visits += item != 0;
}

static void add(void *item)
{
    pool_locked(visit, item);
    int before = total;
    total = before + *(int *)item;
}

int main(void)
{
    int amounts[2] = { 10, 20 };
    void *items[2] = { &amounts[0], &amounts[1] };

    pool_run(add, items, 2);
    assert(visits == 2);
    assert(total == 30);
    return 0;
}
