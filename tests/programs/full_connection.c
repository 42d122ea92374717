/*
 * A client and a server of one process that both write before they read. As long as a batch is one message that works;
 * with four of them the kernel does not keep what each has written, and they wait for each other. What is sent is a number
 * and no branch.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SMALL 1000
#define LARGE (16 << 20)

static int listening;
static struct sockaddr_in address = { .sin_family = AF_INET };
static volatile int batch = 1;
static char questions[LARGE], answers[LARGE];

static void *serve(void *unused)
{
    int fd = accept(listening, 0, 0);

    usleep(20000);
    if (send(fd, answers, batch == 1 ? SMALL : LARGE, 0) < 0)
        exit(3);
    if (recv(fd, questions, SMALL, MSG_WAITALL) != SMALL)
        exit(4);
    return unused;
}

static void *tune(void *unused)
{
    batch = 4;
    usleep(60000);
    batch = 1;
    return unused;
}

int main(void)
{
    pthread_t server, tuner;
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, size) || listen(listening, 1))
        return 2;
    getsockname(listening, (struct sockaddr *)&address, &size);
    pthread_create(&server, 0, serve, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, size))
        return 2;
    pthread_create(&tuner, 0, tune, 0);
    if (send(fd, questions, SMALL, 0) != SMALL || recv(fd, answers, SMALL, MSG_WAITALL) != SMALL)
        return 3;
    pthread_join(tuner, 0);
    pthread_join(server, 0);
    return 0;
}
