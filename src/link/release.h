// The wait for a transport that still holds memory after a forced end of its endpoints.
#pragma once

#include "transport/transport.h"

#include <chrono>

namespace offpath::link {

// Progresses the transport until `held` returns false. The transport needs a few rounds for it; this gives up
// after 200 ms.
template <typename Held>
void progress_until_released(transport::Transport& transport, Held&& held) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (held() && std::chrono::steady_clock::now() < deadline)
        (void)transport.progress();
}

}  // namespace offpath::link
