// The symbols of liboffpath-link.so: C linkage, C++ types. The library and its caller must come from the same
// build. The size of the options detects some mismatches.
#pragma once

#include "link/host_link.h"
#include "memory/exported/host_exporter.h"

#include <cstddef>
#include <memory>
#include <string>

namespace offpath::link {

using OpenFunction = Status (*)(std::size_t options_bytes, const HostLinkOptions& options,
                                std::unique_ptr<HostLink>& link, std::string& problem);
constexpr const char* open_function_name = "offpath_link_open";
using OpenExporterFunction = Status (*)(const std::string& devices,
                                        std::unique_ptr<memory::HostExporter>& exporter,
                                        std::string& problem);
constexpr const char* open_exporter_function_name = "offpath_link_open_exporter";
constexpr const char* library_name = "liboffpath-link.so";

}  // namespace offpath::link
