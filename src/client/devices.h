// Where the device of a node listens, from OFFPATH_DEVICES. It has three forms:
//   ADDR[:PORT]                  the same for every node
//   NODE=ADDR[:PORT],NODE=...    by host name
//   @FILE                        lines NODE ADDR[:PORT]; # starts a comment
// A host name with a domain matches an entry without it, and the reverse. Threads: any.
#pragma once

#include "control/tcp_socket.h"

#include <string>

namespace offpath::client {

// invalid: the setting or a line of the file cannot be parsed. unavailable: there is no such file, or the
// node is not listed. `problem` says which, and what is listed.
Status find_device(const std::string& setting, const std::string& node, control::TcpAddress& address,
                   std::string& problem);

}  // namespace offpath::client
