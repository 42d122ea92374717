/* Starts processes of its own kind in all ways that there are. The first argument says how. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void *add(void *argument)
{
    int i;
    for (i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        total += *(int *)argument;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

static void run(int step)
{
    pthread_t threads[2];
    int i;
    for (i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, add, &step);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
}

static int status_of(pid_t pid)
{
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What the parent had done, and what the child does with threads of its own. */
static int child(int expected)
{
    run(2);
    assert(total == expected);
    return 0;
}

static void *fork_in_thread(void *expected)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(*(int *)expected));
    return (void *)(long)status_of(pid);
}

/* The child has the lock as it was at the fork, and nobody who would give it back. */
static void *hold(void *held)
{
    pthread_mutex_lock(&lock);
    sem_post(held);
    usleep(200000);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* The same in a call, which the child's copy of the log has no end of. */
static int line[2];

static void *hold_and_read(void *held)
{
    char byte;
    pthread_mutex_lock(&lock);
    sem_post(held);
    if (read(line[0], &byte, 1) != 1)
        abort();
    pthread_mutex_unlock(&lock);
    return 0;
}

static int forks_while_held(int expected, void *(*holds)(void *))
{
    pthread_t thread;
    sem_t held;
    pid_t pid;
    sem_init(&held, 0, 0);
    if (pipe(line))
        abort();
    pthread_create(&thread, 0, holds, &held);
    sem_wait(&held);
    usleep(20000);
    pid = fork();
    if (pid == 0)
        exit(child(expected));
    usleep(200000);
    if (write(line[1], "", 1) != 1)
        abort();
    pthread_join(thread, 0);
    return status_of(pid);
}

/* Looks whether the child is done, for half a second at most. */
static int polls(void)
{
    pid_t pid = fork();
    int status, tries;
    if (pid == 0) {
        usleep(20000);
        _exit(0);
    }
    for (tries = 0; tries < 2000; tries++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        usleep(5000);
    }
    return 1;
}

/* The child is killed where it runs, not before it does. */
static int kills(void)
{
    int ready[2];
    char byte = 0;
    pid_t pid;
    if (pipe(ready))
        return 1;
    pid = fork();
    if (pid == 0) {
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    kill(pid, SIGKILL);
    return status_of(pid) != 128 + SIGKILL;
}

static int forks(int expected)
{
    pid_t pid = fork();
    if (pid == 0)
        exit(child(expected));
    return status_of(pid);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    int status = 0, thirty = 30, thirty_one = 31;
    run(1);
    if (!strcmp(how, "ok"))
        printf("fine\n");
    else if (!strcmp(how, "bad"))
        assert(total == 11);
    else if (!strcmp(how, "status"))
        return 3;
    else if (!strcmp(how, "fork"))
        status = forks(thirty);
    else if (!strcmp(how, "fork-held"))
        status = forks_while_held(thirty, hold);
    else if (!strcmp(how, "fork-held-reading"))
        status = forks_while_held(thirty, hold_and_read);
    else if (!strcmp(how, "fork-polled"))
        status = polls();
    else if (!strcmp(how, "fork-killed"))
        status = kills();
    else if (!strcmp(how, "fork-bad"))
        status = forks(thirty_one);
    else if (!strcmp(how, "fork-thread") || !strcmp(how, "fork-thread-bad")) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, 0, fork_in_thread, how[11] ? &thirty_one : &thirty);
        pthread_join(thread, &result);
        status = (int)(long)result;
    } else if (!strcmp(how, "exec"))
        execl(arguments[0], arguments[0], "status", (char *)0);
    else if (!strcmp(how, "ways")) {
        char command[500];
        char *child_arguments[] = {arguments[0], "ok", 0};
        pid_t pid;
        FILE *pipe;
        snprintf(command, sizeof command, "%s ok", arguments[0]);
        status |= system(command);
        pipe = popen(command, "r");
        status |= pipe ? pclose(pipe) : 1;
        status |= posix_spawn(&pid, arguments[0], 0, 0, child_arguments, environ);
        status |= status_of(pid);
        pid = vfork();
        if (pid == 0) {
            execv(arguments[0], child_arguments);
            _exit(127);
        }
        status |= status_of(pid);
    } else if (!strcmp(how, "daemon")) {
        if (daemon(1, 1))
            return 1;
        usleep(300000);
        assert(total == 11);
    } else if (!strcmp(how, "sleep"))
        sleep(600);
    return status;
}
