// Memory that a device reaches best.
#pragma once

#include <offpath/types.h>

#include <cstddef>

namespace minimd {

// Who gives such memory. One caller at a time.
class DeviceHeap {
  public:
    virtual ~DeviceHeap() = default;
    // Aligned to 128 bytes at least.
    virtual offpath_status_t allocate(std::size_t bytes, void** data) = 0;
    virtual void release(void* data) = 0;
};

// One piece of it, which grows and never shrinks.
class DeviceMemory {
  public:
    // `heap` outlives this.
    explicit DeviceMemory(DeviceHeap& heap) : heap_(heap) {}
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    // Loses what is there. False: the device is lost, or there is no memory. Nothing may use it.
    bool reserve(std::size_t bytes);
    offpath_status_t status() const { return status_; }  // of the last that had to ask for more
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }  // that it can hold

  private:
    DeviceHeap& heap_;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    offpath_status_t status_ = OFFPATH_OK;
};

}  // namespace minimd
