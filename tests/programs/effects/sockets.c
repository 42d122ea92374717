// Two threads over sockets, pipes, epoll and poll; shared text that only the library reads
// and writes.
//~ CHECK: 3 shared cells
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static char shared[32] = "before";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *serve(void *argument)
{
    int listener = *(int *)argument;
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    int fd = accept(listener, (struct sockaddr *)&peer, &length);
    assert(fd >= 0 && length == sizeof peer && peer.sin_family == AF_INET);
    char request[64];
    ssize_t got = recv(fd, request, sizeof request, 0);
    assert(got == 5 && memcmp(request, "hello", 5) == 0);
    pthread_mutex_lock(&lock);
    snprintf(shared, sizeof shared, "%.5s", request);
    pthread_mutex_unlock(&lock);
    struct iovec part = {"world", 5};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    assert(sendmsg(fd, &message, 0) == 5);
    close(fd);
    return NULL;
}

int main(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    assert(inet_pton(AF_INET, "127.0.0.1", &address.sin_addr) == 1);
    assert(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    assert(listen(listener, 1) == 0);
    socklen_t length = sizeof address;
    assert(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    pthread_t thread;
    pthread_create(&thread, NULL, serve, &listener);

    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    char port[16];
    snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
    assert(getaddrinfo("127.0.0.1", port, &hints, &found) == 0);
    int fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    assert(connect(fd, found->ai_addr, found->ai_addrlen) == 0);
    freeaddrinfo(found);
    int option = 0;
    length = sizeof option;
    assert(getsockopt(fd, SOL_SOCKET, SO_TYPE, &option, &length) == 0 && option == SOCK_STREAM);
    assert(send(fd, "hello", 5, 0) == 5);

    int poller = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = fd}, seen[4];
    assert(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &wanted) == 0);
    assert(epoll_wait(poller, seen, 4, -1) == 1 && seen[0].data.fd == fd);
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    assert(poll(&polled, 1, -1) == 1 && (polled.revents & POLLIN));
    fd_set reading;
    FD_ZERO(&reading);
    FD_SET(fd, &reading);
    assert(select(fd + 1, &reading, NULL, NULL, NULL) == 1 && FD_ISSET(fd, &reading));
    char answer[16], more[16];
    struct iovec parts[2] = {{answer, 2}, {more, sizeof more}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    assert(recvmsg(fd, &message, 0) == 5 && answer[1] == 'o' && more[2] == 'd');
    close(fd);
    close(poller);

    pthread_mutex_lock(&lock);
    printf("%s %.3s\n", shared, shared);
    fputs(shared, stdout);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    int counter = eventfd(3, 0);
    eventfd_t value = 0;
    assert(eventfd_read(counter, &value) == 0 && value == 3);
    close(counter);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert(pthread_sigmask(SIG_BLOCK, &set, &old) == 0 && !sigismember(&old, SIGUSR1));
    assert(raise(SIGUSR1) == 0 && sigpending(&set) == 0 && sigismember(&set, SIGUSR1));
    close(listener);
    return 0;
}
