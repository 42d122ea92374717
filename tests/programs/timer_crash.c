// The thread that the C library makes for a timer begins with all signals blocked, and crashes.
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static int *volatile nowhere;

static void rings(union sigval value) { *nowhere = value.sival_int; }

int main(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = rings};
    struct itimerspec soon = {.it_value = {0, 1000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return 2;
    timer_settime(timer, 0, &soon, NULL);
    sleep(2);
    return 0;
}
