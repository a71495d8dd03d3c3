// DirectCopies: copies that the program does itself, between its memory and blocks of a pool that it shares
// with the host (shared_pool.h). The requests of a stream are executed in order, so a put is direct only if
// none is under way in its stream. A get that finds some under way is done when a sync of its stream is over,
// unless another request follows it before: then it becomes a request too.
//
// Ownership: owns the pool. Threads: any, if threads that call at the same time use different streams;
// finish() also beside calls for its stream.
#pragma once

#include "target/program/shared_pool.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace offpath::target {

class DirectCopies {
  public:
    struct Get {
        std::uint64_t after = 0;  // requests of the stream that must be done before
        void* destination = nullptr;
        std::uint64_t address = 0, bytes = 0;
    };

    SharedPool& pool() { return pool_; }
    // True: it is done.
    bool put(std::uint32_t stream, std::uint64_t address, const void* source, std::uint64_t bytes);
    // True: it is done, or will be with a sync of the stream.
    bool get(std::uint32_t stream, void* destination, std::uint64_t address, std::uint64_t bytes);
    // True: it is done, or will be with a sync of the stream. False: the address is not of the pool.
    bool release(std::uint32_t stream, std::uint64_t address);
    // A request that a sync waits for is about to be sent. Returns the gets that must be requests before it.
    std::vector<Get> begin_request(std::uint32_t stream);
    // Whether nothing of the stream is under way.
    bool is_idle(std::uint32_t stream);
    // A sync with this number, of all that has begun, is about to be sent.
    void begin_sync(std::uint32_t stream, std::uint64_t number, bool keeps_error = false);
    // A sync is over. If not `ok`, gets before it are not done. If it also keeps the error, the stream is not
    // idle until the sync that returns the error.
    void finish(std::uint64_t number, bool ok);

  private:
    struct Release {
        std::uint64_t after = 0, address = 0;
    };
    struct Stream {
        std::mutex mutex;
        std::uint64_t sent = 0, done = 0;  // requests
        std::vector<Get> gets;
        std::vector<Release> releases;
        bool is_idle() const { return done == sent; }
    };
    struct Sync {
        std::uint32_t stream = 0;
        std::uint64_t after = 0;
        bool keeps_error = false;
    };
    Stream& stream(std::uint32_t number);
    void copy(const Get& get);

    SharedPool pool_;
    std::mutex mutex_;  // guards the maps
    std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
    std::map<std::uint64_t, Sync> syncs_;  // that have begun
};

}  // namespace offpath::target
