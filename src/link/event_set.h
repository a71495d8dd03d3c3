// EventSet: a descriptor that is readable while one of two others is. Threads: any.
#pragma once

#include "base/status.h"

namespace offpath::link {

class EventSet {
  public:
    EventSet() = default;
    EventSet(const EventSet&) = delete;
    EventSet& operator=(const EventSet&) = delete;
    ~EventSet();

    // system. The two stay their owners'.
    Status open(int first, int second);
    int fd() const { return epoll_; }

  private:
    int epoll_ = -1;
};

}  // namespace offpath::link
