#include "target/image_records.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace offpath::target {

bool send_image_record(int socket, std::span<const std::byte> record, int file) {
    iovec data{const_cast<std::byte*>(record.data()), record.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (file >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof file);
        std::memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(record.size());
}

Received receive_image_record(int socket, std::span<std::byte> record, memory::File& file) {
    iovec data{record.data(), record.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::end;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
        int passed = -1;
        std::memcpy(&passed, CMSG_DATA(item), sizeof passed);
        file = memory::File(passed);
    }
    if (got == 0) return Received::end;
    const bool whole =
        static_cast<std::size_t>(got) == record.size() && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    return whole ? Received::record : Received::wrong;
}

}  // namespace offpath::target
