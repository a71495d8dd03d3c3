// EventSet: a descriptor that is readable while either of two others is. Threads: any.
#pragma once

#include "base/status.h"

namespace offpath::link {

class EventSet {
  public:
    EventSet() = default;
    EventSet(const EventSet&) = delete;
    EventSet& operator=(const EventSet&) = delete;
    ~EventSet();

    // Errors: system. The owners of the two descriptors keep them.
    Status open(int first, int second);
    int fd() const { return epoll_; }

  private:
    int epoll_ = -1;
};

}  // namespace offpath::link
