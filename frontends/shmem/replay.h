// Starts an unfinished operation once more, and waits for it. Threads: one.
#pragma once

#include "journal.h"

#include <offpath/request.h>

namespace offpath::shmem {

// Waits for the request that `call` starts.
template <typename Call>
offpath_status_t waited_for(Call&& call) {
    offpath_request_h request = nullptr;
    offpath_status_t status = call(&request);
    if (status != OFFPATH_OK) return status;
    status = offpath_request_wait(request);
    (void)offpath_request_free(request);
    return status;
}

offpath_status_t start_again(const Unfinished& one);

}  // namespace offpath::shmem
