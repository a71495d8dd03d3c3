// Where the devices of this node are whose target regions a program may use. OFFPATH_TARGET_DEVICES lists
// them, separated by commas; device 0 is the first:
//   DIRECTORY      a device of this system: the directory of its daemon, with a slash in it
//   ADDR[:PORT]    a device with a system of its own
//   NODE=...       either of them, for the node of that name only
// Without the setting there is one device, as OFFPATH_DIR and OFFPATH_DEVICES say. Threads: any.
#pragma once

#include "base/status.h"

#include <string>
#include <vector>

namespace offpath::target {

struct Place {
    std::string directory, address;  // one of them, or none: the node's device as for every client
};

// invalid: an entry cannot be parsed, which `problem` names. unavailable: none is for `node`.
Status parse_places(const std::string& setting, const std::string& node, std::vector<Place>& places,
                    std::string& problem);
// The same with the setting, for this node.
Status find_places(std::vector<Place>& places, std::string& problem);

}  // namespace offpath::target
