// be_quiet(): nothing is logged from the first call on. Threads: one.
#pragma once

#include "base/log.h"

namespace offpath::fuzz {

inline void be_quiet() {
    static const bool quiet = [] {
        log::configure("fuzz", log::Level::off);
        return true;
    }();
    (void)quiet;
}

}  // namespace offpath::fuzz
