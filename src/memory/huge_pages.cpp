#include "memory/huge_pages.h"

#include "base/log.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <sys/mman.h>

namespace offpath::memory {
namespace {

#ifdef MADV_COLLAPSE
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25;  // since Linux 6.1; the C library may be older
#endif
// A buffer may be given back, and its addresses mapped anew.
constexpr std::uint32_t uses_until_next_look = 256;
const char* const settings = "/sys/kernel/mm/transparent_hugepage/";

}  // namespace

std::size_t HugePages::system_page() {
    std::string enabled;
    std::getline(std::ifstream(std::string(settings) + "enabled"), enabled);
    // The call itself does not respect this setting.
    if (enabled.empty() || enabled.find("[never]") != std::string::npos) return 0;
    std::size_t bytes = 0;
    std::ifstream(std::string(settings) + "hpage_pmd_size") >> bytes;
    return std::has_single_bit(bytes) ? bytes : 0;
}

void HugePages::count(std::uintptr_t begin, std::uintptr_t end) {
    Buffer& buffer = at(begin);
    if (buffer.begin != begin || buffer.end != end) buffer = {begin, end, 0, 0};
    const std::uintptr_t first = (begin + page_ - 1) & ~(page_ - 1);
    if (buffer.uses++ % uses_until_next_look == 0) buffer.next = first;
}

std::uintptr_t HugePages::find(std::uintptr_t begin, std::uintptr_t end) {
    const Buffer& buffer = at(begin);
    const bool known = buffer.begin == begin && buffer.end == end && buffer.uses > 1;
    return known && buffer.next < end && end - buffer.next >= page_ ? buffer.next : 0;
}

int HugePages::make(std::uintptr_t address) const {
    return madvise(reinterpret_cast<void*>(address), page_, collapse) == 0 ? 0 : errno;
}

void HugePages::made(std::uintptr_t begin, std::uintptr_t end, int error) {
    Buffer& buffer = at(begin);
    if (buffer.begin != begin || buffer.end != end) return;
    // EAGAIN: pages are in use at the moment. EBUSY, ENOMEM: there is no huge page. The next look may find
    // better conditions. Other codes: this memory has none.
    buffer.next = error == 0 || error == EAGAIN ? buffer.next + page_ : end;
    if (error != 0 && error != EAGAIN) log::debug("huge pages at {:#x}: {}", begin, std::strerror(error));
}

}  // namespace offpath::memory
