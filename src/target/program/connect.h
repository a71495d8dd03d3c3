// Connects a program to the devices of its node for target regions. Settings: OFFPATH_DIR, OFFPATH_DEVICES,
// OFFPATH_KEY_FILE, OFFPATH_AUTOSTART, as for every client, and OFFPATH_TARGET_DEVICES. Threads: any.
#pragma once

#include "base/status.h"
#include "target/line.h"
#include "target/program/target.h"

#include <memory>
#include <string>

namespace offpath::target {

enum class Purpose : std::uint8_t { probe, serve };

struct Connection {
    DeviceFacts facts;
    std::unique_ptr<Line> line;  // null after a probe
    bool reads_program = false;  // the target host reads and writes this process's memory itself
    ImageNonce image_nonce{};    // for proofs that this process has an image
};

// Errors: unavailable, access, version or protocol, with `problem`, which names the device. invalid: a
// setting is malformed.
Status connect_target(Purpose purpose, const Place& place, Connection& connection, std::string& problem);

}  // namespace offpath::target
