/* A pool of two threads in a library that is not instrumented. */
#ifndef POOL_H
#define POOL_H

typedef void (*job)(void *item);

/* Runs the job on each item, two at a time, and returns when all are done. */
void pool_run(job work, void **items, int count);

/* Calls `visit` once for each item while the pool's lock is held. */
void pool_locked(job visit, void *item);

#endif
