#include "minimd/offpath/device_memory.h"

#include <algorithm>

namespace minimd {

DeviceMemory::~DeviceMemory() {
    if (data_ != nullptr) heap_.release(data_);
}

bool DeviceMemory::reserve(std::size_t bytes) {
    if (data_ != nullptr && bytes <= bytes_) return true;
    if (data_ != nullptr) heap_.release(data_);
    data_ = nullptr;
    bytes_ = std::max<std::size_t>(bytes + bytes / 4, 4096);
    status_ = heap_.allocate(bytes_, &data_);
    return status_ == OFFPATH_OK;
}

}  // namespace minimd
