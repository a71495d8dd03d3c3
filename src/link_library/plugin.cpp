#include "link/plugin/plugin_interface.h"
#include "transport/ucx/exported_memory.h"

#include "base/log.h"
#include "base/own_descriptors.h"
#include "link/choice/transport_choice.h"
#include "transport/transport.h"

using namespace offpath;

// NOLINTNEXTLINE: plugin_interface.h describes its types
extern "C" __attribute__((visibility("default"))) Status offpath_link_open(
    std::size_t options_bytes, const link::HostLinkOptions& options, std::unique_ptr<link::HostLink>& result,
    std::string& problem) {
    if (options_bytes != sizeof options) {
        problem = "liboffpath-link.so is of another build than its caller";
        return Status::version;
    }
    log::configure(options.log_role, options.log_level);
    own_descriptors::replace_in_children();  // in this library's own copy of room base
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<transport::OneSided> one_sided;
    if (const Status status = link::make_host_transport(options.devices, transport, one_sided, problem);
        status != Status::ok)
        return status;
    return link::make_host_link(std::move(transport), std::move(one_sided), result, problem);
}

extern "C" __attribute__((visibility("default"))) Status offpath_link_open_exporter(
    const std::string& devices, std::unique_ptr<memory::HostExporter>& exporter, std::string& problem) {
    transport::UcxConfig config;
    config.net_devices = devices;
    return transport::open_host_exporter(config, exporter, problem);
}

static_assert(std::is_same_v<decltype(&offpath_link_open), link::OpenFunction>);
static_assert(std::is_same_v<decltype(&offpath_link_open_exporter), link::OpenExporterFunction>);
