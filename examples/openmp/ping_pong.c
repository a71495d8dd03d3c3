/* Two target regions of one program talk over TCP while the host waits for neither: each is a target task.
 * They run on two devices if the program has them, else both on device 0.
 *
 *     ping_pong [ADDRESS of device 0, as device 1 sees it] */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <omp.h>
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

static int serve(int server) {
    const int peer = accept(server, 0, 0);
    const int done = exchange(peer, 0);
    close(peer);
    close(server);
    return done;
}

static int ask(in_addr_t address, int port) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr.s_addr = address};
    const int peer = socket(AF_INET, SOCK_STREAM, 0);
    server.sin_port = htons((unsigned short)port);
    const int done = connect(peer, (struct sockaddr*)&server, sizeof server) == 0 ? exchange(peer, 1) : -2;
    close(peer);
    return done;
}
#pragma omp end declare target

int main(int count, char** arguments) {
    /* Where the client finds the server's device. */
    const char* const address = count > 1 ? arguments[1] : "127.0.0.1";
    const int second = omp_get_num_devices() > 1 ? 1 : 0;
    const in_addr_t server_address = inet_addr(address);
    int port = 0, server = -1, server_rounds = 0, client_rounds = 0;
#pragma omp target device(0) map(from : port, server)
    {
        struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
        socklen_t length = sizeof any;
        server = socket(AF_INET, SOCK_STREAM, 0);
        bind(server, (struct sockaddr*)&any, sizeof any);
        listen(server, 1);
        getsockname(server, (struct sockaddr*)&any, &length);
        port = ntohs(any.sin_port);
    }
#pragma omp parallel
#pragma omp single
    {
#pragma omp target nowait device(0) map(from : server_rounds) firstprivate(server)
        server_rounds = serve(server);
#pragma omp target nowait device(second) map(from : client_rounds) firstprivate(port, server_address)
        client_rounds = ask(server_address, port);
#pragma omp taskwait
    }
    printf("%d rounds: the server on device 0 counted %d, the client on device %d %d\n", rounds,
           server_rounds, second, client_rounds);
    return 0;
}
