// How an asynchronous call tells that it is done: an intrusive record that the caller owns and keeps alive
// until it is called. No allocation, no virtual call. A call that takes a Completion* returns
// Status::in_progress if it will call it later (once, from the same thread, inside somebody's progress),
// anything else if it is over and will not call it.
#pragma once

#include "base/status.h"

namespace offpath {

struct Completion {
    using Function = void (*)(Completion* self, Status status);
    Function function = nullptr;
    void operator()(Status status) { function(this, status); }
};

}  // namespace offpath
