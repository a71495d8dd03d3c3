#include "control/life_signs.h"

#include "base/proc_threads.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace offpath::control {

ThreadState thread_state(pid_t process, pid_t thread) {
    ThreadState state;
    if (process <= 0 || thread <= 0) return state;
    const char letter = thread_letter(process, thread);
    const std::string times = thread_file(process, thread, "schedstat");
    if (letter == '\0' || times.empty()) return state;
    return {true, letter, std::strtoull(times.c_str(), nullptr, 10)};
}

LifeSigns::Next LifeSigns::look(std::uint64_t now_ns, bool answered, const ThreadState& proxy) {
    const std::uint64_t passed_ns = now_ns - looked_ns_;
    looked_ns_ = now_ns;
    if (!open_ || answered) {
        if (open_) heard_ns_ = now_ns;
        open_ = false;
        if (now_ns - heard_ns_ < interval_ns_) return Next::wait;
        open_ = true;
        silent_ns_ = 0;
        run_ns_ = proxy.run_ns;
        return Next::ask;
    }
    silent_ns_ += could_have_ns(std::min(passed_ns, limit_ns_ / 4), proxy);
    run_ns_ = proxy.run_ns;
    return silent_ns_ >= limit_ns_ ? Next::lost : Next::wait;
}

std::uint64_t LifeSigns::could_have_ns(std::uint64_t passed_ns, const ThreadState& proxy) const {
    if (!proxy.known) return passed_ns;
    switch (proxy.letter) {
        case 't':  // a debugger has stopped it
            return 0;
        case 'R':
            return std::min(passed_ns, proxy.run_ns - std::min(run_ns_, proxy.run_ns));
        default:
            return passed_ns;
    }
}

}  // namespace offpath::control
