// Exported memory handles of UCX (1.14 and later; mlx5 devices with cross-GVMI). A host packs a registration
// of its memory. A device imports it and reads and writes that memory through its network card, at the host's
// addresses. These handles need contexts of their own: a context that requests the feature cannot connect
// over transports that lack it. Threads: one per object.
#pragma once

#include "memory/exported/exported_memory.h"
#include "memory/exported/host_exporter.h"
#include "transport/ucx/ucx_transport.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport {

struct ExportedMemoryProbe {
    bool compiled = false;  // the UCX of the build has exported memory handles
    bool works = false;     // a page was exported and imported again just now
    std::string result;     // "works: ..." or "unsupported: ..."
};
ExportedMemoryProbe probe_exported_memory(const UcxConfig& config = {});

// The device's side.
class DeviceMemory : public memory::ExportedMemory {
  public:
    // Advances reads and writes and calls their completions. Returns how many events it handled.
    virtual unsigned progress() = 0;
    // These serve sleeping, as in Transport.
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;
};

// `config.imports` says where import_region() gets its memory; with own_process the blob is ignored. Errors:
// unsupported or unavailable; `problem` says what is missing.
Status open_device_memory(const UcxConfig& config, std::unique_ptr<DeviceMemory>& memory,
                          std::string& problem);
// The same for a fabric of make_ucx_transport() that imports: it then moves these imports by itself. Either
// may end first.
Status open_device_memory(Transport& fabric, std::unique_ptr<DeviceMemory>& memory, std::string& problem);

// The host's side.
Status open_host_exporter(const UcxConfig& config, std::unique_ptr<memory::HostExporter>& exporter,
                          std::string& problem);

}  // namespace offpath::transport
