// Whether this system has an RDMA device.
#pragma once

#include <filesystem>

namespace offpath::test {

inline bool has_rdma_device() {
    std::error_code none;
    const std::filesystem::directory_iterator first("/sys/class/infiniband", none);
    return !none && first != std::filesystem::directory_iterator();
}

}  // namespace offpath::test
