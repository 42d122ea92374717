// A logger's writer takes a line from the queue, says that nothing is left, and writes the line then: who has flushed
// the log does not find it. The run ends before the writer has touched the file; one that passes goes on with a second
// line.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t added, empty;
    int lines;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static struct {
    pthread_mutex_t lock;
    int written;
} file = {PTHREAD_MUTEX_INITIALIZER, 0};

static void *writer(void *unused) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&queue.lock);
        while (queue.lines == 0)
            pthread_cond_wait(&queue.added, &queue.lock);
        queue.lines--;
        pthread_cond_signal(&queue.empty);
        pthread_mutex_unlock(&queue.lock);

        usleep(200000);
        pthread_mutex_lock(&file.lock);
        file.written++;
        pthread_mutex_unlock(&file.lock);
    }
    return unused;
}

static void flush(void) {
    pthread_mutex_lock(&queue.lock);
    while (queue.lines > 0)
        pthread_cond_wait(&queue.empty, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
}

static int written(void) {
    pthread_mutex_lock(&file.lock);
    int lines = file.written;
    pthread_mutex_unlock(&file.lock);
    return lines;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, writer, 0);
    for (int i = 1; i <= 2; i++) {
        pthread_mutex_lock(&queue.lock);
        queue.lines++;
        pthread_cond_signal(&queue.added);
        pthread_mutex_unlock(&queue.lock);
        flush();
        assert(written() == i);
    }
    pthread_join(thread, 0);
}
