// Opens liboffpath-link.so, which lies beside the library or program that this is linked into, and makes a
// host link over UCX with it, or what exports memory for back end xgvmi. Only remote attach comes here:
// otherwise no UCX gets into the program. Threads: any; the library stays loaded.
#pragma once

#include "link/host_link.h"
#include "memory/exported/host_exporter.h"

namespace offpath::link {

// unavailable: the library or its UCX cannot be loaded, or UCX finds no way out; `problem` says which.
Status load_host_link(const HostLinkOptions& options, std::unique_ptr<HostLink>& link, std::string& problem);

// `devices`: as HostLinkOptions. unsupported or unavailable with `problem`.
Status load_host_exporter(const std::string& devices, std::unique_ptr<memory::HostExporter>& exporter,
                          std::string& problem);

}  // namespace offpath::link
