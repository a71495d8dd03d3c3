// The fixture of the conformance tests: two transports of a kind in one process. conformance_test.cpp lists
// the kinds.
#pragma once

#include "harness.h"

#include "transport/encrypted/encrypted.h"
#include "transport/faulty/faulty.h"
#include "transport/loopback/loopback.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/ucx/ucx_transport.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace offpath::transport::test {

struct World {
    virtual ~World() = default;
    virtual std::unique_ptr<Transport> make() = 0;
};

struct LoopbackWorld : World {
    explicit LoopbackWorld(LoopbackConfig config) : hub(config) {}
    std::unique_ptr<Transport> make() override { return hub.join(); }
    LoopbackHub hub;
};

struct FaultyWorld : LoopbackWorld {
    FaultyWorld() : LoopbackWorld({LoopbackConfig::Order::shuffled, 7}) {}
    std::unique_ptr<Transport> make() override {
        FaultPlan plan;
        plan.seed = ++seed;
        plan.delay_message = plan.delay_completion = 0.3;
        return make_faulty(LoopbackWorld::make(), plan);
    }
    std::uint64_t seed = 0;
};

struct UcxWorld : World {
    explicit UcxWorld(std::string tls, bool in_process = false) {
        config.tls = std::move(tls);
        config.in_process = in_process;
    }
    std::unique_ptr<Transport> make() override {
        std::unique_ptr<Transport> transport;
        std::string problem;
        EXPECT_EQ(make_ucx_transport(config, transport, problem), Status::ok) << problem;
        return transport;
    }
    UcxConfig config;
};

struct TcpWorld : World {
    std::unique_ptr<Transport> make() override {
        std::unique_ptr<Transport> transport;
        std::string problem;
        EXPECT_EQ(make_tcp_transport({"lo", true}, transport, problem), Status::ok) << problem;
        return transport;
    }
};

struct EncryptedWorld : World {
    explicit EncryptedWorld(std::unique_ptr<World> below) : world(std::move(below)) {}
    std::unique_ptr<Transport> make() override { return make_encrypted_transport(world->make()); }
    std::unique_ptr<World> world;
};

inline std::unique_ptr<World> make_world(const std::string& kind) {
    constexpr std::string_view encrypted = "encrypted_";
    if (kind.starts_with(encrypted))
        return std::make_unique<EncryptedWorld>(make_world(kind.substr(encrypted.size())));
    if (kind == "loopback") return std::make_unique<LoopbackWorld>(LoopbackConfig{});
    if (kind == "loopback_shuffled")
        return std::make_unique<LoopbackWorld>(LoopbackConfig{LoopbackConfig::Order::shuffled, 3, 0});
    if (kind == "faulty") return std::make_unique<FaultyWorld>();
    if (kind == "tcp") return std::make_unique<TcpWorld>();
    if (kind == "ucx_verbs") return std::make_unique<UcxWorld>("rc_verbs,ud_verbs");
    if (kind == "ucx_tcp") return std::make_unique<UcxWorld>("tcp,self");
    // Not posix: it takes 17 MB of /dev/shm for each transport, and a container often has 64 MB there.
    if (kind == "ucx_shm") return std::make_unique<UcxWorld>("sysv,cma,self");
    return std::make_unique<UcxWorld>("^posix", kind == "ucx_in_process");
}

class Conformance : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        world = make_world(GetParam());
        a = world->make();
        b = world->make();
        ASSERT_TRUE(a && b);
        a->set_handler(&at_a);
        b->set_handler(&at_b);
        ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
        ASSERT_EQ(b->connect(a->address(), &to_a), Status::ok);
    }
    bool pump_both(const std::function<bool()>& done, std::chrono::milliseconds limit = 20s) {
        return pump({a.get(), b.get()}, done, limit);
    }

    // True: large payload arrives without being fetched, and stays where it arrived.
    static bool pushes() { return GetParam() == "tcp" || GetParam() == "encrypted_tcp"; }

    Recorder at_a, at_b;
    std::unique_ptr<World> world;
    std::unique_ptr<Transport> a, b;
    Endpoint *to_b = nullptr, *to_a = nullptr;
};

}  // namespace offpath::transport::test
