// network_secrecy_test clear|encrypted: what somebody on the network can read of the data that devices move.
// Rank 0 listens to all packets of the loopback device, as one who taps a cable does. The data are a random
// text, again and again. In clear it must be seen, else the test sees nothing at all; encrypted it must not.
#include "check.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>

namespace {

using Text = std::array<char, 16>;

// Counts bytes, and packets that contain the text.
class Listener {
  public:
    Listener() {
        socket_ = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_protocol = htons(ETH_P_ALL);
        address.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
        if (socket_ < 0 || bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            allowed_ = false;
            return;
        }
        const int room = 64 << 20;
        (void)setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    }
    ~Listener() {
        end();
        if (socket_ >= 0) close(socket_);
    }
    bool allowed() const { return allowed_; }
    void start(const Text& text) {
        thread_ = std::thread([this, text] { listen(text); });
    }
    void end() {
        over_ = true;
        if (thread_.joinable()) thread_.join();
    }
    std::size_t bytes() const { return bytes_; }
    std::size_t found() const { return found_; }

  private:
    void listen(const Text& text) {
        std::vector<char> packet(std::size_t{1} << 18);
        pollfd entry{socket_, POLLIN, 0};
        // What has come by the end is still read.
        while (poll(&entry, 1, over_ ? 0 : 20) > 0 || !over_) {
            const ssize_t got = recv(socket_, packet.data(), packet.size(), MSG_DONTWAIT);
            if (got <= 0) continue;
            bytes_ += static_cast<std::size_t>(got);
            const std::string_view seen(packet.data(), static_cast<std::size_t>(got));
            if (seen.find(std::string_view(text.data(), text.size())) != std::string_view::npos) ++found_;
        }
    }
    int socket_ = -1;
    bool allowed_ = true;
    std::atomic<bool> over_{false};
    std::size_t bytes_ = 0, found_ = 0;  // read when the thread has ended
    std::thread thread_;
};

std::vector<char> repeated(const Text& text, std::size_t bytes) {
    std::vector<char> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = text[i % text.size()];
    return data;
}

void compute_for(double seconds) {
    for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD), ranks = check::size_of(MPI_COMM_WORLD);
    const bool clear = argc == 2 && std::string_view(argv[1]) == "clear";
    Text text;
    std::random_device random;
    for (char& letter : text)
        letter = static_cast<char>(random());
    PMPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    Listener listener;
    int allowed = listener.allowed() ? 1 : 0;
    PMPI_Bcast(&allowed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (allowed == 0) {
        if (rank == 0) std::puts("skipped: listening to packets needs CAP_NET_RAW");
        MPI_Finalize();
        return 77;
    }
    if (rank == 0) listener.start(text);

    constexpr int message = 1 << 20, block = 1 << 17, window_bytes = 1 << 16;
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    const auto all = static_cast<std::size_t>(ranks) * block;
    const std::vector<char> sent = repeated(text, message), blocks = repeated(text, all);
    std::vector<char> got(message), exchanged(all), window(window_bytes);
    MPI_Win handle = MPI_WIN_NULL;
    MPI_Win_create(window.data(), window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &handle);
    std::array<MPI_Request, 3> requests;
    MPI_Irecv(got.data(), message, MPI_CHAR, previous, 1, MPI_COMM_WORLD, requests.data());
    MPI_Isend(sent.data(), message, MPI_CHAR, next, 1, MPI_COMM_WORLD, requests.data() + 1);
    MPI_Ialltoall(blocks.data(), block, MPI_CHAR, exchanged.data(), block, MPI_CHAR, MPI_COMM_WORLD,
                  requests.data() + 2);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, handle);
    MPI_Put(sent.data(), window_bytes, MPI_CHAR, next, 0, window_bytes, MPI_CHAR, handle);
    compute_for(0.1);
    MPI_Win_unlock(next, handle);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&handle);
    check::that(got == sent, "the message");
    check::that(exchanged == blocks, "the exchange");
    check::that(window == repeated(text, window_bytes), "the window");

    if (rank == 0) {
        compute_for(0.1);
        listener.end();
        std::printf("%zu KiB of packets, %zu packets with the text\n", listener.bytes() >> 10,
                    listener.found());
        check::that(listener.bytes() > std::size_t{message}, "the data crossed the network");
        check::that((listener.found() > 0) == clear, "the text is {}seen", clear ? "" : "not ");
    }
    return check::finish();
}
