// UCX settings: those requested in UcxConfig, and our own tuning where the environment sets nothing.
// tuning.cpp gives the reason for each tuned value next to it.
#pragma once

#include "transport/ucx/ucx_transport.h"

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <type_traits>

namespace offpath::transport::ucx {

struct ConfigRelease {
    void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
struct ContextRelease {
    void operator()(ucp_context_h context) const { ucp_cleanup(context); }
};
using Config = std::unique_ptr<ucp_config_t, ConfigRelease>;
using Context = std::unique_ptr<std::remove_pointer_t<ucp_context_h>, ContextRelease>;
using SharedContext = std::shared_ptr<std::remove_pointer_t<ucp_context_h>>;

// Reads UCX's configuration and applies our settings. Null, with `problem`, on error.
Config read_config(const UcxConfig& config, std::string& problem);

// Opens a context with these UCP_FEATURE_* bits. Null, with `problem`, on error.
Context open_context(const UcxConfig& config, unsigned long features, std::string& problem);

// Lists "transport/device" for every resource that the context uses.
std::vector<std::string> resources_of(ucp_context_h context);

// The settings in force that choose transports, for messages, e.g. "UCX_TLS=..., UCX_NET_DEVICES=...".
std::string choice_of(const UcxConfig& config);

}  // namespace offpath::transport::ucx
