#include "base/file_size.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace offpath {

bool is_file_size_allowed(std::size_t bytes) {
    struct rlimit limit {};
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

bool set_file_bytes(int fd, std::size_t bytes) {
    if (!is_file_size_allowed(bytes)) {
        errno = EFBIG;
        return false;
    }
    return ftruncate(fd, static_cast<off_t>(bytes)) == 0;
}

}  // namespace offpath
