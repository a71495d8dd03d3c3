// Completion: the record through which an asynchronous call reports that it is done. It is intrusive: the
// caller owns it and keeps it alive until it is called. It needs no allocation and no virtual call.
//
// A call that takes a Completion* and returns Status::in_progress calls it later: once, from the same thread,
// inside a progress call. With any other return value the call is over and the completion is never called.
#pragma once

#include "base/status.h"

namespace offpath {

struct Completion {
    using Function = void (*)(Completion* self, Status status);
    Function function = nullptr;
    void operator()(Status status) { function(this, status); }
};

}  // namespace offpath
