// What a lost device may still do.
#include "client/context.h"

#include <offpath/loss.h>

#include "base/environment.h"
#include "base/proc_threads.h"

#include <chrono>
#include <csignal>
#include <thread>

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

int offpath_context_device_process(offpath_context_h context) {
    if (context == nullptr || context->attachment.link != nullptr) return -1;
    return context->attachment.line->process().release();
}

offpath_status_t offpath_context_end_stopped_device(offpath_context_h context) {
    static const bool allowed = environment::flag("OFFPATH_END_STOPPED", true);
    if (context == nullptr || context->attachment.link != nullptr || !allowed) return OFFPATH_ERR_UNSUPPORTED;
    const auto& attachment = context->attachment;
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
