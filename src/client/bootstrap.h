// Bootstrap: how the processes of a job first learn of one another: the rank, the size, and an allgather of
// small records. It uses the caller's callback, or the launcher's PMIx server. Threads: the one that calls
// offpath_init.
#pragma once

#include "base/status.h"

#include <offpath/context.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::client {

class Bootstrap {
  public:
    virtual ~Bootstrap() = default;
    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return size_; }
    std::uint32_t local_rank() const { return local_rank_; }
    // `all`: size * mine.size() bytes, by rank.
    virtual Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

    template <typename T>
    Status allgather(const T& mine, std::vector<T>& all) {
        all.resize(size_);
        return allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    }
    // No allgather follows, except behind meet_again().
    virtual void end_exchanges() {}
    // Before more allgathers: waits for all processes. unavailable: some have not come in time.
    virtual Status meet_again(std::chrono::nanoseconds /*limit*/, std::string& /*problem*/) {
        return Status::ok;
    }

  protected:
    std::uint32_t rank_ = 0, size_ = 1, local_rank_ = 0;
};

// The caller has checked `params`. Errors: invalid, unavailable; `problem` says what.
Status make_bootstrap(const offpath_init_params_t& params, std::unique_ptr<Bootstrap>& bootstrap,
                      std::string& problem);
Status make_pmix_bootstrap(std::unique_ptr<Bootstrap>& bootstrap, std::string& problem);

}  // namespace offpath::client
