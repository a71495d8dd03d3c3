// Completions that the device writes into the host's memory: they need no progress by the host; when they are
// chosen; and what a peer may write there.
#include "link/rings.h"
#include "harness.h"
#include "link/address_and_key.h"
#include "link/plugin/plugin_loader.h"
#include "peer_process.h"
#include "setting.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

namespace offpath::link::test {
namespace {

// A host in this process and a device in another one, joined as the environment says.
struct WithDevice {
    WithDevice() {
        std::string problem;
        EXPECT_EQ(load_host_link({}, host, problem), Status::ok) << problem;
        device.write_line(to_hex(host->address()));
        const auto address = from_hex(device.read_line());
        EXPECT_EQ(host->connect(address, peer_token, {}, client, problem), Status::ok) << problem;
        EXPECT_EQ(call(), Status::ok);
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (wanted && host->rings() != "remote memory" && std::chrono::steady_clock::now() < deadline)
            usleep(1000);
    }
    // Posts a command and waits for its completion by the means that the channel offers to a waiting thread.
    Status call() {
        control::CompletionEntry& entry = client->completion(0);
        entry.word.store(0, std::memory_order_relaxed);
        if (client->post(control::DestroyTeam{1}) != Status::ok) return Status::system;
        client->ring();
        for (int i = 0; i < 100 && entry.word.load(std::memory_order_acquire) == 0; ++i) {
            const std::uint32_t sequence = client->enter_wait();
            if (entry.word.load(std::memory_order_acquire) == 0) client->sleep(sequence, 100'000'000);
            client->leave_wait();
        }
        const std::uint32_t word = entry.word.load(std::memory_order_acquire);
        return word == 0 ? Status::in_progress : control::completion_status(word);
    }
    const bool wanted = std::getenv("OFFPATH_RINGS") == nullptr;
    Peer device{"device"};
    std::unique_ptr<HostLink> host;
    std::unique_ptr<control::ClientChannel> client;
};

TEST(Rings, CompletionsAreFoundWithoutProgress) {
    if (offpath::test::emulated())
        GTEST_SKIP() << "UCX's shared memory between two threads stalls under qemu's user mode";
    const Setting way("OFFPATH_LINK", "ucx"), tls("UCX_TLS", "sysv,tcp"), rings("OFFPATH_RINGS", nullptr);
    WithDevice joined;
    ASSERT_EQ(joined.host->rings(), "remote memory");
    ASSERT_TRUE(joined.client->begin_progress());
    constexpr std::uint64_t rounds = 1000;
    const auto progress = [&] {
        for (int i = 0; i < 100; ++i)
            joined.client->progress();
    };
    const auto complete = [&](std::uint32_t i, bool with_progress) {
        control::CompletionEntry& entry = joined.client->completion(0);
        entry.word.store(0, std::memory_order_relaxed);
        if (joined.client->post(control::DestroyTeam{i}) != Status::ok) return false;
        joined.client->ring();
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (entry.word.load(std::memory_order_acquire) == 0 &&
               std::chrono::steady_clock::now() < deadline) {
            if (with_progress) progress();
            std::this_thread::yield();
        }
        return control::completion_status(entry.word) == Status::ok;
    };
    // From here on no side sleeps. The first progress tells the device so. Until it knows, it sends a message
    // with each completion, before it takes the next command: several completions without one end that. UCX
    // may still be wiring up, and until it has, a command leaves only with the progress that the client has
    // promised.
    for (std::uint32_t quiet = 0; quiet < 10;) {
        const auto messages = joined.host->counters().messages;
        progress();
        ASSERT_TRUE(complete(0, true));
        progress();
        quiet = joined.host->counters().messages == messages ? quiet + 1 : 0;
    }
    const auto before = joined.host->counters();
    for (std::uint32_t i = 0; i < rounds; ++i)
        ASSERT_TRUE(complete(i, false)) << i;
    progress();  // takes the messages that came
    const auto after = joined.host->counters();
    EXPECT_EQ(after.messages, before.messages);
    // The agent may have to finish what it had begun. Completions that needed it would wake it each time.
    EXPECT_LT(after.wakeups - before.wakeups, rounds / 20) << "of the agent";
    joined.client->end_progress();
    EXPECT_EQ(joined.call(), Status::ok) << "a sleeper is woken";
    EXPECT_EQ(joined.host->rings(), "remote memory");
}

// A completion that comes while a thread goes to sleep must not be missed: that sleep would last until the
// test gives up.
TEST(Rings, NobodySleepsOn) {
    for (const char* tls : {"sysv", "tcp"}) {
        if (offpath::test::emulated() && std::string(tls) == "sysv") continue;  // as in all_ways()
        Joined joined(rings_way(ucx_way(), "rings", tls));
        constexpr std::uint32_t rounds = 500;
        constexpr std::uint64_t patience_ns = 60'000'000'000;
        constexpr auto patience = std::chrono::nanoseconds(patience_ns);
        std::atomic<bool> stop{false};
        bool missed = false;
        std::thread waiter([&] {
            std::mt19937 random(3);
            control::ClientChannel& channel = *joined.client;
            for (std::uint32_t i = 0; i < rounds && !missed; ++i) {
                control::CompletionEntry& entry = channel.completion(i % 8);
                entry.word.store(0, std::memory_order_relaxed);
                while (channel.post(control::DestroyTeam{i}) == Status::retry) {
                }
                channel.ring();
                const auto since = std::chrono::steady_clock::now();
                const auto pending = [&] { return entry.word.load(std::memory_order_acquire) == 0; };
                if (random() % 4 != 0 && channel.begin_progress()) {
                    channel.progress();
                    for (auto spins = random() % 20000; spins > 0 && pending(); --spins) {
                    }
                    channel.end_progress();
                }
                while (pending() && !missed) {
                    const std::uint32_t sequence = channel.enter_wait();
                    if (pending()) channel.sleep(sequence, patience_ns);
                    channel.leave_wait();
                    missed = std::chrono::steady_clock::now() - since >= patience;
                }
            }
            stop = true;
        });
        std::uint32_t done = 0;
        EXPECT_TRUE(joined.until(
            [&] {
                std::span<const std::byte> record;
                while (joined.proxy->next(record) == control::NextRecord::record) {
                    joined.proxy->complete(done++ % 8, Status::ok);
                    joined.proxy->wake();
                }
                return stop.load();
            },
            120s));
        waiter.join();
        std::string why;
        EXPECT_EQ(joined.link->health(why), Status::ok) << why;
        EXPECT_FALSE(joined.client->lost(why)) << why;
        EXPECT_EQ(done, rounds) << tls;
        EXPECT_FALSE(missed) << tls;
    }
}

TEST(Rings, EitherSideMayRefuse) {
    const Setting way("OFFPATH_LINK", "ucx"), tls("UCX_TLS", "sysv,tcp");
    {
        const Setting host("OFFPATH_RINGS", "messages");
        WithDevice joined;
        EXPECT_EQ(joined.host->rings(), "messages");
        EXPECT_EQ(joined.call(), Status::ok);
    }
    // Only the device works here.
    auto [device, host] = rings_way(ucx_way(), "one_side", "sysv").make_one_sided();
    auto [device_side, host_side] = ucx_way().make();
    const auto links = make_device_links(std::move(device_side), nullptr);
    std::unique_ptr<HostLink> link;
    std::unique_ptr<DeviceLink> at_device;
    std::string problem;
    ASSERT_EQ(make_host_link(std::move(host_side), std::move(host), link, problem), Status::ok) << problem;
    ASSERT_EQ(links->open(link->address(), 5, {}, at_device, problem), Status::ok) << problem;
    EXPECT_TRUE(split_address_and_key(at_device->address()).key.empty());
    std::unique_ptr<control::ClientChannel> client;
    ASSERT_EQ(link->connect(at_device->address(), 5, {}, client, problem), Status::ok) << problem;
    EXPECT_EQ(link->rings(), "messages");
}

TEST(Rings, AutomaticWhereTheyArePassive) {
    std::unique_ptr<transport::OneSided> one_sided;
    std::string note;
    {
        const Setting tls("UCX_TLS", "tcp"), rings("OFFPATH_RINGS", nullptr);
        EXPECT_EQ(make_rings("lo", one_sided, note), Status::ok);
        EXPECT_EQ(one_sided, nullptr) << note;
        EXPECT_TRUE(note.starts_with("messages")) << note;
    }
    {
        const Setting tls("UCX_TLS", "tcp"), rings("OFFPATH_RINGS", "rma");
        EXPECT_EQ(make_rings("lo", one_sided, note), Status::ok);
        EXPECT_NE(one_sided, nullptr) << note;
    }
    {
        const Setting tls("UCX_TLS", "sysv,tcp"), rings("OFFPATH_RINGS", "auto");
        EXPECT_EQ(make_rings("lo", one_sided, note), Status::ok);
        ASSERT_NE(one_sided, nullptr) << note;
        EXPECT_EQ(one_sided->describe().find("tcp"), std::string::npos) << "writes wherever a peer says";
    }
    const Setting rings("OFFPATH_RINGS", "carrier-pigeon");
    EXPECT_EQ(make_rings("lo", one_sided, note), Status::invalid);
    EXPECT_NE(note.find("carrier-pigeon"), std::string::npos) << note;
}

// A hostile peer writes into a window what no honest peer would write.
class Scribbler {
  public:
    Scribbler(const std::vector<std::byte>& both) {
        std::string problem;
        transport::UcxConfig config;
        config.tls = "sysv";
        if (transport::make_ucx_one_sided(config, side_, problem) != Status::ok)
            throw std::runtime_error(problem);
        EXPECT_EQ(side_->attach(split_address_and_key(both).key, window_), Status::ok);
    }
    ~Scribbler() { window_.reset(); }
    void write(std::uint64_t offset, std::uint64_t value, std::size_t bytes = 8) {
        std::vector<std::byte> source(bytes);
        std::memcpy(source.data(), &value, std::min(bytes, sizeof value));
        EXPECT_EQ(window_->put(offset, source), Status::ok);
        side_->progress();
    }

  private:
    std::unique_ptr<transport::OneSided> side_;
    std::unique_ptr<transport::RemoteWindow> window_;
};

TEST(RingsMalformed, APositionBeyondWhatWasPostedEndsTheLink) {
    for (const std::uint64_t lie : {std::uint64_t{1}, std::uint64_t{1} << 40, UINT64_MAX}) {
        Joined joined(rings_way(loopback_way("loopback", {}), "rings", "sysv"));
        std::string why;
        ASSERT_FALSE(joined.client->lost(why));
        Scribbler device(joined.host->address());
        device.write(taken_offset, lie);
        EXPECT_NE(joined.client->post(control::DestroyTeam{1}), Status::ok);
        EXPECT_TRUE(joined.client->lost(why));
        EXPECT_NE(why.find("never posted"), std::string::npos) << why;
    }
}

TEST(RingsMalformed, WordsThatAreNoStatusAreErrors) {
    Joined joined(rings_way(loopback_way("loopback", {}), "rings", "sysv"));
    Scribbler device(joined.host->address());
    std::mt19937_64 random(7);
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t slot = random() % joined.client->completions();
        device.write(entries_offset + slot * sizeof(control::CompletionEntry), random() | 0x80000000u);
        const std::uint32_t word = joined.client->completion(static_cast<std::uint32_t>(slot)).word.load();
        ASSERT_EQ(control::completion_status(word), Status::protocol) << word;
    }
    EXPECT_EQ(joined.client->post(control::DestroyTeam{1}), Status::ok);
}

// The worst that a host can do is to make the device send messages.
TEST(RingsMalformed, AnyWordInTheDevicesWindowIsTaken) {
    Joined joined(rings_way(loopback_way("loopback", {}), "rings", "sysv"));
    Scribbler host(joined.link->address());
    std::mt19937_64 random(8);
    for (std::uint32_t slot = 0; slot < 200; ++slot) {
        host.write(8 * (slot % 8), slot % 3 == 0 ? 0 : random());
        joined.proxy->complete(slot, Status::truncated, slot, 0, 7);
        joined.proxy->wake();
        EXPECT_TRUE(joined.until([&] { return joined.client->completion(slot).word.load() != 0; })) << slot;
        EXPECT_EQ(joined.client->completion(slot).source, slot);
    }
    std::string why;
    EXPECT_FALSE(joined.client->lost(why)) << why;
    EXPECT_FALSE(joined.link->lost());
}

// Both halves of a client's offer come from outside. Any mistake in them is an error, or makes completions
// messages.
TEST(RingsMalformed, KeysThatAreNoneAreRefused) {
    auto [device, host] = rings_way(loopback_way("loopback", {}), "rings", "sysv").make_one_sided();
    auto& hub = make_hub();
    const auto links = make_device_links(hub.join(), std::move(device));
    const auto client = hub.join();
    std::string problem;
    std::uint64_t token = 1;
    const auto open = [&](std::span<const std::byte> key) {
        std::unique_ptr<DeviceLink> link;
        return links->open(join_address_and_key({client->address(), key}), token++, {}, link, problem);
    };
    std::unique_ptr<transport::Window> right, wrong;
    ASSERT_EQ(host->offer(host_window_bytes({}), right), Status::ok);
    ASSERT_EQ(host->offer(host_window_bytes({}) - 32, wrong), Status::ok);
    EXPECT_EQ(open(right->key()), Status::ok) << problem;
    EXPECT_EQ(open(wrong->key()), Status::protocol) << "of another size";
    const auto key = right->key();
    for (std::size_t length = 1; length < key.size(); length += 3)
        EXPECT_EQ(open(std::span(key).first(length)), Status::protocol) << length;
    EXPECT_EQ(open(right->key()), Status::ok) << problem;
    for (int i = 0; i < 100; ++i)
        links->progress();
}

}  // namespace
}  // namespace offpath::link::test
