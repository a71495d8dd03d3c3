// CUDA's driver API, from its reference manual. This file repeats the types and numbers, so that the build
// needs nothing from CUDA.
#include <cstdint>

#include "drivers.h"

namespace offpath::mpi::gpu {
namespace {

using Address = std::uint64_t;  // CUdeviceptr
using Context = void*;

constexpr int attribute_context = 1;
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr unsigned memory_type_device = 2;
constexpr unsigned memory_type_array = 3;

class Cuda final : public Driver {
  public:
    bool open() {
        const Library library("libcuda.so.1");
        return library.is_loaded() && library.find(attribute_, "cuPointerGetAttribute") &&
               library.find(push_, "cuCtxPushCurrent_v2") && library.find(pop_, "cuCtxPopCurrent_v2") &&
               library.find(copy_, "cuMemcpy") && library.find(synchronize_, "cuStreamSynchronize");
    }

    bool holds(const void* address) const override {
        unsigned type = 0;
        if (attribute_(&type, attribute_memory_type, at(address)) != success) return false;
        if (type != memory_type_device && type != memory_type_array) return false;
        unsigned managed = 0;
        return attribute_(&managed, attribute_is_managed, at(address)) != success || managed == 0;
    }

    bool copy(void* to, const void* from, std::size_t bytes) const override {
        Context context = context_of(to);
        if (context == nullptr) context = context_of(from);
        // Memory of a pool has no context; the thread's own context works.
        const bool pushed = context != nullptr && push_(context) == success;
        // A copy from pageable memory may still be in progress on the GPU when the call returns.
        const bool good = copy_(at(to), at(from), bytes) == success && synchronize_(nullptr) == success;
        if (pushed) pop_(&context);
        return good;
    }

  private:
    static Address at(const void* address) { return reinterpret_cast<Address>(address); }
    Context context_of(const void* address) const {
        Context context = nullptr;
        return attribute_(static_cast<void*>(&context), attribute_context, at(address)) == success ? context
                                                                                                   : nullptr;
    }

    Result (*attribute_)(void*, int, Address) = nullptr;
    Result (*push_)(Context) = nullptr;
    Result (*pop_)(Context*) = nullptr;
    Result (*copy_)(Address, Address, std::size_t) = nullptr;
    Result (*synchronize_)(void*) = nullptr;
};

}  // namespace

Driver* find_cuda() {
    static Cuda driver;
    return driver.open() ? &driver : nullptr;
}

}  // namespace offpath::mpi::gpu
