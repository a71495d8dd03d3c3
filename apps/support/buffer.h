// A communication buffer from malloc or from MPI_Alloc_mem, every page touched before use.
//
// Owns its memory; movable, not copyable. MPI_Alloc_mem buffers must be freed before MPI_Finalize.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>

namespace offpath::command_line {
class App;
class Option;
}  // namespace offpath::command_line

namespace mpi_support {

enum class Allocator { kMalloc, kMpi };

class Buffer {
  public:
    Buffer() = default;
    Buffer(std::size_t bytes, Allocator allocator) : bytes_(bytes), allocator_(allocator) {
        const std::size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;  // never zero
        if (allocator == Allocator::kMalloc) {
            data_ = std::aligned_alloc(kAlignment, rounded);
        } else {
            MPI_Alloc_mem(static_cast<MPI_Aint>(rounded), MPI_INFO_NULL, &data_);
        }
        if (data_ == nullptr) throw std::bad_alloc();
        std::memset(data_, 0, rounded);
    }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() {
        if (data_ == nullptr) return;
        if (allocator_ == Allocator::kMalloc) {
            std::free(data_);
        } else {
            MPI_Free_mem(data_);
        }
    }

    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(allocator_, other.allocator_);
    }
    std::size_t bytes() const { return bytes_; }
    template <typename T = unsigned char>
    T* as() const {
        return static_cast<T*>(data_);
    }

  private:
    static constexpr std::size_t kAlignment = 64;

    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    Allocator allocator_ = Allocator::kMalloc;
};

// Adds `--alloc malloc|mpi` to a command.
offpath::command_line::Option* add_allocator_option(offpath::command_line::App& app, Allocator& allocator);

}  // namespace mpi_support
