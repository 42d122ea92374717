// Threads that share one connection, and threads with connections of their own to one file.
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define ROWS 8

static sqlite3 *shared;

static void must(int result, sqlite3 *db, int line)
{
    if (result != SQLITE_OK && result != SQLITE_DONE && result != SQLITE_ROW) {
        fprintf(stderr, "line %d: %s\n", line, sqlite3_errmsg(db));
        exit(1);
    }
}

static void *insert(void *argument)
{
    int number = (int)(long)argument;
    sqlite3 *db = shared;
    if (number % 2) {
        must(sqlite3_open("threads.db", &db), db, __LINE__);
        sqlite3_busy_timeout(db, 20000);
    }
    for (int i = 0; i < ROWS; i++) {
        sqlite3_stmt *statement;
        must(sqlite3_prepare_v2(db, "insert into t values(?, ?)", -1, &statement, NULL), db, __LINE__);
        sqlite3_bind_int(statement, 1, number);
        sqlite3_bind_int(statement, 2, i);
        must(sqlite3_step(statement), db, __LINE__);
        must(sqlite3_finalize(statement), db, __LINE__);
    }
    if (db != shared)
        sqlite3_close(db);
    return NULL;
}

static int count(void *result, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    *(int *)result = atoi(values[0]);
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    int rows = -1;
    remove("threads.db");
    must(sqlite3_open("threads.db", &shared), shared, __LINE__);
    sqlite3_busy_timeout(shared, 20000);
    must(sqlite3_exec(shared, "create table t(a, b)", NULL, NULL, NULL), shared, __LINE__);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, insert, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    must(sqlite3_exec(shared, "select count(*) from t", count, &rows, NULL), shared, __LINE__);
    sqlite3_close(shared);
    printf("%d rows\n", rows);
    return rows != THREADS * ROWS;
}
