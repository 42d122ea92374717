// A reader finds a pointer and uses it again, though another thread has made it null in between. The program has a handler of
// its own for that, which tells of it and ends the process in the way that the program was told, or goes on.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item { int value; };

static struct item one = { 7 };
static struct item *current = &one;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *how = "abort";
static volatile int asked;
static volatile int skipped;
static sigjmp_buf back;

static void handler(int signal_number) {
    if (write(2, "crashed\n", 8) != 8) _exit(2);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "exit") == 0) _exit(3);
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "raise") == 0) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    if (strcmp(how, "thread") == 0) {
        asked = signal_number;
        for (;;) pause();
    }
    if (strcmp(how, "jump") == 0) {
        skipped = 1;
        siglongjmp(back, 1);
    }
    // "once": the handler returns, and the access faults again, without one.
}

static void *closer(void *argument) {
    pthread_mutex_lock(&lock);
    current = NULL;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *reader(void *argument) {
    if (sigsetjmp(back, 1)) return argument;
    pthread_mutex_lock(&lock);
    int there = current != NULL;
    pthread_mutex_unlock(&lock);
    if (there) {
        usleep(100);
        one.value += current->value;
    }
    return argument;
}

static void *reporter(void *argument) {
    while (!asked) usleep(1000);
    if (asked < 0) return argument;
    signal(asked, SIG_DFL);
    kill(getpid(), asked);
    return argument;
}

int main(int count, char **arguments) {
    if (count > 1) how = arguments[1];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    if (strcmp(how, "once") == 0) action.sa_flags = SA_RESETHAND;
    sigaction(SIGSEGV, &action, NULL);
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, closer, NULL);
    if (strcmp(how, "thread") == 0) pthread_create(&threads[2], NULL, reporter, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (strcmp(how, "thread") == 0) {
        asked = -1;
        pthread_join(threads[2], NULL);
    }
    return skipped ? 4 : 0;
}
