// Streams: queues of requests. The requests of a stream are executed in order, by one thread at a time.
// Ownership: requests belong to the stream until they are done. Threads: any.
#pragma once

#include "target/records.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace offpath::target {

struct PutWork {
    std::uint64_t address = 0;
    std::vector<std::byte> data;
};
struct PutFromWork {
    PutFrom put;
    std::uint64_t number = 0;  // 0: the program does not join
};
struct GetWork {
    Get get;
    std::uint64_t number = 0;
};
struct CallWork {
    std::uint64_t function = 0;
    std::vector<std::uint64_t> arguments;
};
struct SyncWork {
    std::uint64_t number = 0;
    bool keeps_error = false;
};
using Work = std::variant<PutWork, PutFromWork, GetWork, Copy, CallWork, SyncWork, Release>;

class Stream {
  public:
    // The first error since the last sync that did not keep it; used by the thread that works on the stream.
    std::int32_t status = 0;
    std::string problem;

  private:
    friend class Streams;
    std::deque<Work> queue_;
    bool busy_ = false;  // a thread works on it, or it is in ready_
};

class Streams {
  public:
    // Adds work at the end of a stream, which is made if it is new. True: the stream had no thread, and is
    // now ready for one.
    bool add(std::uint32_t stream, Work work);
    // Whether the stream has nothing left to do, so that its next request need not wait.
    bool idle(std::uint32_t stream);
    // Returns a stream that is ready, for this thread to work on, or null if there is none.
    std::shared_ptr<Stream> take();
    std::size_t ready();
    // Returns the stream's next work. False: there is none, and the thread has given up the stream.
    bool next(Stream& stream, Work& work);

  private:
    std::mutex mutex_;
    std::unordered_map<std::uint32_t, std::shared_ptr<Stream>> streams_;
    std::deque<std::shared_ptr<Stream>> ready_;
};

}  // namespace offpath::target
