// SharedMemory: memory that the program and a device on its system both have, so that nothing is copied. It
// is of two kinds. make() gives new memory, at the same address on both sides. share() lets the device map
// memory of the program that is a memory file already (memory/shareable.h); its address there is another.
// OFFPATH_TARGET_SHARE=off switches the second kind off.
//
// Ownership: owns what make() gives, until free(). A file stays mapped on the device after its last user, for
// the next one, until the program has given it up. Threads: any.
#pragma once

#include "base/status.h"
#include "memory/file.h"
#include "target/program/target.h"

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>

namespace offpath::openmp {

class SharedMemory {
  public:
    // memory, unsupported, unavailable: with `problem`.
    Status make(target::Target& target, std::uint64_t bytes, void*& address, std::string& problem);
    // Nothing that was started still uses it. False: make() did not give it.
    bool free(target::Target& target, void* address);

    // Returns where the device has these bytes, or null if they cannot be shared. unshare() ends each use.
    void* share(target::Target& target, const void* host, std::uint64_t bytes);
    // False: share() did not give it.
    bool unshare(target::Target& target, const void* address);
    // Whether the bytes at `there` on the device are the program's own at `host`, so that nothing is to be
    // copied. If not, and `writes`, they are about to be written: the device gets pages of its own first.
    // Otherwise a pointer that is attached on the device would change the program's pointer.
    bool same(target::Target& target, const void* there, const void* host, std::uint64_t bytes, bool writes);
    // Whether share() gave these bytes and they are the program's own.
    bool shared(const void* there);

  private:
    struct Own {
        memory::File file;
        memory::Mapping mapping;
    };
    struct Shared {
        const std::byte* host = nullptr;
        std::uint64_t bytes = 0, number = 0;
        int users = 0;
        bool parted = false;  // the device has pages of its own
    };
    using Files = std::map<const std::byte*, Shared>;  // by address on the device
    Files::iterator find(const void* there);
    void drop_ended(target::Target& target, std::uint64_t ended);

    std::mutex mutex_;
    std::map<const void*, Own> own_;
    Files files_;
    std::uint64_t ended_ = 0;
    bool works_ = true;  // the device could map all files so far
};

}  // namespace offpath::openmp
