// What a lost device may still do.
#include "client/context.h"

#include <offpath/loss.h>

#include "base/environment.h"
#include "base/patience.h"
#include "base/proc_threads.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace offpath;

namespace {

constexpr int dying_ms = 1000;
// A process that was killed ends when it gets a core, which may take seconds on a busy machine.
constexpr int killed_ms = 8000;
// A whole job may have been stopped and continue, one process after the other.
constexpr std::chrono::milliseconds between_looks{100};

// By a signal, not by a debugger.
bool is_stopped(pid_t process) {
    return process > 0 && thread_letter(process, process) == 'T';
}

// A remote device reaches this process by the link alone. Others have given it up, so silence over the line
// means that it is lost.
offpath_status_t give_up_link(const client::Attachment& attachment) {
    const std::uint64_t patience_ns = std::max(lost_after_ns(), control::keep_alive_ns * 3 / 2);
    const bool closed = attachment.line->closed();
    if (attachment.exports != nullptr || (!closed && attachment.line->silent_ns() < patience_ns))
        return OFFPATH_ERR_UNSUPPORTED;
    attachment.link->give_up(closed ? attachment.line->why().c_str() : "it does not answer");
    pollfd ended{attachment.link->end_event(), POLLIN, 0};
    return poll(&ended, 1, static_cast<int>(between_looks.count())) == 1 ? OFFPATH_OK
                                                                         : OFFPATH_ERR_UNSUPPORTED;
}

}  // namespace

extern "C" offpath_device_state_t offpath_context_device_state(offpath_context_h context) {
    if (context == nullptr) return OFFPATH_DEVICE_SILENT;
    if (!context->lost()) return OFFPATH_DEVICE_SERVES;
    const auto& attachment = context->attachment;
    bool ended = false;
    if (attachment.link == nullptr) {
        ended = attachment.line->process_ended(attachment.line->closed() ? dying_ms : 0);
    } else {
        // Unless the device writes memory by itself, only this process has written, and it has given up its
        // end of the link.
        ended = attachment.exports == nullptr;
    }
    return ended ? OFFPATH_DEVICE_ENDED : OFFPATH_DEVICE_SILENT;
}

int offpath_context_device_end(offpath_context_h context) {
    if (context == nullptr) return -1;
    const auto& attachment = context->attachment;
    if (attachment.link == nullptr) return attachment.line->process().release();
    return attachment.exports != nullptr ? -1 : fcntl(attachment.link->end_event(), F_DUPFD_CLOEXEC, 0);
}

offpath_status_t offpath_context_end_stopped_device(offpath_context_h context) {
    static const bool allowed = environment::flag("OFFPATH_END_STOPPED", true);
    if (context == nullptr) return OFFPATH_ERR_UNSUPPORTED;
    const auto& attachment = context->attachment;
    if (attachment.link != nullptr) return give_up_link(attachment);
    if (!allowed) return OFFPATH_ERR_UNSUPPORTED;
    // Another rank of the node, or thread of this one, may be ending it at the same time. Then it is no
    // longer stopped, nor over.
    const auto ended = [&](int timeout_ms) {
        const bool over = attachment.line->process_ended(timeout_ms) ||
                          (is_dying(attachment.daemon) && attachment.line->process_ended(killed_ms));
        return over ? OFFPATH_OK : OFFPATH_ERR_UNSUPPORTED;
    };
    const FileDescriptor process = attachment.line->process();
    if (!process || !is_stopped(attachment.daemon)) return ended(static_cast<int>(between_looks.count()));
    std::this_thread::sleep_for(between_looks);
    if (!is_stopped(attachment.daemon)) return ended(dying_ms);
    if (syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) != 0)
        return OFFPATH_ERR_UNSUPPORTED;
    log::warn(
        Code::device_lost,
        "rank {} has ended the stopped daemon at {}, pid {}: it could have continued and written memory",
        context->rank, attachment.device, attachment.daemon);
    return ended(dying_ms);
}
