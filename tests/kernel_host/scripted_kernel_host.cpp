// A kernel host that answers each Load with ok, counts an answer in the shared words only when it receives an
// Unmap, and exits at an Unload.
#include "kernel_host/records.h"
#include "memory/file.h"

#include <sys/socket.h>

using namespace offpath;
using namespace offpath::kernel_host;

int main() {
    memory::Mapping shared;
    if (memory::Mapping::map(shared_fd, sizeof(Shared), shared) != Status::ok) return 1;
    std::byte bytes[max_record_bytes];
    for (;;) {
        const ssize_t got = recv(socket_fd, bytes, sizeof bytes, 0);
        Request request;
        if (got <= 0 || !decode(std::span(bytes, static_cast<std::size_t>(got)), request)) return 0;
        if (const auto* load = std::get_if<Load>(&request)) {
            const std::vector<std::byte> answer = encode(Answer{load->number, Status::ok, {}});
            if (send(socket_fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return 1;
        } else if (std::holds_alternative<Unload>(request)) {
            return 0;
        } else {
            reinterpret_cast<Shared*>(shared.data())->answers.fetch_add(1, std::memory_order_release);
        }
    }
}
