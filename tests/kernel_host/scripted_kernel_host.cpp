// A kernel host that answers each Load with ok, counts an answer in the shared words only when it receives an
// Unmap, and exits at an Unload. It answers a Run with ok, but if its first argument byte is 1, only after
// the next Run has come.
#include "kernel_host/host_process.h"
#include "kernel_host/records.h"
#include "memory/file.h"

#include <sys/socket.h>

#include <utility>

using namespace offpath;
using namespace offpath::kernel_host;

int main(int, char** arguments) {
    memory::Mapping shared;
    if (memory::Mapping::map(shared_fd, sizeof(Shared), shared) != Status::ok) return 1;
    Watched watched;
    watched.stops = &reinterpret_cast<Shared*>(shared.data())->stops;
    if (!settle_host(arguments, watched)) return 1;
    std::byte bytes[max_record_bytes];
    std::uint64_t held = 0;
    const auto say = [](std::uint64_t number) {
        const std::vector<std::byte> answer = encode(Answer{number, Status::ok, {}});
        return send(socket_fd, answer.data(), answer.size(), MSG_NOSIGNAL) >= 0;
    };
    for (;;) {
        const ssize_t got = recv(socket_fd, bytes, sizeof bytes, 0);
        Request request;
        if (got <= 0 || !decode(std::span(bytes, static_cast<std::size_t>(got)), request)) return 0;
        if (const auto* load = std::get_if<Load>(&request)) {
            if (!say(load->number)) return 1;
        } else if (const auto* run = std::get_if<Run>(&request)) {
            if (const std::uint64_t number = std::exchange(held, 0); number != 0 && !say(number)) return 1;
            if (!run->arguments.empty() && run->arguments[0] == std::byte{1})
                held = run->number;
            else if (!say(run->number))
                return 1;
        } else if (std::holds_alternative<Unload>(request)) {
            return 0;
        } else {
            reinterpret_cast<Shared*>(shared.data())->answers.fetch_add(1, std::memory_order_release);
        }
    }
}
