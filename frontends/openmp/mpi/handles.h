// Handles of objects that regions make: the object's address where the MPI's handles are pointers, else a
// number. Threads: any.
#pragma once

#include "openmp/mpi/communicators.h"

#include <cstdint>
#include <mutex>
#include <type_traits>
#include <unordered_map>

namespace offpath::region_mpi {

// `checked`: handles of objects that are not here are recognised, also if handles are pointers.
template <typename Handle, typename Object, bool checked = false>
class Handles {
    static constexpr bool by_address = std::is_pointer_v<Handle>;

  public:
    Handle make(Object* object) {
        if constexpr (by_address && !checked) {
            return reinterpret_cast<Handle>(object);
        } else {
            std::lock_guard lock(mutex_);
            const std::uint64_t bits = by_address ? reinterpret_cast<std::uint64_t>(object) : ++last_;
            objects_[bits] = object;
            Handle handle{};
            std::memcpy(&handle, &bits, sizeof handle);
            return handle;
        }
    }
    // Null: there is no such object. Without checks, any pointer counts as one.
    Object* find(Handle handle) {
        if constexpr (by_address && !checked) {
            return reinterpret_cast<Object*>(handle);
        } else {
            std::lock_guard lock(mutex_);
            const auto found = objects_.find(bits_of(handle));
            return found != objects_.end() ? found->second : nullptr;
        }
    }
    void forget(Handle handle) {
        std::lock_guard lock(mutex_);
        objects_.erase(bits_of(handle));
    }

  private:
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, Object*> objects_;
    std::uint32_t last_ = 0x6f000000;
};

}  // namespace offpath::region_mpi
