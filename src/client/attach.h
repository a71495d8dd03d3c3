// Attachment: the connection of this process to the daemon of its node: the socket, the channel, the agent
// for staged memory. Made once, by offpath_init. Threads: requests on the socket from one at a time; the rest
// as ClientChannel says.
#pragma once

#include "control/channel.h"
#include "control/socket.h"
#include "memory/staging_agent.h"

#include <memory>
#include <string>

namespace offpath::client {

struct AttachOptions {
    std::string directory;
    control::BackEndRequest back_end = control::BackEndRequest::automatic;
    std::uint64_t job_high = 0, job_low = 0;
    std::uint32_t rank = 0, size = 1, local_rank = 0;
    bool autostart = false;
    // Reads OFFPATH_DIR, OFFPATH_BACK_END, OFFPATH_AUTOSTART. Throws std::invalid_argument.
    static AttachOptions from_environment(const char* directory);
};

struct Attachment {
    control::FileDescriptor socket;
    control::Welcome welcome;
    std::unique_ptr<control::ClientChannel> channel;
    std::unique_ptr<memory::StagingAgent> agent;
};

// Connects, starting a daemon first where OFFPATH_AUTOSTART asks for it. Errors: unavailable, version,
// invalid, system, or what the daemon refused with; `problem` is for people.
Status attach(const AttachOptions& options, Attachment& attachment, std::string& problem);

// Starts offpathd (OFFPATH_DAEMON) for this node; it ends itself when it has been idle. Returns when it is
// ready or has failed.
Status start_daemon(const std::string& directory, std::string& problem);

}  // namespace offpath::client
