// The epoll sets of the daemon and of its proxies. A set only reports which descriptors can be read.
#pragma once

#include <sys/epoll.h>

namespace offpath::proxy {

// `epoll` becomes readable when `fd` does. Threads: any.
inline void watch(int epoll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace offpath::proxy
