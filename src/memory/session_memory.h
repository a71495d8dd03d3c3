// SessionMemory: the HostMemory of one session, assembled from the back ends available for its client.
// Regions go through `map` or `xgvmi`; other memory (region 0) goes through `cma` or `staged`. Ownership: the
// session owns it; the engine borrows it. Threads: the proxy's thread only, except that any thread may poll
// event_fd().
//
// A region's life starts with add_region(). A doorbell's use of it starts with pin() and ends with unpin().
// remove_region() returns retry until the last unpin(), and meanwhile no new pin succeeds. Its owner calls it
// again after completions, and acknowledges the revocation to the client once it returns ok.
//
// Pointers from direct() are valid while the region is pinned. A region that is not pinned may be unmapped to
// stay under the cap; the next pin maps it again.
#pragma once

#include "memory/exported/exported_memory.h"
#include "memory/host_memory.h"
#include "memory/staged_transfers.h"
#include "memory/staging_files.h"

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include <sys/types.h>

namespace offpath::memory {

// How memory outside regions is reached. automatic: cma if its probe succeeds, else staged.
enum class GeneralBackEnd : std::uint8_t { automatic = 0, cma = 1, staged = 2 };

struct SessionMemoryConfig {
    std::string client;  // in log lines, e.g. "rank 3 (pid 1234)"
    // The client's process, from the socket's credentials; 0 when it is not visible in this PID namespace.
    pid_t pid = 0;
    // A word in the client's memory and its value, both as claimed by the client. cma is used only if reading
    // the word yields the value.
    std::uint64_t probe_address = 0;
    std::uint64_t probe_value = 0;
    GeneralBackEnd general = GeneralBackEnd::automatic;
    std::uint32_t staging_slots = 8;               // 2 .. 64 chunks in flight
    std::uint32_t staging_slot_bytes = 256 << 10;  // 4 KiB .. 16 MiB, a multiple of 4 KiB
    std::uint64_t mapped_bytes_cap = std::uint64_t{64}
                                     << 30;  // of this session's regions in our address space
    std::uint32_t max_regions = 4096;
    ExportedMemory* exported = nullptr;  // null: no xgvmi here
    // Turns nonzero when the client has given up this device but lives on. Null: there is no such word.
    const std::atomic<std::uint32_t>* given_up = nullptr;
    // Raised while its memory is written by system call. Null likewise.
    std::atomic<std::uint32_t>* writing = nullptr;
    // Remote clients: how their memory is reached over the link. cma is then not tried, `general` must not
    // request it, and the staging sizes above are ignored.
    std::unique_ptr<StagedTransfers> transfers;
};

class SessionMemory : public HostMemory {
  public:
    // Adds a memory file of the client, which has mapped its bytes [0, bytes) at `address`. The client never
    // uses 0 as a region id and never reuses one, so the id also serves as the region's generation. Errors:
    // invalid (id, size, not a memory file, or one that can shrink), memory (over the caps).
    virtual Status add_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes, File file) = 0;
    // Adds a registration that the client exported (xgvmi). unsupported where there is no xgvmi.
    virtual Status add_exported_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes,
                                       std::span<const std::byte> blob) = 0;
    // Pages of ordinary memory that the client has put into a memory file (SharedPages). Errors: those of
    // SharedPages::add(), and unsupported unless ordinary memory goes through cma.
    virtual Status share_pages(std::uint64_t address, std::uint64_t bytes, File file) = 0;
    // The client has taken them away from there. Operations that were started before may still use the file.
    virtual void forget_pages(std::uint64_t address, std::uint64_t bytes) = 0;
    // ok: nothing here refers to the region any more. retry: it is still pinned. invalid: there is no such
    // region.
    virtual Status remove_region(std::uint64_t id) = 0;

    // Checks the range and keeps its region alive. access: out of bounds, unknown, or being removed.
    virtual Status pin(const HostRange& range) = 0;
    virtual void unpin(const HostRange& range) = 0;

    // The memory file that the range's region is mapped from, and the region's size. -1: the region has no
    // file. Valid while the region is pinned.
    virtual int region_file(const HostRange& range, std::uint64_t& bytes) const = 0;

    // cma or staged.
    virtual BackEnd general_back_end() const = 0;
    // The files to send to the client's StagingAgent; the caller closes them afterwards. Empty after the
    // first call, and unless general_back_end() is staged through shared memory.
    virtual StagingFiles take_staging_files() = 0;

    // Advances staged transfers and calls completions; the work is bounded. Returns how much moved. The
    // proxy's loop calls it every round; without staging it costs one branch.
    virtual unsigned progress() = 0;
    // For sleeping: arm() returns ok when event_fd() will become readable at the next answer, and retry when
    // there is work already. event_fd() is -1 where nothing can ever arrive. The next progress() disarms.
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;
    // ok, or the error for which the session must end. protocol: the client broke the staging rings.
    // peer_lost: its agent ended during transfers.
    virtual Status health() const = 0;

    // From now on new transfers, and those that have not started a chunk, end with `reason`. Chunks that the
    // client's agent is copying are completed first; drained() returns true afterwards.
    virtual void stop(Status reason) = 0;
    virtual bool drained() const = 0;
    // The client is gone: every transfer ends with `reason` before this returns.
    virtual void abandon(Status reason) = 0;
};

// Chooses the back ends and makes what they need. On an error `problem` tells people what is wrong and what
// would help. Errors: invalid (config), unsupported (cma was requested but is not available), memory, system.
Status make_session_memory(SessionMemoryConfig config, std::unique_ptr<SessionMemory>& memory,
                           std::string& problem);

}  // namespace offpath::memory
