// The functions of a GPU's driver library that the front end uses. One object per library that the process
// has loaded. It is never destroyed, because its last call may come at any time. Threads: any.
#pragma once

#include <dlfcn.h>

#include <cstddef>

namespace offpath::mpi::gpu {

// What all functions of the three libraries return.
using Result = int;
constexpr Result success = 0;

class Driver {
  public:
    Driver() = default;
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    virtual ~Driver() = default;

    virtual bool holds(const void* address) const = 0;
    // One of the two addresses is memory of this driver's GPUs.
    virtual bool copy(void* to, const void* from, std::size_t bytes) const = 0;
};

// Null: not loaded, or too old.
Driver* find_cuda();
Driver* find_rocm();
Driver* find_level_zero();

// A library that the process has loaded and keeps loaded.
class Library {
  public:
    explicit Library(const char* name);

    bool is_loaded() const { return handle_ != nullptr; }
    // False: the library has no such function.
    template <typename Function>
    bool find(Function*& function, const char* name) const {
        function = reinterpret_cast<Function*>(dlsym(handle_, name));
        return function != nullptr;
    }

  private:
    void* handle_;
};

}  // namespace offpath::mpi::gpu
