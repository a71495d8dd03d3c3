// The plug-in that LLVM's libomptarget loads: target regions of OpenMP programs run on this node's device. It
// is built once for each architecture of devices, since libomptarget finds plug-ins by it. A device that
// cannot be reached counts as none: target regions then run on the host.
#include "base/environment.h"
#include "memory/checked_memory.h"
#include "mpi/runtime/regions.h"
#include "openmp/device.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#define OFFPATH_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace offpath;
using namespace offpath::openmp;

#if defined(OFFPATH_PLUGIN_X86_64)
constexpr int machine = EM_X86_64;
constexpr const char* architecture = "x86_64";
#elif defined(OFFPATH_PLUGIN_AARCH64)
constexpr int machine = EM_AARCH64;
constexpr const char* architecture = "aarch64";
#endif
#if defined(__x86_64__) && defined(OFFPATH_PLUGIN_X86_64)
constexpr bool speaks = true;  // of the plug-ins that are all loaded, one tells what is wrong
#elif defined(__aarch64__) && defined(OFFPATH_PLUGIN_AARCH64)
constexpr bool speaks = true;
#else
constexpr bool speaks = false;
#endif

constexpr std::int64_t unified_shared_memory = 8;  // of the flags that the program requires

// For the process's life: libomptarget may use them while the process ends.
auto& devices = *new std::vector<std::unique_ptr<Device>>;
bool looked = false;   // for devices
bool unified = false;  // the program requires unified shared memory

Device& device(std::int32_t number) {
    return *devices[static_cast<std::size_t>(number)];
}

// MPI_Init joins the first devices of all ranks if an image calls MPI.
constexpr mpi::RegionsMpi regions_mpi = {
    [] { return device(0).prepare_mpi(unified); },
    [](std::uint32_t rank, std::uint32_t size) { return device(0).begin_mpi(rank, size); },
    [](void* mine, std::size_t bytes) { return device(0).mpi().take(mine, bytes); },
    [](const void* all, std::size_t bytes) { device(0).mpi().give(all, bytes); },
    [] { return device(0).mpi().joined(); },
    [] { device(0).mpi().end(); },
};

void serve_mpi(const DeviceImage& image) {
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(image.begin),
                                           static_cast<const std::byte*>(image.end));
    const auto serve = reinterpret_cast<decltype(&offpath_mpi_serve_regions)>(
        dlsym(RTLD_DEFAULT, "offpath_mpi_serve_regions"));
    if (serve != nullptr && calls_mpi(bytes)) serve(&regions_mpi);
}

bool is_off() {
    const char* const setting = std::getenv("OFFPATH");
    return setting != nullptr && std::strcmp(setting, "off") == 0;
}

void find_devices() {
    std::vector<target::Place> places;
    std::string problem;
    problem = wrong_settings();
    if (!problem.empty() || target::find_places(places, problem) != Status::ok) {
        if (speaks) complain(problem + "; target regions run on the host");
        return;
    }
    for (target::Place& place : places) {
        target::DeviceFacts facts;
        if (target::Target::probe(place, facts, problem) != Status::ok) {
            if (speaks)
                complain(problem + (places.size() == 1 ? "; target regions run on the host"
                                                       : "; it is left out of the program's devices"));
        } else if (facts.architecture == architecture) {
            devices.push_back(std::make_unique<Device>(std::move(place), std::move(facts)));
        }
    }
}

// The machine that an image is for; EM_NONE: it is no ELF file.
int machine_of(const DeviceImage& image) {
    const auto* const begin = static_cast<const unsigned char*>(image.begin);
    Elf64_Ehdr head;
    if (begin == nullptr ||
        static_cast<const unsigned char*>(image.end) - begin < static_cast<std::ptrdiff_t>(sizeof head))
        return EM_NONE;
    std::memcpy(&head, begin, sizeof head);
    return std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 ? head.e_machine : EM_NONE;
}

// Reads what is at an address that may not be there.
template <typename Value>
bool read_at(std::uint64_t address, Value& value) {
    return memory::CheckedMemory::read_some(address, std::as_writable_bytes(std::span(&value, 1))) ==
           sizeof value;
}

// What stands before each image: libomptarget 15 to 17 keeps all images in a std::list of libstdc++.
struct ListNode {
    std::uint64_t next = 0, previous = 0;
};

// All images of the program or library that this one belongs to: they have the same entries, which those of
// others do not. libomptarget shows them one by one, and not how many there are. Empty: they stand otherwise
// than in that list.
std::vector<DeviceImage> images_beside(const DeviceImage& image) {
    constexpr int most = 1 << 12;
    std::vector<DeviceImage> found;
    const std::uint64_t start = reinterpret_cast<std::uint64_t>(&image) - sizeof(ListNode);
    std::uint64_t at = start;
    for (int i = 0; i < most; ++i) {
        ListNode node, next;
        if (!read_at(at, node) || !read_at(node.next, next) || next.previous != at) return {};
        DeviceImage copy;
        if (read_at(at + sizeof node, copy) && copy.entries_begin == image.entries_begin &&
            copy.entries_end == image.entries_end)
            found.push_back(copy);
        at = node.next;
        if (at == start) return found;
    }
    return {};
}

const char* machine_name(int number) {
    return number == EM_X86_64 ? "x86-64" : number == EM_AARCH64 ? "aarch64" : "other machines";
}

// Tells it, once, if none of the images beside this one is for the devices of this plug-in.
void complain_of_others(const DeviceImage& image) {
    static std::set<const void*> told;
    std::string others;
    for (const DeviceImage& each : images_beside(image)) {
        const int found = machine_of(each);
        if (found == machine) return;
        const char* const name = machine_name(found);
        if (others.find(name) == std::string::npos)
            others += (others.empty() ? "" : " and ") + std::string(name);
    }
    if (others.empty() || !told.insert(image.entries_begin).second) return;
    for (const auto& each : devices)
        complain(
            fmt::format("the program has target regions for {}, and device {} is {}: it runs none of them",
                        others, each->facts().node, machine_name(machine)));
}

}  // namespace

OFFPATH_EXPORT std::int32_t __tgt_rtl_is_valid_binary(DeviceImage* image) {
    if (machine_of(*image) != machine) {
        if (!devices.empty()) complain_of_others(*image);
        return 0;
    }
    if (!devices.empty()) serve_mpi(*image);
    return 1;
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_number_of_devices() {
    if (!looked && !is_off()) {
        find_devices();
        std::atexit([] {
            if (environment::text("OFFPATH_TARGET_REPORT", "0") == "0") return;
            for (const auto& each : devices)
                each->report();
        });
    }
    looked = true;
    return static_cast<std::int32_t>(devices.size());
}

OFFPATH_EXPORT std::int64_t __tgt_rtl_init_requires(std::int64_t flags) {
    unified = (flags & unified_shared_memory) != 0;
    return flags;
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_init_device(std::int32_t number) {
    return device(number).start(unified) ? success : failure;
}

OFFPATH_EXPORT TargetTable* __tgt_rtl_load_binary(std::int32_t number, DeviceImage* image) {
    return device(number).load(*image);
}

OFFPATH_EXPORT void* __tgt_rtl_data_alloc(std::int32_t number, std::int64_t bytes, void* host,
                                          std::int32_t kind) {
    return kind == host_memory || kind == shared_memory ? device(number).allocate_common(bytes)
                                                        : device(number).allocate(bytes, host);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_data_delete(std::int32_t number, void* address, std::int32_t kind) {
    return kind == host_memory || kind == shared_memory ? device(number).release_common(address)
                                                        : device(number).release(address);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_data_submit(std::int32_t number, void* to, void* from,
                                                  std::int64_t bytes) {
    return device(number).submit(to, from, bytes, nullptr);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_data_submit_async(std::int32_t number, void* to, void* from,
                                                        std::int64_t bytes, AsyncInfo* async) {
    return device(number).submit(to, from, bytes, async);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_data_retrieve(std::int32_t number, void* to, void* from,
                                                    std::int64_t bytes) {
    return device(number).retrieve(to, from, bytes, nullptr);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_data_retrieve_async(std::int32_t number, void* to, void* from,
                                                          std::int64_t bytes, AsyncInfo* async) {
    return device(number).retrieve(to, from, bytes, async);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_is_data_exchangable(std::int32_t from, std::int32_t to) {
    return from == to ? 1 : 0;
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_data_exchange(std::int32_t number, void* from, std::int32_t, void* to,
                                                    std::int64_t bytes) {
    return device(number).exchange(from, to, bytes, nullptr);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_data_exchange_async(std::int32_t number, void* from, std::int32_t,
                                                          void* to, std::int64_t bytes, AsyncInfo* async) {
    return device(number).exchange(from, to, bytes, async);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_launch_kernel(std::int32_t number, void* entry, void** arguments,
                                                    std::ptrdiff_t* offsets, const KernelArguments* kernel,
                                                    AsyncInfo* async) {
    return device(number).launch(entry, arguments, offsets, *kernel, async);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_synchronize(std::int32_t number, AsyncInfo* async) {
    return device(number).synchronize(async);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_query_async(std::int32_t number, AsyncInfo* async) {
    return device(number).query(async);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_create_event(std::int32_t number, void** event) {
    return device(number).create_event(event);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_record_event(std::int32_t number, void* event, AsyncInfo* async) {
    return device(number).record_event(event, async);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_wait_event(std::int32_t number, void* event, AsyncInfo*) {
    return device(number).wait_event(event);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_sync_event(std::int32_t number, void* event) {
    return device(number).wait_event(event);
}

OFFPATH_EXPORT std::int32_t __tgt_rtl_destroy_event(std::int32_t number, void* event) {
    return device(number).destroy_event(event);
}

OFFPATH_EXPORT void __tgt_rtl_print_device_info(std::int32_t number) {
    const target::DeviceFacts& facts = device(number).facts();
    std::printf("    offpath device %s\n    Architecture: %s\n    CPUs: %u\n    Attached: %s\n",
                facts.node.c_str(), facts.architecture.c_str(), facts.cpus,
                facts.remote ? "remotely" : "locally");
    const target::ImagesKept& kept = facts.images;
    std::printf(
        "    Images kept: %u\n    Image bytes: %llu of %llu\n    Images found: %llu\n"
        "    Images dropped: %llu\n",
        kept.count, static_cast<unsigned long long>(kept.bytes),
        static_cast<unsigned long long>(kept.limit_bytes), static_cast<unsigned long long>(kept.found),
        static_cast<unsigned long long>(kept.dropped));
}
