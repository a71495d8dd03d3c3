// The core, which implements all calls of the OpenSHMEM library. The functions of shmem.h check nothing
// themselves and call these.
//
// PEs are numbers of the context's team; in the default context, of the world. Addresses are this process's
// own, in the heap or in the data of the executable. Both are always checked. A PE or address out of range
// ends the job with a message that names the call (fail() finds it on the stack), the PE, the value and the
// limit. So does a call before init or after finalize. OFFPATH_SHMEM_CHECK=1 checks more (place.h).
//
// Paths: memory of a PE of this node is mapped here, and loads and stores access it. Large non-blocking
// transfers within the node, and all transfers between nodes, go to the devices. Operations of the devices
// are counted, and quiet() waits for the count.
//
// Threads: with SHMEM_THREAD_MULTIPLE, any thread may call anything at any time. With a lower level, the
// standard's rules for it apply.
#pragma once

#include "base/codes.h"
#include "pending.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace offpath::shmem {

// What shmem_ctx_t points to. PE numbers are those of its team.
struct Context {
    // World PE of each PE of the team; null: the team is the world.
    const int* world_pes = nullptr;
    int pes = 0;  // 0 before init, after finalize and once destroyed: then every PE is out of range
    // It belongs to the library, and its calls may also access the library's part of the heap.
    bool own = false;
    long options = 0;
    void* team = nullptr;  // for the code that owns the team
    // Operations without a request that this context gave to the device, and how many of them a quiet() has
    // waited for.
    std::atomic<std::uint64_t> started{0}, finished{0};
    // The value of `started` after the last operation within the node. A fence() waits for these.
    std::atomic<std::uint64_t> last_near{0};
    // Operations with a request, within the node and beyond. A fence() waits for the former.
    Pending near, far;

    int world(int pe) const { return world_pes == nullptr ? pe : world_pes[pe]; }
};

// SHMEM_CTX_INVALID is null, SHMEM_CTX_DEFAULT is 1.
extern Context world_context;
inline Context& default_context() {
    return world_context;
}
[[noreturn]] void fail_no_context();
[[noreturn]] void fail_life();  // the library is not running
inline Context& context_of(void* handle) {
    if (handle == nullptr) [[unlikely]]
        fail_no_context();
    return reinterpret_cast<std::uintptr_t>(handle) == 1 ? world_context : *static_cast<Context*>(handle);
}
// `pes`: world PEs of the team; empty for the world. `own`: see Context. Null: out of memory.
Context* create_context(long options, std::vector<int> pes, void* team, bool own = false);
// The default context, and all that were ever made.
std::vector<Context*> all_contexts();
// Waits for its operations. Ends the job if it was already destroyed. Its memory stays until another context
// reuses it, so a call with a stale handle finds no PE.
void destroy_context(Context* context);

int my_pe();
int n_pes();
bool running();
bool multithreaded();

// Blocking: the caller may reuse `source` on return. `nbi`: only after quiet().
void put(Context& context, void* dest, const void* source, std::size_t bytes, int pe, bool nbi);
// Blocking: `dest` has the data on return. `nbi`: only after quiet().
void get(Context& context, void* dest, const void* source, std::size_t bytes, int pe, bool nbi);
// `count` elements of `element` bytes; strides in elements, >= 1. Blocking.
void put_strided(Context& context, void* dest, const void* source, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride, std::size_t element, std::size_t count, int pe);
void get_strided(Context& context, void* dest, const void* source, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride, std::size_t element, std::size_t count, int pe);

// How put_signal changes the signal: the values of SHMEM_SIGNAL_SET and SHMEM_SIGNAL_ADD.
inline constexpr int signal_set = 0, signal_add = 1;
// The signal changes, atomically, after the data have arrived.
void put_signal(Context& context, void* dest, const void* source, std::size_t bytes, std::uint64_t* signal,
                std::uint64_t value, int op, int pe, bool nbi);

// Operate on one naturally aligned element of 4 or 8 bytes; inc is add of 1. `operand` and `compare` are bit
// patterns in the low bytes. `result` receives the former value of the element, `element` bytes; it is null
// for calls that do not fetch. `nbi`: the result is there after quiet(). Otherwise a fetching call returns
// with the result. Other calls return at once, and quiet() waits for them.
void amo(Context& context, Amo kind, std::size_t element, void* dest, std::uint64_t operand,
         std::uint64_t compare, void* result, int pe, bool nbi);

// On each PE, operations that were started before are done before operations that are started later.
void fence(Context& context);
// All operations that were started before are done and visible to all PEs.
void quiet(Context& context);

// Ends the job if this process's device or another PE is lost. For calls that wait long: it asks the device
// and waits for the answer.
void check_job();

// Goes on with another device if one is lost, as check_job() does. It costs a few loads, for calls that wait.
void look_for_loss();

// The address at which this process can load and store `dest` of the world's PE `pe`; null: there is none.
void* pointer(const void* dest, int pe);
// Whether [address, address + bytes) is symmetric memory of the program in this process. Never fails.
bool is_symmetric(const void* address, std::size_t bytes);
// Ends the job if that memory is not symmetric.
void check_variables(const void* address, std::size_t bytes);

// Allocates zeroed symmetric memory for the library itself, aligned to 64 bytes. The offset is the same on
// every PE if all PEs ask for the same sizes in the same order, so do not use it for what only some PEs do.
// The memory is never freed. Ends the job if none is left (internal_bytes in all). Usable from start() on.
void* internal_alloc(std::size_t bytes);
inline constexpr std::size_t internal_bytes = std::size_t{32} << 20;

// Writes "offpath: PE 3: <the call of shmem.h on the stack>: <text>" and ends the job with a non-zero code.
[[noreturn]] void fail(const std::string& text);  // with Code::shmem_call
[[noreturn]] void fail(const std::string& text, Code code);
// The same for the loss of a PE or a device, which many PEs detect: the first one writes the line and tells
// the others, which then end without one.
[[noreturn]] void fail_lost(const std::string& text);
// Writes the same line as fail() but does not end the job. For calls that return an error.
void complain(const std::string& text, Code code = Code::shmem_call);
// Reports an error that every PE detects in the same call: only PE 0 writes the line.
void complain_for_all(const std::string& text, Code code = Code::shmem_call);

}  // namespace offpath::shmem
