// SessionMemory: the HostMemory of one session, put together from the back ends that its client can have:
// regions through `map` or `xgvmi`, any other memory (region 0) through `cma` or `staged`. Ownership: the
// session owns it; the engine borrows it. Threads: the proxy's thread only, except that the fd of event_fd()
// may be polled anywhere.
//
// Life of a region: add_region; pin() for each use that a doorbell starts, unpin() when it completes;
// remove_region, which answers retry until the last unpin (no new pin succeeds meanwhile): the owner calls it
// again after completions and acknowledges the revocation to the client when it is ok. Pointers from direct()
// are valid while the region is pinned. Mappings of regions that are not pinned may be given up under the
// cap, and come back with the next pin.
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

// How memory outside regions is reached. automatic: cma where its probe succeeds, else staged.
enum class GeneralBackEnd : std::uint8_t { automatic = 0, cma = 1, staged = 2 };

struct SessionMemoryConfig {
    std::string client;  // in log lines, e.g. "rank 3 (pid 1234)"
    // Of the client, from the socket's credentials; 0 when the client is not visible in this PID namespace.
    pid_t pid = 0;
    // A word in the client's memory and its value, both as the client says: cma is taken only if reading the
    // word gives the value.
    std::uint64_t probe_address = 0;
    std::uint64_t probe_value = 0;
    GeneralBackEnd general = GeneralBackEnd::automatic;
    std::uint32_t staging_slots = 8;               // 2 .. 64 chunks in flight
    std::uint32_t staging_slot_bytes = 256 << 10;  // 4 KiB .. 16 MiB, a multiple of 4 KiB
    std::uint64_t mapped_bytes_cap = std::uint64_t{64}
                                     << 30;  // of this session's regions in our address space
    std::uint32_t max_regions = 4096;
    ExportedMemory* exported = nullptr;  // null: no xgvmi here
    // Not 0 when the client, which lives on, has given this device up; null: there is no such word.
    const std::atomic<std::uint32_t>* given_up = nullptr;
    // Remote clients: how their memory is reached over the link. Then cma is not tried, `general` may not ask
    // for it, and the staging sizes above say nothing.
    std::unique_ptr<StagedTransfers> transfers;
};

class SessionMemory : public HostMemory {
  public:
    // A memory file of the client, whose bytes [0, bytes) it has mapped at `address`. Region ids are never 0
    // and never used again by the client, so they are the region's generation too. Errors: invalid (id, size,
    // not a memory file, or one that can shrink), memory (over the caps).
    virtual Status add_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes, File file) = 0;
    // A registration that the client exported (xgvmi). unsupported where there is none.
    virtual Status add_exported_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes,
                                       std::span<const std::byte> blob) = 0;
    // ok: nothing here refers to the region any more. retry: still pinned. invalid: no such region.
    virtual Status remove_region(std::uint64_t id) = 0;

    // Checks the range and keeps its region from going away. access: outside, unknown, or being removed.
    virtual Status pin(const HostRange& range) = 0;
    virtual void unpin(const HostRange& range) = 0;

    // The memory file that the range's region is mapped from, and the region's size; -1: it has none. Valid
    // while the region is pinned.
    virtual int region_file(const HostRange& range, std::uint64_t& bytes) const = 0;

    // cma or staged.
    virtual BackEnd general_back_end() const = 0;
    // What the client's StagingAgent needs, to be sent to it and closed here; empty unless general_back_end()
    // is staged through shared memory, and after the first call.
    virtual StagingFiles take_staging_files() = 0;

    // Moves staged transfers on and calls completions; bounded work. Returns how much moved. Called by the
    // proxy's loop every round; costs one branch without staging.
    virtual unsigned progress() = 0;
    // To sleep: arm() is ok if event_fd() (-1: never anything to wait for) turns readable at the next answer,
    // retry if there is something to do already. The next progress() disarms.
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;
    // ok, or the error for which the session must be ended (protocol: the client broke the staging rings;
    // peer_lost: its agent ended in the middle of transfers).
    virtual Status health() const = 0;

    // No new transfers: they end with `reason` from now on, and so do those that have not started a chunk.
    // What the client's agent is copying at this moment is waited for: drained() tells.
    virtual void stop(Status reason) = 0;
    virtual bool drained() const = 0;
    // The client is gone: everything ends with `reason` before this returns.
    virtual void abandon(Status reason) = 0;
};

// Chooses the back ends and makes what they need. On an error `problem` says for people what is wrong and
// what would help. Errors: invalid (config), unsupported (cma was asked for and cannot be had), memory,
// system.
Status make_session_memory(SessionMemoryConfig config, std::unique_ptr<SessionMemory>& memory,
                           std::string& problem);

}  // namespace offpath::memory
