// What a lost device may still do.
#include "client/context.h"

#include <offpath/loss.h>

using namespace offpath;

namespace {

constexpr int dying_ms = 1000;

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
