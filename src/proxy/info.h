// Facts about this device as JSON; `offpathd --info` prints them.
#pragma once

#include <string>

namespace offpath::proxy {

std::string device_info(const std::string& node, const std::string& net_devices);

}  // namespace offpath::proxy
