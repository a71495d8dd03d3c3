/* Two target regions of one program talk over TCP while the host waits for neither: each is a target task. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#pragma omp declare target
enum { rounds = 1000 };

static int exchange(int socket, int first) {
    int value = 0, one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int i = 0; i < rounds; i++) {
        if (first && send(socket, &i, sizeof i, MSG_NOSIGNAL) != sizeof i) return -1;
        if (recv(socket, &value, sizeof value, MSG_WAITALL) != sizeof value || value != i) return -1;
        if (!first && send(socket, &value, sizeof value, MSG_NOSIGNAL) != sizeof value) return -1;
    }
    return rounds;
}
#pragma omp end declare target

int main(void) {
    int port = 0, server = -1, server_rounds = 0, client_rounds = 0;
#pragma omp target map(from : port, server)
    {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        server = socket(AF_INET, SOCK_STREAM, 0);
        bind(server, (struct sockaddr*)&address, sizeof address);
        listen(server, 1);
        getsockname(server, (struct sockaddr*)&address, &length);
        port = ntohs(address.sin_port);
    }
#pragma omp parallel
#pragma omp single
    {
#pragma omp target nowait map(from : server_rounds) firstprivate(server)
        {int peer = accept(server, 0, 0);
    server_rounds = exchange(peer, 0);
    close(peer);
}
#pragma omp target nowait map(from : client_rounds) firstprivate(port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((unsigned short)port);
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    client_rounds = connect(peer, (struct sockaddr*)&address, sizeof address) == 0 ? exchange(peer, 1) : -2;
    close(peer);
}
#pragma omp taskwait
}
printf("server %d rounds, client %d rounds\n", server_rounds, client_rounds);
return 0;
}
