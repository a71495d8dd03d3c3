// The second process of the two-process tests: `link_peer host|device`. Prints its address for the other
// side, in hexadecimal, reads the other's, and serves until it is killed or its input ends.
//   host    a client with 1 MiB of memory, whose address it prints after its own; it also prints when it is
//           connected, because it must not be asked for anything before
//   device  completes every command at once
#include "link/choice/transport_choice.h"
#include "link/device_links.h"
#include "link/host_link.h"
#include "link/plugin/plugin_loader.h"
#include "peer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

using namespace offpath;
using namespace offpath::link;
using namespace offpath::link::test;

namespace {

int be_host() {
    std::unique_ptr<HostLink> link;
    std::unique_ptr<control::ClientChannel> channel;
    std::string problem, line;
    if (load_host_link({}, link, problem) != Status::ok) {
        std::cerr << problem << '\n';
        return 1;
    }
    static std::vector<std::byte> memory(1 << 20, std::byte{42});
    std::cout << to_hex(link->address()) << '\n'
              << reinterpret_cast<std::uint64_t>(memory.data()) << std::endl;
    if (!std::getline(std::cin, line) ||
        link->connect(from_hex(line), peer_token, {}, channel, problem) != Status::ok) {
        std::cerr << problem << '\n';
        return 1;
    }
    std::cout << "connected" << std::endl;
    char byte = 0;
    while (read(0, &byte, 1) > 0) {
    }
    channel.reset();
    return 0;
}

int be_device() {
    std::unique_ptr<DeviceLinks> links;
    std::unique_ptr<DeviceLink> link;
    std::string problem, line;
    if (open_device_links("", links, problem) != Status::ok) {
        std::cerr << problem << '\n';
        return 1;
    }
    if (!std::getline(std::cin, line) ||
        links->open(from_hex(line), peer_token, {}, link, problem) != Status::ok) {
        std::cerr << problem << '\n';
        return 1;
    }
    std::cout << to_hex(link->address()) << std::endl;
    const auto channel = link->take_channel();
    fcntl(0, F_SETFL, O_NONBLOCK);
    char byte = 0;
    while (read(0, &byte, 1) != 0) {
        std::span<const std::byte> record;
        links->progress();
        while (channel->next(record) == control::NextRecord::record)
            channel->complete(0, Status::ok);
        channel->wake();
        pollfd ready{links->event_fd(), POLLIN, 0};
        if (channel->prepare_sleep() && links->arm() == Status::ok) poll(&ready, 1, 10);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    setenv("UCX_NET_DEVICES", "lo", 0);
    const std::string role = argc == 2 ? argv[1] : "";
    return role == "host" ? be_host() : role == "device" ? be_device() : 2;
}
