// Once: a completion that must be called at most once. Threads: one.
#pragma once

#include "base/completion.h"

#include "input.h"

namespace offpath::fuzz {

struct Once : Completion {
    bool called = false;
    Once() {
        function = [](Completion* me, Status) {
            require(!static_cast<Once*>(me)->called, "an operation ends twice");
            static_cast<Once*>(me)->called = true;
        };
    }
};

}  // namespace offpath::fuzz
