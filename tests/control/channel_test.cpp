#include "control/shared_channel.h"
#include "control/socket.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace offpath::control {
namespace {

using namespace std::chrono_literals;

struct ChannelPair {
    ChannelPair() {
        ChannelMemory ours, theirs;
        FileDescriptor fd;
        EXPECT_EQ(ChannelMemory::create({}, ours, fd), Status::ok);
        EXPECT_EQ(ChannelMemory::map(fd.get(), theirs), Status::ok);
        const int bell = eventfd(0, EFD_NONBLOCK);
        proxy = std::make_unique<SharedProxyChannel>(std::move(ours), FileDescriptor(bell));
        client = std::make_unique<SharedClientChannel>(std::move(theirs), FileDescriptor(dup(bell)));
    }
    std::unique_ptr<ProxyChannel> proxy;
    std::unique_ptr<ClientChannel> client;
};

TEST(Channel, CannotBeShrunkByTheClient) {
    ChannelMemory memory;
    FileDescriptor fd;
    ASSERT_EQ(ChannelMemory::create({}, memory, fd), Status::ok);
    EXPECT_NE(ftruncate(fd.get(), 0), 0);
}

TEST(Channel, RefusesFilesThatAreNone) {
    ChannelMemory memory;
    FileDescriptor other(open("/proc/self/exe", O_RDWR));
    if (!other) other = FileDescriptor(open("/dev/null", O_RDWR));
    EXPECT_NE(ChannelMemory::map(other.get(), memory), Status::ok);
    FileDescriptor file;
    EXPECT_EQ(ChannelMemory::create({.completions = 100}, memory, file), Status::invalid);
    EXPECT_EQ(ChannelMemory::create({.ring_bytes = 3 << 20}, memory, file), Status::invalid);
}

TEST(Channel, EncodesEveryStatusInACompletion) {
    for (int status = OFFPATH_ERR_SYSTEM; status <= OFFPATH_OK; ++status) {
        const auto expected = static_cast<Status>(status);
        EXPECT_NE(completion_word(expected), 0u);
        EXPECT_EQ(completion_status(completion_word(expected)), expected);
    }
    EXPECT_EQ(completion_status(1000), Status::protocol);
    EXPECT_EQ(completion_status(0), Status::protocol);
}

TEST(Channel, RingsOnlyASleepingProxy) {
    ChannelPair pair;
    ASSERT_EQ(pair.client->post(DestroyTeam{1}), Status::ok);
    EXPECT_FALSE(pair.client->ring());
    EXPECT_FALSE(pair.proxy->prepare_sleep()) << "there is a command";
    pair.proxy->end_sleep();
    std::span<const std::byte> record;
    ASSERT_EQ(pair.proxy->next(record), NextRecord::record);
    EXPECT_TRUE(pair.proxy->prepare_sleep());
    ASSERT_EQ(pair.client->post(DestroyTeam{2}), Status::ok);
    EXPECT_TRUE(pair.client->ring());
    EXPECT_FALSE(pair.client->ring()) << "once is enough";
    std::uint64_t count = 0;
    EXPECT_EQ(read(pair.proxy->doorbell(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
}

// The proxy and the client sleep in turn. A lost wake-up would cost a second each time.
TEST(Channel, LosesNoWakeUp) {
    ChannelPair pair;
    constexpr std::uint32_t rounds = 3000;
    int overslept = 0;
    std::thread proxy([&] {
        for (std::uint32_t done = 0; done < rounds;) {
            std::span<const std::byte> record;
            if (pair.proxy->next(record) == NextRecord::record) {
                pair.proxy->complete(done % 64, Status::ok, done, 0, 0);
                pair.proxy->wake();
                ++done;
                continue;
            }
            if (pair.proxy->prepare_sleep()) {
                pollfd entry{pair.proxy->doorbell(), POLLIN, 0};
                overslept += poll(&entry, 1, 20'000) == 0 ? 1 : 0;
                std::uint64_t count;
                [[maybe_unused]] const auto got = read(pair.proxy->doorbell(), &count, sizeof count);
            }
            pair.proxy->end_sleep();
        }
    });
    for (std::uint32_t i = 0; i < rounds; ++i) {
        CompletionEntry& entry = pair.client->completion(i % 64);
        entry.word.store(0, std::memory_order_relaxed);
        ASSERT_EQ(pair.client->post(DestroyTeam{i}), Status::ok);
        pair.client->ring();
        while (entry.word.load(std::memory_order_acquire) == 0) {
            const std::uint32_t sequence = pair.client->enter_wait();
            if (entry.word.load(std::memory_order_acquire) == 0) pair.client->sleep(sequence, 1000);
            pair.client->leave_wait();
        }
        ASSERT_EQ(entry.source, i);
    }
    proxy.join();
    EXPECT_EQ(overslept, 0) << "a command came while the proxy went to sleep";
}

TEST(Socket, CarriesMessagesAndDescriptors) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    FileDescriptor a(ends[0]), b(ends[1]);
    const int pipe_fd = eventfd(5, 0);
    ASSERT_EQ(send_message(a.get(), RevokeRegion{7}, std::span(&pipe_fd, 1)), Status::ok);
    close(pipe_fd);
    Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    ASSERT_EQ(receive_message(b.get(), 1000, message, descriptors, problem), Status::ok) << problem;
    EXPECT_EQ(message, Message(RevokeRegion{7}));
    ASSERT_EQ(descriptors.size(), 1u);
    std::uint64_t value = 0;
    EXPECT_EQ(read(descriptors[0].get(), &value, sizeof value), 8);
    EXPECT_EQ(value, 5u);

    EXPECT_EQ(receive_message(b.get(), 10, message, descriptors, problem), Status::unavailable);
    EXPECT_FALSE(peer_closed(b.get()));
    a.reset();
    EXPECT_TRUE(peer_closed(b.get()));
    EXPECT_EQ(receive_message(b.get(), 10, message, descriptors, problem), Status::peer_lost);
}

TEST(Socket, RefusesWhatIsTooLong) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    FileDescriptor a(ends[0]), b(ends[1]);
    const std::vector<char> noise(max_message_bytes + 1, 'x');
    ASSERT_EQ(send(a.get(), noise.data(), noise.size(), 0), static_cast<ssize_t>(noise.size()));
    Received received;
    EXPECT_EQ(receive_bytes(b.get(), received), Status::protocol);

    FileDescriptor socket;
    std::string problem;
    EXPECT_EQ(connect_to(std::string(200, 'a'), socket, problem), Status::invalid);
    EXPECT_NE(problem.find("shorter directory"), std::string::npos);
    EXPECT_EQ(connect_to("/nonexistent/x.sock", socket, problem), Status::unavailable);
}

}  // namespace
}  // namespace offpath::control
