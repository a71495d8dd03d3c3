// Attachment: the connection of this process to the device of its node. It has the line to the daemon, the
// channel, and the server of staged memory: an agent (local) or the link (remote). offpath_init makes it
// once. Threads: as DeviceLine and ClientChannel say.
#pragma once

#include "client/device_line.h"
#include "client/exported_regions.h"
#include "control/authentication.h"
#include "control/channel.h"
#include "link/host_link.h"
#include "memory/staging_agent.h"

#include <memory>
#include <string>

#include <sys/types.h>

namespace offpath::client {

struct AttachOptions {
    std::string directory;
    std::string devices;       // where the devices listen (devices.h); empty: local attach
    std::string host_devices;  // network devices of our end of the link
    std::string key_file;      // empty: there is none
    bool encrypt = false;      // remote attach only
    control::Secret secret{};  // of the job; for remote attach
    std::uint64_t issued = 0;  // when it was made
    control::Secret fabric{};  // by which the job's proxies authenticate to each other; for local attach
    control::BackEndRequest back_end = control::BackEndRequest::automatic;
    std::uint64_t job_high = 0, job_low = 0;
    std::uint32_t rank = 0, size = 1, local_rank = 0;
    bool autostart = false;
    std::uint64_t daemon_wait_s = 0;  // how long to wait for a daemon where none answers, without autostart
    bool again = false;  // the process was attached before, and its device's successor may be about to come
    // Reads OFFPATH_DIR, OFFPATH_DEVICES, OFFPATH_HOST_DEVICES, OFFPATH_KEY_FILE, OFFPATH_BACK_END,
    // OFFPATH_ENCRYPT, OFFPATH_AUTOSTART, OFFPATH_DAEMON_WAIT_S. Throws std::invalid_argument.
    static AttachOptions from_environment(const char* directory);
    bool remote() const { return !devices.empty(); }
    control::Hello hello() const;
};

struct Attachment {
    std::string device;  // its socket, or where it listens; for people
    pid_t daemon = 0;    // of local attach, as seen from here; 0: it is not visible
    std::unique_ptr<DeviceLine> line;
    control::Welcome welcome;
    // Whether our memory can be a region: mapped (local), or exported to a device that can import it.
    bool takes_regions() const { return link == nullptr || exports != nullptr; }
    std::unique_ptr<link::HostLink> link;
    std::unique_ptr<control::ClientChannel> channel;  // ends before the link
    std::unique_ptr<ExportedRegions> exports;         // null: xgvmi is not available
    std::unique_ptr<memory::StagingAgent> agent;
};

// Connects; with OFFPATH_AUTOSTART it starts a daemon first, or, for `again`, if none has come for a second.
// A daemon that dies while it greets this process counts as one that is not there yet.
// Errors: unavailable, version, invalid, system, or the daemon's refusal; `problem` is for people.
Status attach(const AttachOptions& options, Attachment& attachment, std::string& problem);
// The same for options.remote(); gives up within 10 s. access: one side does not know the job's secret.
Status attach_remote(const AttachOptions& options, Attachment& attachment, std::string& problem);

// Whether a rank of this node can start offpathd there: the same on all of them, so none waits in vain for
// the one that starts it. Makes the directory.
Status may_start_daemon(const std::string& directory, std::string& problem);

// Starts offpathd (OFFPATH_DAEMON) for this node. Returns when it is ready or has failed. The daemon exits
// once it has been idle for some time.
Status start_daemon(const std::string& directory, std::string& problem);

}  // namespace offpath::client
