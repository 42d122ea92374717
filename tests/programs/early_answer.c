/* A server at a UNIX socket with a name that counts a request behind the answer, and its client, in one process. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listening, requests;

static void *serve(void *unused)
{
    int fd = accept(listening, 0, 0);
    char byte;

    while (read(fd, &byte, 1) == 1) {
        write(fd, &byte, 1);
        usleep(50000);
        requests++;
    }
    close(fd);
    return unused;
}

int main(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    pthread_t server;
    char byte = 'q';

    snprintf(address.sun_path, sizeof address.sun_path, "early_answer.%d", (int)getpid());
    listening = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 1))
        return 2;
    pthread_create(&server, 0, serve, 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        return 3;
    unlink(address.sun_path);
    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
        return 4;
    assert(requests == 1);
    close(fd);
    pthread_join(server, 0);
    return 0;
}
