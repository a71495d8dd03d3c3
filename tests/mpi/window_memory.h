// Memory for windows: the program's own, or, with WINDOW_MEMORY=mapped in the environment, memory of
// MPI_Alloc_mem, which devices map.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

template <typename T>
struct WindowAllocator {
    using value_type = T;
    WindowAllocator() = default;
    template <typename Other>
    explicit WindowAllocator(const WindowAllocator<Other>&) {}
    static bool mapped() {
        static const bool wanted = [] {
            const char* const text = std::getenv("WINDOW_MEMORY");
            return text != nullptr && std::strcmp(text, "mapped") == 0;
        }();
        return wanted;
    }
    T* allocate(std::size_t count) {
        if (!mapped()) return static_cast<T*>(::operator new(count * sizeof(T)));
        void* address = nullptr;
        if (MPI_Alloc_mem(static_cast<MPI_Aint>(count * sizeof(T)), MPI_INFO_NULL,
                          static_cast<void*>(&address)) != MPI_SUCCESS)
            throw std::bad_alloc();
        return static_cast<T*>(address);
    }
    void deallocate(T* address, std::size_t) {
        if (mapped()) {
            MPI_Free_mem(address);
        } else {
            ::operator delete(address);
        }
    }
    bool operator==(const WindowAllocator&) const { return true; }
};

template <typename T>
using WindowMemory = std::vector<T, WindowAllocator<T>>;
