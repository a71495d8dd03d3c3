// Starts a thread of this library in the program's process. Signals of the program go to the program's own
// threads: the new thread blocks all of them.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace offpath {

// Throws std::system_error. Threads: any.
template <typename Function>
std::thread start_own_thread(Function&& function) {
    struct Blocked {
        Blocked() {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        sigset_t before;
    } blocked;
    return std::thread(std::forward<Function>(function));
}

}  // namespace offpath
