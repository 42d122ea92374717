// A thread asks for a mutex that was a local variable of the function that had started it. What lies there by then says that it is
// taken, and nobody gives it back.
#include <pthread.h>
#include <unistd.h>

static int done;

static void *worker(void *argument) {
    pthread_mutex_t *lock = argument;
    usleep(100000);
    pthread_mutex_lock(lock);
    done = 1;
    pthread_mutex_unlock(lock);
    return 0;
}

static pthread_t start(void) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_create(&thread, 0, worker, &lock);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return thread;
}

static int sum(void) {
    volatile int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = i % 4 == 0;
    usleep(300000);
    int sum = 0;
    for (int i = 0; i < 64; i++)
        sum += numbers[i];
    return sum;
}

int main(void) {
    pthread_t thread = start();
    int all = sum();
    pthread_join(thread, 0);
    return all > 100 || !done;
}
