#include "link/ucx_link.h"

#include "transport/ucx/ucx_transport.h"

#include <cstdlib>

namespace offpath::link {

Status make_link_transport(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                           std::string& problem) {
    transport::UcxConfig config;
    config.net_devices = devices;
    config.in_process = false;
    config.several_threads = true;
    if (std::getenv("UCX_TLS") == nullptr) config.tls = "^shm,self";
    return transport::make_ucx_transport(config, transport, problem);
}

}  // namespace offpath::link
