// Code that tests of kernels share: calls of the API, and the process that runs the kernels.
#pragma once

#include "harness.h"

#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace offpath::test {

using Buffers = std::vector<offpath_kernel_buffer_t>;

inline offpath_kernel_h load(offpath_context_h context, const char* symbol) {
    offpath_kernel_h kernel = nullptr;
    expect(offpath_kernel_load(context, OFFPATH_TEST_KERNELS, symbol, &kernel), OFFPATH_OK, symbol);
    return kernel;
}

template <typename Arguments>
offpath_request_h start(offpath_kernel_h kernel, const Arguments& arguments, const Buffers& buffers) {
    offpath_request_h request = nullptr;
    expect(offpath_compute(kernel, &arguments, sizeof arguments, buffers.data(), buffers.size(), &request),
           OFFPATH_OK, "compute");
    return request;
}

inline offpath_status_t finish(offpath_request_h request) {
    const offpath_status_t status = offpath_request_wait(request);
    expect(offpath_request_free(request), OFFPATH_OK, "free");
    return status;
}

template <typename Arguments>
offpath_status_t run(offpath_kernel_h kernel, const Arguments& arguments, const Buffers& buffers) {
    return finish(start(kernel, arguments, buffers));
}

// The number of the process that runs the kernels of the daemon's only client, from the log.
inline pid_t host_process(const DaemonProcess& daemon) {
    const std::string log = daemon.log(), words = "kernels run in process ";
    const auto at = log.rfind(words);
    return at == std::string::npos ? -1 : std::stoi(log.substr(at + words.size()));
}

inline bool goes(pid_t pid) {
    for (const double end = now() + 30; now() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(5)))
        if (kill(pid, 0) != 0) return true;
    return false;
}

}  // namespace offpath::test
