// Target: a program's end of one device on which its target regions run. Requests of one stream are executed
// in order; different streams run side by side. Requests that want no answer are gathered, and sent at the
// latest with the next one that wants one.
//
// Ownership: owns the line. The target host, with all device memory, ends with the line. Threads: any, if
// threads that call at the same time use different streams.
#pragma once

#include "base/status.h"
#include "target/program/answers.h"
#include "target/program/direct_copies.h"
#include "target/program/places.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace offpath::target {

struct Connection;

// Images that the device's daemon keeps for later programs.
struct ImagesKept {
    std::uint32_t count = 0;
    std::uint64_t bytes = 0, limit_bytes = 0;
    std::uint64_t found = 0;    // times that one was there for a program
    std::uint64_t dropped = 0;  // to make room
};

// What a device says about itself.
struct DeviceFacts {
    std::string node;           // the device's name
    std::string architecture;   // in uname's form: x86_64, aarch64
    std::uint32_t cpus = 0;     // CPUs that regions may run on
    bool remote = false;        // it has an operating system of its own
    std::uint32_t seconds = 0;  // that regions may take if the program sets no limit; 0: no limit
    ImagesKept images;
};

// What became of the images that the program has loaded.
struct ImageCounts {
    std::uint64_t sent_bytes = 0;
    std::uint64_t found_bytes = 0;  // were there already
};

class Target {
  public:
    // Asks the device there, and starts nothing. unavailable, with `problem`: it cannot be reached.
    static Status probe(const Place& place, DeviceFacts& facts, std::string& problem);
    // Starts a target host there.
    static Status open(const Place& place, std::unique_ptr<Target>& target, std::string& problem);
    ~Target();

    const DeviceFacts& facts() const { return facts_; }

    // First of all calls: from now on functions use this process's memory at its own addresses
    // (host/unified_memory.h). unavailable, with `problem`: this host cannot do it; another host may.
    Status unify(std::string& problem);

    // Each of the following calls may also return peer_lost: the host has ended, and problem() tells how.
    // Sends the image only if neither the host nor its daemon has it.
    Status load(std::span<const std::byte> image, std::uint64_t& module, std::string& problem);
    ImageCounts image_counts() const { return {images_sent_, images_found_}; }
    // Loads the library NAME of the device (records.h).
    Status load_library(const std::string& name, std::uint64_t& module, std::string& problem);
    // The address is 0 for a name that the module does not have.
    Status symbols(std::uint64_t module, std::span<const std::string> names,
                   std::vector<std::uint64_t>& addresses);
    // Once, before other threads allocate: from now on small blocks come from memory that this process has
    // mapped as well, where the host can map its files. Not with unify().
    void open_pool();
    Status allocate(std::uint64_t bytes, std::uint64_t& address, std::string& problem);
    // Also of a mapped file.
    Status release(std::uint32_t stream, std::uint64_t address);

    // Whether the host can map this process's memory files.
    bool maps_files() const { return !facts_.remote && reads_program_; }
    // Maps a memory file of this process there, at `address` or, if that is 0, anywhere. unavailable: the
    // host has memory of its own at `address`.
    Status map_file(int descriptor, std::uint64_t bytes, std::uint64_t& address, std::string& problem);
    // From now on what is written to the mapped file there stays there.
    Status part(std::uint64_t address, std::string& problem);

    // Until a sync of the stream, `source` must stay unchanged and `destination` must not be used.
    Status put(std::uint32_t stream, std::uint64_t address, const void* source, std::uint64_t bytes);
    Status get(std::uint32_t stream, void* destination, std::uint64_t address, std::uint64_t bytes);
    Status copy(std::uint32_t stream, std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
    Status call(std::uint32_t stream, std::uint64_t function, std::span<const std::uint64_t> arguments);

    std::uint32_t new_stream();
    // Waits until all requests of the stream are done. Returns the first error of these, with `problem`.
    Status sync(std::uint32_t stream, std::string& problem);
    // Begins a sync, and returns its number for finish(). The first error is then over: no later sync has it.
    std::uint64_t begin_sync(std::uint32_t stream);
    // The same, but the error stays: the stream executes no function until a sync has returned the error.
    std::uint64_t begin_event(std::uint32_t stream);
    // in_progress: the sync is not done. Blocks if `wait`, for at most `limit_ns` if that is not 0. After
    // that time the host is given up: it ends, and this and all later calls return peer_lost, with
    // `limit_problem` as problem().
    Status finish(std::uint64_t number, bool wait, std::string& problem, std::uint64_t limit_ns = 0,
                  const std::string& limit_problem = {});
    // The same without `wait`, but the thread may sleep for `nap_ns` before.
    Status look(std::uint64_t number, std::string& problem, std::uint64_t nap_ns);

    // Tells how the host ended.
    std::string problem() const { return answers_.why(); }

  private:
    explicit Target(Connection connection);
    template <typename Body>
    Status send(std::uint64_t number, std::uint32_t stream, const Body& body,
                std::span<const std::byte> payload, bool now);
    Status flush_locked(std::span<const std::byte> more);
    std::uint64_t expect_copy(std::uint32_t stream, const ExpectedCopy& copy);
    void begin_request(std::uint32_t stream);
    Status send_get(std::uint32_t stream, const DirectCopies::Get& get);
    std::uint64_t send_sync(std::uint32_t stream, bool keeps_error);
    Answer ask(std::uint64_t number);
    Status end_sync(std::uint64_t number, const Answer& answer, std::string& problem);
    void reply(std::vector<std::byte> record);
    void send_replies();

    const DeviceFacts facts_;
    const ImageNonce image_nonce_;
    std::atomic<std::uint64_t> images_sent_{0}, images_found_{0};  // bytes
    const bool reads_program_;  // the host reads and writes this process's memory itself
    std::unique_ptr<Line> line_;
    Answers answers_;
    std::mutex sending_;
    std::vector<std::byte> batch_;  // not sent yet
    std::mutex replies_mutex_;
    std::vector<std::byte> replies_;  // records that threads which read want to send
    std::mutex copies_mutex_;
    std::map<std::uint32_t, std::vector<std::uint64_t>> copies_;  // by stream: numbers of copies not synced
    std::map<std::uint64_t, std::vector<std::uint64_t>> finishing_;  // by sync
    std::atomic<std::uint32_t> last_stream_{0};
    std::atomic<bool> has_pool_{false};
    DirectCopies direct_;
};

}  // namespace offpath::target
