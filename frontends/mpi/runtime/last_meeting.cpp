#include "last_meeting.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/random_numbers.h"

namespace offpath::mpi {
namespace {

constexpr std::uint64_t ms = 1'000'000, patience_ns = 10'000 * ms;
constexpr std::uint64_t answer_ns = 2'000 * ms;  // a place that does not answer so long is another host's
constexpr int most_ranks = 512;
constexpr std::size_t most_strangers = 64;
constexpr char welcome = 'w', all_are_here = 'a';

struct Greeting {
    std::array<std::uint64_t, 2> secret{};
    std::int64_t rank = 0;
};

sockaddr* plain(sockaddr_in6& address) {
    return reinterpret_cast<sockaddr*>(&address);
}

socklen_t length_of(const sockaddr_in6& address) {
    return address.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// Of this node's interfaces that are up: those of one family without loopback, or loopback alone.
std::vector<sockaddr_in6> addresses_of(int family, bool loopback) {
    std::vector<sockaddr_in6> found;
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return found;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
        if ((each->ifa_flags & IFF_UP) == 0 || ((each->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
        sockaddr_in6 address{};
        std::memcpy(&address, each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        // An address of one link names an interface of this node.
        if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) continue;
        found.push_back(address);
    }
    return found;
}

std::vector<sockaddr_in6> own_addresses() {
    for (const bool loopback : {false, true})
        for (const int family : {AF_INET, AF_INET6})
            if (auto found = addresses_of(family, loopback); !found.empty()) return found;
    return {};
}

// Whether the events have come before the deadline.
bool wait_on(std::vector<pollfd>& files, std::uint64_t deadline_ns) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return false;
    const int got = poll(files.data(), files.size(), static_cast<int>((deadline_ns - now) / ms + 1));
    return got > 0 || (got < 0 && errno == EINTR);
}

bool hears(int file, char wanted, std::uint64_t deadline_ns) {
    for (std::vector<pollfd> files{{file, POLLIN, 0}}; wait_on(files, deadline_ns);) {
        char said = 0;
        const ssize_t got = recv(file, &said, 1, MSG_DONTWAIT);
        if (got == 1) return said == wanted;
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    }
    return false;
}

FileDescriptor connect_to(sockaddr_in6 place, std::uint64_t deadline_ns) {
    FileDescriptor file(socket(place.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!file) return file;
    if (connect(file.get(), plain(place), length_of(place)) == 0) return file;
    std::vector<pollfd> files{{file.get(), POLLOUT, 0}};
    while (errno == EINPROGRESS || errno == EINTR) {
        if (!wait_on(files, deadline_ns)) return {};
        int error = 0;
        socklen_t length = sizeof error;
        if (files[0].revents != 0 && getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
            error == 0)
            return file;
        errno = error;
    }
    return {};
}

}  // namespace

LastMeeting::LastMeeting(MPI_Comm comm) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &size_);
    if (rank_ == 0 && size_ <= most_ranks) listen();
    PMPI_Bcast(&invitation_, sizeof invitation_, MPI_BYTE, 0, comm);
}

void LastMeeting::listen() {
    const std::vector<sockaddr_in6> addresses = own_addresses();
    if (addresses.empty()) return;
    sockaddr_in6 any{};
    any.sin6_family = addresses.front().sin6_family;
    socklen_t length = length_of(any);
    listener_ = FileDescriptor(socket(any.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener_ || bind(listener_.get(), plain(any), length) != 0 ||
        ::listen(listener_.get(), size_) != 0 || getsockname(listener_.get(), plain(any), &length) != 0)
        return;
    RandomNumbers numbers;
    for (std::uint64_t& word : invitation_.secret)
        word = numbers.next();
    invitation_.count = static_cast<std::uint32_t>(std::min(addresses.size(), most_places));
    std::copy_n(addresses.begin(), invitation_.count, invitation_.places.begin());
    for (sockaddr_in6& place : invitation_.places)
        place.sin6_port = any.sin6_port;  // both families have it at the same offset
}

bool LastMeeting::wait_for_all() {
    if (invitation_.count == 0) return false;
    const std::uint64_t deadline_ns = now_ns() + patience_ns;
    return rank_ == 0 ? receive_all(deadline_ns) : visit(deadline_ns);
}

bool LastMeeting::receive_all(std::uint64_t deadline_ns) {
    std::vector<FileDescriptor> guests(static_cast<std::size_t>(size_)), strangers;
    int missing = size_ - 1;
    while (missing > 0) {
        std::vector<pollfd> files{{listener_.get(), POLLIN, 0}};
        for (const FileDescriptor& stranger : strangers)
            files.push_back({stranger.get(), POLLIN, 0});
        if (!wait_on(files, deadline_ns)) return false;
        for (std::size_t i = files.size() - 1; i > 0; --i) {
            if (files[i].revents == 0) continue;
            FileDescriptor file = std::move(strangers[i - 1]);
            strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i - 1));
            Greeting greeting;
            if (recv(file.get(), &greeting, sizeof greeting, MSG_DONTWAIT) != sizeof greeting ||
                greeting.secret != invitation_.secret || greeting.rank < 1 || greeting.rank >= size_)
                continue;
            send(file.get(), &welcome, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
            FileDescriptor& guest = guests[static_cast<std::size_t>(greeting.rank)];
            if (!guest) --missing;
            guest = std::move(file);
        }
        if (files[0].revents == 0) continue;
        FileDescriptor file(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!file && (errno == EMFILE || errno == ENFILE)) return false;
        if (strangers.size() == most_strangers) strangers.erase(strangers.begin());  // a rank tries again
        if (file) strangers.push_back(std::move(file));
    }
    for (const FileDescriptor& guest : guests)
        if (guest) send(guest.get(), &all_are_here, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return true;
}

bool LastMeeting::visit(std::uint64_t deadline_ns) const {
    const Greeting greeting{invitation_.secret, rank_};
    for (std::size_t i = 0; now_ns() < deadline_ns; ++i) {
        const std::uint64_t limit_ns = std::min(deadline_ns, now_ns() + answer_ns);
        const FileDescriptor file = connect_to(invitation_.places[i % invitation_.count], limit_ns);
        if (file && send(file.get(), &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting &&
            hears(file.get(), welcome, limit_ns))
            return hears(file.get(), all_are_here, deadline_ns);
        poll(nullptr, 0, 10);
    }
    return false;
}

}  // namespace offpath::mpi
