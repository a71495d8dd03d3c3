// A stand-in for a network card that exports and imports memory, for programs of one system on real verbs. An
// export names a process and one of its shared mappings. An import maps the same bytes at the owner's own
// address, registers them, and takes all access away again: from then on only the network card reaches them,
// and an instruction of the device that touched them would end it. All but these two calls is the real thing.
#include "transport/ucx/exported_memory.h"
#include "transport/ucx/import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

namespace offpath::transport {
namespace {

struct Mapping {
    std::uint64_t pid = 0, begin = 0, end = 0;  // of the whole mapping, as /proc names it
};

bool find_mapping(std::uint64_t address, std::uint64_t bytes, Mapping& found) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        char access[5] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &found.begin, &found.end, access) != 3) continue;
        if (address < found.begin || address >= found.end) continue;
        found.pid = static_cast<std::uint64_t>(getpid());
        return access[3] == 's' && bytes <= found.end - address;
    }
    return false;
}

class Export final : public memory::HostExport {
  public:
    explicit Export(const Mapping& mapping) { std::memcpy(blob_.data(), &mapping, sizeof mapping); }
    std::span<const std::byte> blob() const override { return blob_; }

  private:
    std::array<std::byte, sizeof(Mapping)> blob_{};
};

class Exporter final : public memory::HostExporter {
  public:
    Status export_region(void* address, std::size_t bytes, std::unique_ptr<memory::HostExport>& exported,
                         std::string& problem) override {
        Mapping mapping;
        if (!find_mapping(reinterpret_cast<std::uint64_t>(address), bytes, mapping)) {
            problem = "the stand-in exports shared mappings only";
            return Status::unsupported;
        }
        exported = std::make_unique<Export>(mapping);
        return Status::ok;
    }
};

// What is mapped here from other processes, by address. It stays until the address is used again.
std::map<std::uint64_t, std::uint64_t> mapped_here;

bool map_there(const Mapping& mapping, std::uint64_t first, std::uint64_t bytes) {
    const std::string path =
        fmt::format("/proc/{}/map_files/{:x}-{:x}", mapping.pid, mapping.begin, mapping.end);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    if (const auto old = mapped_here.find(first); old != mapped_here.end()) {
        munmap(reinterpret_cast<void*>(first), old->second);
        mapped_here.erase(old);
    }
    void* const wanted = reinterpret_cast<void*>(first);
    void* const at = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file,
                          static_cast<off_t>(first - mapping.begin));
    close(file);
    if (at != wanted) return false;
    mapped_here[first] = bytes;
    return true;
}

}  // namespace

namespace ucx {

Status add_import_features(MemorySource, unsigned long& features, std::string&) {
    features |= UCP_FEATURE_RMA;
    return Status::ok;
}

ucs_status_t import_memory(ucp_context_h context, MemorySource, std::span<const std::byte> blob,
                           std::uint64_t address, std::uint64_t bytes, Memory& memory) {
    Mapping mapping;
    if (blob.size() != sizeof mapping) return UCS_ERR_INVALID_PARAM;
    std::memcpy(&mapping, blob.data(), sizeof mapping);
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const std::uint64_t first = address / page * page;
    const std::uint64_t length = (address + bytes - first + page - 1) / page * page;
    if (!map_there(mapping, first, length)) return UCS_ERR_IO_ERROR;
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = reinterpret_cast<void*>(address);
    params.length = bytes;
    const ucs_status_t status = memory.map(context, params);
    if (mprotect(reinterpret_cast<void*>(first), length, PROT_NONE) != 0) return UCS_ERR_IO_ERROR;
    return status;
}

}  // namespace ucx

Status open_host_exporter(const UcxConfig&, std::unique_ptr<memory::HostExporter>& exporter, std::string&) {
    exporter = std::make_unique<Exporter>();
    return Status::ok;
}

ExportedMemoryProbe probe_exported_memory(const UcxConfig&) {
    return {true, true, "works: a stand-in for tests"};
}

}  // namespace offpath::transport
