#include "target/image_records.h"

#include "base/passed_descriptors.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace offpath::target {

bool send_image_record(int socket, std::span<const std::byte> record, int file) {
    iovec data{const_cast<std::byte*>(record.data()), record.size()};
    DescriptorRoom<1> room;
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    pass_descriptors(std::span(&file, file >= 0 ? 1 : 0), message, room);
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(record.size());
}

Received receive_image_record(int socket, std::span<std::byte> record, memory::File& file) {
    iovec data{record.data(), record.size()};
    DescriptorRoom<1> room;
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    accept_descriptors(message, room);
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::end;
    take_descriptors(message, [&](int descriptor) { file = memory::File(descriptor); });
    if (got == 0) return Received::end;
    const bool whole =
        static_cast<std::size_t>(got) == record.size() && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    return whole ? Received::record : Received::wrong;
}

}  // namespace offpath::target
