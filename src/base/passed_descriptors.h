// Descriptors that travel beside the bytes of a message on a Unix socket. Threads: any.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>

namespace offpath {

// Room for the descriptors of one message; must live as long as the message header that uses it.
template <std::size_t most>
struct DescriptorRoom {
    alignas(cmsghdr) char bytes[CMSG_SPACE(most * sizeof(int))]{};
};

// Adds at most `most` descriptors to a message that is to be sent. They stay the sender's.
template <std::size_t most>
void pass_descriptors(std::span<const int> descriptors, msghdr& message, DescriptorRoom<most>& room) {
    if (descriptors.empty()) return;
    message.msg_control = room.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

// Before recvmsg(): lets at most `most` descriptors come along.
template <std::size_t most>
void accept_descriptors(msghdr& message, DescriptorRoom<most>& room) {
    message.msg_control = room.bytes;
    message.msg_controllen = sizeof room.bytes;
}

// After recvmsg(): calls take(descriptor) for each that came along; `take` owns it from then on.
template <typename Take>
void take_descriptors(msghdr& message, Take take) {
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(item) + i * sizeof descriptor, sizeof descriptor);
            take(descriptor);
        }
    }
}

}  // namespace offpath
