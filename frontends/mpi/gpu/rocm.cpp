// ROCm's HIP, from its reference manual. This file repeats the types and numbers, so that the build needs
// nothing from ROCm.
#include <initializer_list>

#include "drivers.h"

namespace offpath::mpi::gpu {
namespace {

constexpr int copy_by_addresses = 4;  // hipMemcpyDefault

// Releases differ in the numbers of `type`, and newer ones append members to the structure.
struct Attributes {
    int type;
    int device;
    void* device_address;
    void* host_address;
    int is_managed;
    unsigned flags;
    char later[64];
};

class Rocm final : public Driver {
  public:
    bool open() {
        for (const char* name :
             {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
            const Library library(name);
            if (library.is_loaded() && library.find(attributes_, "hipPointerGetAttributes") &&
                library.find(version_, "hipRuntimeGetVersion") && library.find(copy_, "hipMemcpy") &&
                library.find(forget_error_, "hipGetLastError"))
                return set_numbers();
        }
        return false;
    }

    bool holds(const void* address) const override {
        Attributes found{};
        if (attributes_(&found, address) != success) {
            forget_error_();  // a host address is no error of the program
            return false;
        }
        return (found.type == type_device_ || found.type == type_array_) && found.is_managed == 0;
    }

    bool copy(void* to, const void* from, std::size_t bytes) const override {
        return copy_(to, from, bytes, copy_by_addresses) == success;
    }

  private:
    bool set_numbers() {
        int version = 0;
        if (version_(&version) != success) return false;
        const bool from_6_on = version >= 60'000'000;
        type_device_ = from_6_on ? 2 : 1;
        type_array_ = from_6_on ? 10 : 2;
        return true;
    }

    Result (*attributes_)(Attributes*, const void*) = nullptr;
    Result (*version_)(int*) = nullptr;
    Result (*copy_)(void*, const void*, std::size_t, int) = nullptr;
    Result (*forget_error_)() = nullptr;
    int type_device_ = 0, type_array_ = 0;
};

}  // namespace

Driver* find_rocm() {
    static Rocm driver;
    return driver.open() ? &driver : nullptr;
}

}  // namespace offpath::mpi::gpu
