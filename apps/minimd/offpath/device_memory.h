// Memory that a device can access fastest.
#pragma once

#include <offpath/types.h>

#include <cstddef>

namespace minimd {

// What such memory comes from. One caller at a time.
class DeviceHeap {
  public:
    virtual ~DeviceHeap() = default;
    // Allocates memory that is aligned to at least 128 bytes.
    virtual offpath_status_t allocate(std::size_t bytes, void** data) = 0;
    virtual void release(void* data) = 0;
};

// A piece of such memory. It grows and never shrinks.
class DeviceMemory {
  public:
    // `heap` must outlive this object.
    explicit DeviceMemory(DeviceHeap& heap) : heap_(heap) {}
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    // Makes room for `bytes` bytes. The contents may be lost, so no kernel may use the memory. Returns false
    // if the device is lost or there is no memory.
    bool reserve(std::size_t bytes);
    offpath_status_t status() const { return status_; }  // of the last reserve() that had to allocate
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }  // capacity

  private:
    DeviceHeap& heap_;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    offpath_status_t status_ = OFFPATH_OK;
};

}  // namespace minimd
