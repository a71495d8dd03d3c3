// Which images a daemon keeps, and to whom it gives them.
#include "proxy/image_keeper.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace offpath::proxy {
namespace {

using target::ImageRequest;
using target::ImageRequestKind;

constexpr std::uint64_t limit = 1 << 20;
constexpr target::ImageNonce our_image{std::byte{1}}, their_image{std::byte{2}};

std::vector<std::byte> image_of(std::size_t bytes, int seed) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(seed));
}

memory::File file_of(std::span<const std::byte> content, bool sealed = true) {
    memory::File file(memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(write(file.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
    const int seals = sealed ? F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE : 0;
    EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
}

class ImageKeeperTest : public ::testing::Test {
  protected:
    void serve() {
        for (int events = 1; events > 0 || keeper.busy();) {
            epoll_event event{};
            events = epoll_wait(epoll.get(), &event, 1, 0);
            EXPECT_TRUE(events == 0 || keeper.handle(event.data.fd));
            keeper.work();
        }
    }
    // `content`: what the file has; `image`: what its name says.
    void offer(std::span<const std::byte> image, const memory::File& file, std::uint64_t more = 0) {
        const ImageRequest request{
            ImageRequestKind::keep, 0, image.size() + more, target::name_of(target::secret_of(image)), {}};
        EXPECT_TRUE(target::send_image_record(host.get(), std::as_bytes(std::span(&request, 1)), file.get()));
        serve();
    }
    void offer(std::span<const std::byte> image) { offer(image, file_of(image)); }
    memory::File find(std::span<const std::byte> image, const target::ImageProof& proof) {
        const ImageRequest request{ImageRequestKind::find, ++number, image.size(),
                                   target::name_of(target::secret_of(image)), proof};
        EXPECT_TRUE(target::send_image_record(host.get(), std::as_bytes(std::span(&request, 1)), -1));
        serve();
        target::ImageReply reply;
        memory::File file;
        EXPECT_EQ(
            target::receive_image_record(host.get(), std::as_writable_bytes(std::span(&reply, 1)), file),
            target::Received::record);
        EXPECT_EQ(reply.number, number);
        return file;
    }
    memory::File find(std::span<const std::byte> image) {
        return find(image, target::prove(target::secret_of(image), our_image));
    }

    FileDescriptor epoll{epoll_create1(EPOLL_CLOEXEC)};
    ImageKeeper keeper{limit, epoll.get()};
    FileDescriptor host = keeper.serve("the host", our_image);
    std::uint32_t number = 0;
};

TEST_F(ImageKeeperTest, GivesASealedCopy) {
    const auto image = image_of(300'000, 7);
    EXPECT_FALSE(find(image));
    offer(image);
    const memory::File file = find(image);
    ASSERT_TRUE(file);
    std::vector<std::byte> content(image.size() + 1);
    EXPECT_EQ(pread(file.get(), content.data(), content.size(), 0), static_cast<ssize_t>(image.size()));
    content.pop_back();
    EXPECT_EQ(content, image);
    constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    EXPECT_EQ(fcntl(file.get(), F_GET_SEALS) & seals, seals);
    EXPECT_LT(pwrite(file.get(), "x", 1, 0), 0);
    EXPECT_EQ(keeper.found(), 1U);
    offer(image);
    EXPECT_EQ(keeper.cache().images(), 1U);
    EXPECT_EQ(keeper.cache().bytes(), image.size());
}

TEST_F(ImageKeeperTest, GivesNothingForANameAlone) {
    const auto image = image_of(1000, 7);
    offer(image);
    EXPECT_FALSE(find(image, {}));
    // The proof of another program, which was seen on the network.
    EXPECT_FALSE(find(image, target::prove(target::secret_of(image), their_image)));
    // What follows from the name.
    EXPECT_FALSE(find(image, target::prove(target::name_of(target::secret_of(image)), our_image)));
    EXPECT_TRUE(find(image));
}

TEST_F(ImageKeeperTest, KeepsNoOtherContentThanWasSaid) {
    const auto image = image_of(1000, 7);
    offer(image, file_of(image_of(1000, 8)));
    offer(image, file_of(image), 1);
    offer(image, file_of(image_of(999, 7)));
    offer(image, file_of(image, false));
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    offer(image, memory::File(ends[0]));
    close(ends[1]);
    EXPECT_EQ(keeper.cache().images(), 0U);
    EXPECT_FALSE(find(image));
    offer(image);
    EXPECT_TRUE(find(image));
}

// Ranks of one program start together.
class ImageThatComes : public ImageKeeperTest {
  protected:
    struct Peer {
        FileDescriptor socket;
        target::ImageNonce nonce;
    };
    Peer peer(int which) {
        const target::ImageNonce nonce{std::byte{9}, static_cast<std::byte>(which)};
        return {keeper.serve("another host", nonce), nonce};
    }
    void send(const FileDescriptor& socket, const ImageRequest& request, int file = -1) {
        EXPECT_TRUE(target::send_image_record(socket.get(), std::as_bytes(std::span(&request, 1)), file));
        serve();
    }
    void ask(const Peer& peer, bool truly = true) {
        const auto secret = target::secret_of(image);
        send(peer.socket, {ImageRequestKind::find, 1, image.size(), target::name_of(secret),
                           target::prove(secret, truly ? peer.nonce : their_image)});
    }
    void say(const Peer& peer, ImageRequestKind kind, int file = -1) {
        send(peer.socket, {kind, 2, image.size(), target::name_of(target::secret_of(image)), {}}, file);
    }
    enum class Answer : std::uint8_t { waits, none, image };
    static Answer answer(const Peer& peer) {
        target::ImageReply reply;
        memory::File file;
        const auto received = target::receive_image_record(
            peer.socket.get(), std::as_writable_bytes(std::span(&reply, 1)), file);
        if (received != target::Received::record) return Answer::waits;
        return file ? Answer::image : Answer::none;
    }

    const std::vector<std::byte> image = image_of(300'000, 7);
    Peer first = peer(1), second = peer(2), third = peer(3);
};

TEST_F(ImageThatComes, IsWaitedFor) {
    ask(first);
    EXPECT_EQ(answer(first), Answer::none);
    ask(second);
    ask(third, false);
    EXPECT_EQ(answer(second), Answer::waits);
    EXPECT_EQ(answer(third), Answer::waits);
    say(first, ImageRequestKind::keep, file_of(image).get());
    EXPECT_EQ(answer(second), Answer::image);
    EXPECT_EQ(answer(third), Answer::none) << "it has not proved that it has the image";
    EXPECT_EQ(keeper.found(), 1U);
}

TEST_F(ImageThatComes, IsSentByTheNextOneIfTheFirstEnds) {
    ask(first);
    ask(second);
    ask(third);
    first.socket.reset();
    serve();
    EXPECT_EQ(answer(second), Answer::none);
    EXPECT_EQ(answer(third), Answer::waits);
    say(second, ImageRequestKind::none);  // it could not load it
    EXPECT_EQ(answer(third), Answer::none);
    say(third, ImageRequestKind::keep, file_of(image).get());
    EXPECT_EQ(keeper.cache().images(), 1U);
}

// A host that waited for too long sends the image itself.
TEST_F(ImageThatComes, MayComeFromOneWhoWaited) {
    ask(first);
    ask(second);
    ask(third);
    say(second, ImageRequestKind::keep, file_of(image).get());
    EXPECT_EQ(answer(third), Answer::image);
}

TEST_F(ImageThatComes, IsNotWaitedForIfItsOfferIsRefused) {
    ask(first);
    ask(second);
    say(second, ImageRequestKind::keep, file_of(image_of(300'000, 8)).get());
    EXPECT_EQ(answer(second), Answer::waits) << "another's false offer says nothing of the first";
    say(first, ImageRequestKind::keep, file_of(image_of(300'000, 8)).get());
    EXPECT_EQ(answer(second), Answer::none);
}

TEST_F(ImageThatComes, IsForgottenWithTheOneWhoWaits) {
    ask(first);
    ask(second);
    second.socket.reset();
    serve();
    ask(third);
    say(first, ImageRequestKind::keep, file_of(image).get());
    EXPECT_EQ(answer(third), Answer::image);
    EXPECT_EQ(keeper.found(), 1U);
}

TEST_F(ImageKeeperTest, StaysBelowItsLimit) {
    constexpr std::size_t third = limit / 3;
    for (int i = 1; i <= 3; ++i)
        offer(image_of(third, i));
    EXPECT_TRUE(find(image_of(third, 1)));
    offer(image_of(third, 4));
    EXPECT_LE(keeper.cache().bytes(), limit);
    EXPECT_EQ(keeper.cache().dropped(), 1U);
    EXPECT_TRUE(find(image_of(third, 1)));
    EXPECT_FALSE(find(image_of(third, 2))) << "it was used longest ago";
    EXPECT_TRUE(find(image_of(third, 4)));
    offer(image_of(limit + 1, 5));
    EXPECT_EQ(keeper.cache().images(), 3U) << "an image that never fits drops no others";
    // The size is believed only if the file has it. Nothing is dropped for it before.
    offer(image_of(third, 6), file_of(image_of(third, 6)), limit - third);
    EXPECT_EQ(keeper.cache().images(), 3U);
}

TEST_F(ImageKeeperTest, KeepsTheImageOfAHostThatHasEnded) {
    const auto image = image_of(600'000, 7);
    FileDescriptor brief = keeper.serve("a short program", their_image);
    const ImageRequest request{
        ImageRequestKind::keep, 0, image.size(), target::name_of(target::secret_of(image)), {}};
    const memory::File file = file_of(image);
    EXPECT_TRUE(target::send_image_record(brief.get(), std::as_bytes(std::span(&request, 1)), file.get()));
    brief.reset();
    serve();
    EXPECT_TRUE(find(image));
}

TEST_F(ImageKeeperTest, DropsAHostThatSendsNonsense) {
    const std::byte noise[sizeof(ImageRequest) - 1]{};
    EXPECT_TRUE(target::send_image_record(host.get(), noise, -1));
    serve();
    target::ImageReply reply;
    memory::File file;
    EXPECT_EQ(target::receive_image_record(host.get(), std::as_writable_bytes(std::span(&reply, 1)), file),
              target::Received::end);
}

TEST(ImageCache, HasRoomForSoManyImagesOnly) {
    ImageCache cache(limit);
    for (std::size_t i = 0; i <= ImageCache::max_images; ++i) {
        target::ImageSecret secret{};
        secret[0] = static_cast<std::byte>(i);
        secret[1] = static_cast<std::byte>(i >> 8);
        ASSERT_TRUE(cache.make_room(1));
        cache.keep(secret, {}, 1);
    }
    EXPECT_EQ(cache.images(), ImageCache::max_images);
    EXPECT_EQ(cache.bytes(), ImageCache::max_images);
}

}  // namespace
}  // namespace offpath::proxy
