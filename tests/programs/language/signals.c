// Signal handlers that interrupt instrumented code: by raise, by another thread, by a timer; masks;
// sigwait; a handler that leaves by siglongjmp.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t raised, ticks, kicked, depth;
static volatile int last_signal;
static volatile pid_t sender;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long work_done;

__attribute__((noinline)) static void note(int number) {
    last_signal = number;
    raised = raised + 1;
}

static void on_raise(int number) {
    depth = depth + 1;
    note(number);
    if (number == SIGUSR1 && depth < 2) {
        raise(SIGUSR2);
    }
    depth = depth - 1;
}

static void on_info(int number, siginfo_t *info, void *context) {
    sender = info->si_pid;
    kicked = kicked + (number == SIGUSR1 && context != NULL);
}

static void on_tick(int number) {
    int saved = errno;
    if (number == SIGALRM) {
        ticks = ticks + 1;
    }
    errno = saved;
}

static sigjmp_buf place;
static void on_fault(int number) { siglongjmp(place, number); }

static int set(int number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, NULL);
}

static void *busy(void *unused) {
    // Until the handler has run in this thread.
    unsigned spin = 1;
    while (!kicked) {
        spin = spin * 1664525 + 1013904223;
        if (spin % 7 == 0) {
            pthread_mutex_lock(&lock);
            work_done++;
            pthread_mutex_unlock(&lock);
        }
    }
    return unused;
}

static void *waiter(void *argument) {
    int number = 0;
    sigwait((sigset_t *)argument, &number);
    last_signal = number;
    return NULL;
}

int main(void) {
    set(SIGUSR1, on_raise);
    set(SIGUSR2, on_raise);
    raise(SIGUSR1);
    printf("raised %d last %d\n", (int)raised, last_signal == SIGUSR2);

    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_info;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGUSR1, &action, &old);
    if (old.sa_handler != on_raise) {
        return 1;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, busy, NULL);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    printf("kicked %d by myself %d\n", (int)kicked, sender == getpid());

    signal(SIGALRM, on_tick);
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    long spins = 0;
    while (ticks < 5) {
        spins++;
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("ticks %d\n", ticks >= 5 && spins > 0);

    sigset_t set_of_two;
    sigemptyset(&set_of_two);
    sigaddset(&set_of_two, SIGUSR1);
    sigaddset(&set_of_two, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_of_two, NULL);
    int before = kicked;
    raise(SIGUSR1);
    int during = kicked;
    sigset_t pending;
    sigpending(&pending);
    int is_pending = sigismember(&pending, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &set_of_two, NULL);
    printf("masked %d %d %d\n", during - before, is_pending, kicked - before);

    sigdelset(&set_of_two, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set_of_two, NULL);
    pthread_create(&thread, NULL, waiter, &set_of_two);
    pthread_kill(thread, SIGTERM);
    pthread_join(thread, NULL);
    printf("waited %d\n", last_signal == SIGTERM);

    set(SIGSEGV, on_fault);
    int caught = sigsetjmp(place, 1);
    if (caught == 0) {
        int *volatile nowhere = NULL;
        *nowhere = 1;
    }
    printf("fault %d\n", caught == SIGSEGV);
    return caught == SIGSEGV ? 0 : 1;
}
