// endless SECONDS: one rank that sends 4 MiB to itself through its device until the time is up (exit code 0)
// or the device is lost (3). Prints "running" after the first exchange.
#include <offpath/offpath.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

[[noreturn]] void end(const char* what, offpath_status_t status) {
    std::fprintf(stderr, "%s: %s\n", what, offpath_status_string(status));
    std::exit(status == OFFPATH_ERR_PEER_LOST ? 3 : 1);
}
void check(const char* what, offpath_status_t status) {
    if (status != OFFPATH_OK) end(what, status);
}

}  // namespace

int main(int argc, char** argv) {
    using Clock = std::chrono::steady_clock;
    const auto stop = Clock::now() + std::chrono::duration<double>(argc > 1 ? std::atof(argv[1]) : 1);
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.size = 1;
    params.allgather = [](void*, const void* mine, std::size_t bytes, void* all) {
        std::memcpy(all, mine, bytes);
        return 0;
    };
    offpath_context_h context = nullptr;
    offpath_team_h world = nullptr;
    check("init", offpath_init(&params, &context));
    check("world", offpath_team_world(context, &world));
    std::vector<char> from(4 << 20, 'x'), to(from.size());
    for (bool first = true; Clock::now() < stop; first = false) {
        offpath_request_h sent = nullptr, received = nullptr;
        check("recv", offpath_recv_offload(world, to.data(), to.size(), 0, 1, &received));
        check("send", offpath_send_offload(world, from.data(), from.size(), 0, 1, &sent));
        const offpath_status_t a = offpath_request_wait(sent), b = offpath_request_wait(received);
        check("wait", a);
        check("wait", b);
        check("free", offpath_request_free(sent));
        check("free", offpath_request_free(received));
        if (first) {
            std::puts("running");
            std::fflush(stdout);
        }
    }
    check("finalize", offpath_finalize(context));
    return 0;
}
