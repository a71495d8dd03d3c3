// A host and a device joined by a link. The test drives both; it acts as the proxy at the device's end.
#pragma once

#include "../emulation.h"
#include "link/choice/transport_choice.h"
#include "link/device_links.h"
#include "link/host_link.h"
#include "transport/faulty/faulty.h"
#include "transport/loopback/loopback.h"
#include "transport/ucx/one_sided.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace offpath::link::test {

using namespace std::chrono_literals;

using OneSidedPair = std::pair<std::unique_ptr<transport::OneSided>, std::unique_ptr<transport::OneSided>>;

// How the transports of the two sides are made.
struct Way {
    std::string name;
    std::function<std::pair<std::unique_ptr<transport::Transport>, std::unique_ptr<transport::Transport>>()>
        make;  // the device's, the host's
    std::function<OneSidedPair()> make_one_sided = [] { return OneSidedPair(); };
};

inline Way ucx_way() {
    return {"ucx", [] {
                std::unique_ptr<transport::Transport> device, host;
                std::string problem;
                setenv("UCX_NET_DEVICES", "lo", 0);
                EXPECT_EQ(make_ucx_way("", device, problem), Status::ok) << problem;
                EXPECT_EQ(make_ucx_way("", host, problem), Status::ok) << problem;
                return std::pair(std::move(device), std::move(host));
            }};
}

inline Way tcp_way() {
    return {"tcp", [] {
                std::unique_ptr<transport::Transport> device, host;
                std::string problem;
                EXPECT_EQ(make_tcp_way("lo", true, device, problem), Status::ok) << problem;
                EXPECT_EQ(make_tcp_way("lo", false, host, problem), Status::ok) << problem;
                return std::pair(std::move(device), std::move(host));
            }};
}

// Hubs live as long as the process, because the transports of a link end after the last line of its test.
inline transport::LoopbackHub& make_hub(const transport::LoopbackConfig& config = {}) {
    static std::vector<std::unique_ptr<transport::LoopbackHub>> hubs;
    return *hubs.emplace_back(std::make_unique<transport::LoopbackHub>(config));
}

inline Way loopback_way(const std::string& name, transport::LoopbackConfig config) {
    return {name, [config] {
                auto& hub = make_hub(config);
                return std::pair(hub.join(), hub.join());
            }};
}

inline Way faulty_way() {
    return {
        "faulty", [] {
            auto& hub = make_hub();
            transport::FaultPlan plan;
            plan.delay_message = 0.3;
            plan.delay_completion = 0.3;
            plan.seed = 11;
            auto device = transport::make_faulty(hub.join(), plan);
            plan.seed = 12;
            auto host = transport::make_faulty(hub.join(), plan);
            return std::pair<std::unique_ptr<transport::Transport>, std::unique_ptr<transport::Transport>>(
                std::move(device), std::move(host));
        }};
}

// Completions are written into the host's memory: passively through shared memory, or emulated over TCP.
inline Way rings_way(Way way, const std::string& name, const std::string& tls) {
    way.name = name;
    way.make_one_sided = [tls] {
        OneSidedPair made;
        std::string problem;
        transport::UcxConfig config;
        config.tls = tls;
        config.net_devices = "lo";
        config.several_threads = true;
        for (auto* side : {&made.first, &made.second})
            if (transport::make_ucx_one_sided(config, *side, problem) != Status::ok)
                throw std::runtime_error(problem);
        return made;
    };
    return way;
}

inline std::vector<Way> all_ways() {
    transport::LoopbackConfig shuffled;
    shuffled.order = transport::LoopbackConfig::Order::shuffled;
    shuffled.seed = 5;
    transport::LoopbackConfig eager;
    eager.eager_bytes = 1 << 20;
    std::vector<Way> ways = {loopback_way("loopback", {}),
                             loopback_way("shuffled", shuffled),
                             loopback_way("eager", eager),
                             faulty_way(),
                             tcp_way(),
                             ucx_way(),
                             rings_way(ucx_way(), "emulated_rings", "tcp")};
    // Under qemu, UCX (1.17) considers a living peer over shared memory to be dead, and the link is lost.
    if (!offpath::test::emulated()) ways.push_back(rings_way(faulty_way(), "passive_rings", "sysv"));
    return ways;
}

// A completion of a single operation.
struct Arrival : Completion {
    Arrival() {
        function = [](Completion* self, Status with) {
            static_cast<Arrival*>(self)->status = with;
            ++static_cast<Arrival*>(self)->calls;
        };
    }
    Status status = Status::in_progress;
    int calls = 0;
};

inline std::byte pattern(std::uint64_t seed, std::uint64_t i) {
    return static_cast<std::byte>((i * 2654435761u + seed * 97 + (i >> 12)) >> 5);
}
inline std::vector<std::byte> pattern_bytes(std::uint64_t seed, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        made[i] = pattern(seed, i);
    return made;
}
inline std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uint64_t>(memory);
}

class Joined {
  public:
    static constexpr std::uint64_t token = 0x1122334455667788;

    explicit Joined(const Way& way, const control::ChannelSizes& sizes = {}) {
        auto [device, host_transport] = way.make();
        auto [device_side, host_side] = way.make_one_sided();
        const bool rings = device_side != nullptr;
        std::string problem;
        links = make_device_links(std::move(device), std::move(device_side));
        EXPECT_EQ(make_host_link(std::move(host_transport), std::move(host_side), host, problem), Status::ok)
            << problem;
        EXPECT_EQ(links->open(host->address(), token, sizes, link, problem), Status::ok) << problem;
        proxy = link->take_channel();
        transfers = link->take_transfers();
        EXPECT_EQ(host->connect(link->address(), token, sizes, client, problem), Status::ok) << problem;
        if (rings) {
            EXPECT_TRUE(until([&] { return host->rings() == "remote memory"; }));
        }
    }
    ~Joined() {
        client.reset();
        host.reset();
    }

    unsigned step() { return links->progress() + transfers->progress(); }
    // Progresses the device until `done` holds; sleeps as a proxy does.
    bool until(const std::function<bool()>& done, std::chrono::milliseconds limit = 20s) {
        const auto deadline = std::chrono::steady_clock::now() + limit;
        while (!done()) {
            if (std::chrono::steady_clock::now() > deadline) return false;
            if (step() > 0 || transfers->arm() != Status::ok || links->arm() != Status::ok) continue;
            pollfd ready{links->event_fd(), POLLIN, 0};
            poll(&ready, 1, 5);
        }
        return true;
    }
    Status staged(memory::StagingDirection direction, const void* host_memory, void* local,
                  std::size_t bytes) {
        Arrival arrival;
        const Status status = transfers->start(direction, address_of(host_memory),
                                               static_cast<std::byte*>(local), bytes, &arrival);
        if (status != Status::in_progress) return status;
        if (!until([&] { return arrival.calls > 0; })) return Status::in_progress;
        return arrival.status;
    }

    std::unique_ptr<DeviceLinks> links;
    std::unique_ptr<DeviceLink> link;
    std::unique_ptr<control::ProxyChannel> proxy;
    std::unique_ptr<memory::StagedTransfers> transfers;
    std::unique_ptr<HostLink> host;
    std::unique_ptr<control::ClientChannel> client;
};

}  // namespace offpath::link::test
