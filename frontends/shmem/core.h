// The core: what all calls of the OpenSHMEM library come down to. The functions of shmem.h check nothing
// themselves and call these.
//
// PEs are those of the context's team; of the default context, those of the world. Addresses are this
// process's own, in the heap or among the data of the executable. Both are always checked: what lies outside
// ends the job with a message that names the call (fail() finds it on the stack), the PE, the value and the
// limit; so does a call before init or after finalize. OFFPATH_SHMEM_CHECK=1 checks more (checks.h).
//
// Paths: memory of a PE of this node is mapped here and moved by load and store; large non-blocking transfers
// within the node, and all between nodes, go to the devices. What a device does is counted, and quiet() waits
// for the count.
//
// Threads: with SHMEM_THREAD_MULTIPLE any thread may call anything at any time. With less, only what is
// said.
#pragma once

#include "pending.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace offpath::shmem {

// What shmem_ctx_t points to. PEs of `pes` are numbers of its team.
struct Context {
    // World PE of each PE of the team; null: the team is the world.
    const int* world_pes = nullptr;
    int pes = 0;       // 0 before init, after finalize and once destroyed, so that every PE is out of range
    bool own = false;  // of the library: its calls reach the library's part of the heap too
    long options = 0;
    void* team = nullptr;  // for the team's owner
    // Operations without a request that were handed to the device, and those of them that a quiet() waited
    // for.
    std::atomic<std::uint64_t> started{0}, finished{0};
    // How many were started with the last one within the node, which a fence() has to wait for.
    std::atomic<std::uint64_t> last_near{0};
    // Operations with a request, within the node and beyond. A fence() has to wait for the former.
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
// `pes`: world PEs of the team, empty for the world. `own`: see Context. Null: no memory.
Context* create_context(long options, std::vector<int> pes, void* team, bool own = false);
// Waits for what it has started. Ends the job if it was destroyed before. Its memory stays, so that calls
// with a stale handle find no PE there, until another context takes it.
void destroy_context(Context* context);

int my_pe();
int n_pes();
bool running();
bool multithreaded();

// Blocking: `source` may be reused at return. `nbi`: not before quiet().
void put(Context& context, void* dest, const void* source, std::size_t bytes, int pe, bool nbi);
// Blocking: `dest` is there at return. `nbi`: not before quiet().
void get(Context& context, void* dest, const void* source, std::size_t bytes, int pe, bool nbi);
// `count` elements of `element` bytes; strides in elements, >= 1. Blocking.
void put_strided(Context& context, void* dest, const void* source, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride, std::size_t element, std::size_t count, int pe);
void get_strided(Context& context, void* dest, const void* source, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride, std::size_t element, std::size_t count, int pe);

// What put_signal does to the signal: the values of SHMEM_SIGNAL_SET and SHMEM_SIGNAL_ADD.
inline constexpr int signal_set = 0, signal_add = 1;
// The signal changes, atomically, after the data are there.
void put_signal(Context& context, void* dest, const void* source, std::size_t bytes, std::uint64_t* signal,
                std::uint64_t value, int op, int pe, bool nbi);

enum class Amo : std::uint8_t {
    set,
    fetch,
    swap,
    compare_swap,
    add,
    fetch_add,
    and_,
    fetch_and,
    or_,
    fetch_or,
    xor_,
    fetch_xor,
};
// On one naturally aligned element of 4 or 8 bytes; inc is add of 1. `operand` and `compare` are bit patterns
// in the low bytes; `result`: where the element's former value goes, of `element` bytes, null unless it
// fetches. `nbi`: the result is there after quiet(). Without it a fetching call returns with the result,
// others at once: quiet() tells that they are done.
void amo(Context& context, Amo kind, std::size_t element, void* dest, std::uint64_t operand,
         std::uint64_t compare, void* result, int pe, bool nbi);

// What was started before on a PE is done there before what is started later.
void fence(Context& context);
// All that was started before is done, and visible to all.
void quiet(Context& context);

// Ends the job if this process's device, or another PE, is gone. For calls that wait long: it asks the device
// and waits for the answer.
void check_job();

// Where this process reaches `dest` of the world's PE `pe` by load and store; null: nowhere.
void* pointer(const void* dest, int pe);
// Whether [address, address + bytes) is symmetric memory of this process's program. Never fails.
bool is_symmetric(const void* address, std::size_t bytes);
// Ends the job if it is not.
void check_variables(const void* address, std::size_t bytes);

// Zeroed symmetric memory of the library's own, aligned to 64 bytes: the same offset on every PE as long as
// all PEs ask for the same sizes in the same order (so not for what only some of the PEs do). Never given
// back. Ends the job where none is left (internal_bytes in all). From start() on.
void* internal_alloc(std::size_t bytes);
inline constexpr std::size_t internal_bytes = std::size_t{32} << 20;

// Says "offpath: PE 3: <the call of shmem.h on the stack>: <text>" and ends the job with a non-zero code.
[[noreturn]] void fail(const std::string& text);
// The same for the loss of a PE or a device, which many PEs notice: the first to speak tells the others,
// which then end without a line.
[[noreturn]] void fail_lost(const std::string& text);
// Says the same as fail() without the end, for what returns an error.
void complain(const std::string& text);
// For what every PE finds in the same call: only PE 0 speaks.
void complain_for_all(const std::string& text);

}  // namespace offpath::shmem
