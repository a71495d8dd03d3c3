#include "client/caught.h"

#include "base/log.h"

#include <new>

namespace offpath::client {

offpath_status_t caught(const char* call) noexcept {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return OFFPATH_ERR_MEMORY;
    } catch (const std::exception& error) {
        try {
            log::error(Code::resources, "{}: {}", call, error.what());
        } catch (...) {
            return OFFPATH_ERR_SYSTEM;  // not even the log line could be made
        }
        return OFFPATH_ERR_SYSTEM;
    } catch (...) {
        return OFFPATH_ERR_SYSTEM;
    }
}

}  // namespace offpath::client
