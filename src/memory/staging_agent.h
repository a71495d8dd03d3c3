// StagingAgent: the client's thread that serves staged transfers. It sleeps until the proxy wakes it, copies
// chunks between the process's memory and the staging area, and answers. Ownership: the client's context owns
// it. Threads: start and stop from one thread; served() from any.
#pragma once

#include "memory/staging_files.h"

#include <atomic>
#include <memory>
#include <string>

namespace offpath::memory {

class StagingAgent {
  public:
    // Maps the area that the proxy sent and starts the thread. Errors: invalid (not a staging area, another
    // version), memory, system.
    static Status start(StagingFiles files, std::unique_ptr<StagingAgent>& agent, std::string& problem);
    // Stops the thread after the chunk that it is copying.
    virtual ~StagingAgent() = default;

    // How many chunks were copied. What they wrote is visible to a caller that reads this number.
    virtual std::uint64_t served() const = 0;
};

}  // namespace offpath::memory
