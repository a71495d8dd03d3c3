#include "link/event_set.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <initializer_list>

namespace offpath::link {

EventSet::~EventSet() {
    if (epoll_ >= 0) close(epoll_);
}

Status EventSet::open(int first, int second) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    for (int fd : {first, second}) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return Status::system;
    }
    return Status::ok;
}

}  // namespace offpath::link
