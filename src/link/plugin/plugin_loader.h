// Loads liboffpath-link.so from the directory of the library or program that this is linked into. It makes a
// host link over UCX, or an exporter of memory for back end xgvmi. Only remote attach uses it, so other
// programs never load UCX. Threads: any; the library stays loaded.
#pragma once

#include "link/host_link.h"
#include "memory/exported/host_exporter.h"

namespace offpath::link {

// unavailable: the library or its UCX cannot be loaded, or UCX has no usable transport; `problem` says which.
Status load_host_link(const HostLinkOptions& options, std::unique_ptr<HostLink>& link, std::string& problem);

// `devices` is as in HostLinkOptions. Errors: unsupported or unavailable, with `problem`.
Status load_host_exporter(const std::string& devices, std::unique_ptr<memory::HostExporter>& exporter,
                          std::string& problem);

}  // namespace offpath::link
