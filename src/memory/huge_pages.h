// HugePages: has the kernel put buffers that another process copies again and again into huge pages. The
// kernel looks up each page of such a copy, so with huge pages a copy takes little more than half the time.
// The kernel moves the data, which takes about 0.4 ms a MiB. So the owner of the buffers has it done while it
// waits: it asks for the next page, makes it, and reports what has become of it.
//
// Programs see no difference, and nothing happens to memory or systems for which huge pages were switched off
// (madvise(2), MADV_COLLAPSE; PR_SET_THP_DISABLE in prctl(2); admin-guide/mm/transhuge in the kernel's
// documentation). Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace offpath::memory {

class HugePages {
  public:
    // `page` is the size of a huge page; 0: there are none.
    explicit HugePages(std::size_t page = system_page()) : page_(page) {}
    // The size of this system's huge pages; 0: it has none, or its operator does not want them.
    static std::size_t system_page();

    // An operation uses the buffer from now on. Returns whether next() may have a page of it.
    bool used(std::uintptr_t begin, std::uintptr_t end) {
        if (page_ == 0 || end - begin < page_) return false;
        count(begin, end);
        return true;
    }
    // The next page of a buffer that was used more than once; 0: there is none to make.
    std::uintptr_t next(std::uintptr_t begin, std::uintptr_t end) {
        return page_ != 0 && end - begin >= page_ ? find(begin, end) : 0;
    }
    // Makes it. This takes long, and may be done by several threads at a time. Returns an errno code.
    int make(std::uintptr_t address) const;
    // What has become of it.
    void made(std::uintptr_t begin, std::uintptr_t end, int error);

  private:
    struct Buffer {
        std::uintptr_t begin = 0, end = 0;
        std::uintptr_t next = 0;  // the first page that may still have to be made
        std::uint32_t uses = 0;
    };
    Buffer& at(std::uintptr_t begin) { return buffers_[(begin / page_ + begin / 64) % buffers_.size()]; }
    void count(std::uintptr_t begin, std::uintptr_t end);
    std::uintptr_t find(std::uintptr_t begin, std::uintptr_t end);

    std::size_t page_;
    std::array<Buffer, 64> buffers_{};
};

}  // namespace offpath::memory
