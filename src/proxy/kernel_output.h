// KernelOutput: reads what the kernels of one process print, without blocking, and passes it on in whole
// lines. While the client does not take texts it reads nothing, and the kernels wait in their writes.
//
// Ownership: KernelJobs; it borrows the texts. Threads: the proxy's.
#pragma once

#include "base/file_descriptor.h"
#include "proxy/kernel_texts.h"

#include <array>
#include <string>

namespace offpath::proxy {

class KernelOutput {
  public:
    // `epoll`: where the pipes are watched. The code that sees an event of one that this owns calls event().
    KernelOutput(int epoll, KernelTexts& texts) : epoll_(epoll), texts_(texts) {}

    // The pipes of a new process.
    void open(std::array<FileDescriptor, 2> pipes);
    bool owns(int fd) const;
    void event() { readable_ = true; }
    // Whether progress() has work.
    bool has_work() const { return texts_.room() && (readable_ || paused_); }
    // Returns whether it has read something.
    bool progress();
    // The process has ended: passes on the rest and closes the pipes.
    void finish();

    // Remembers how much the pipes hold now; owes() until it has been passed on.
    void owe();
    bool owes() const;
    // Passes on lines that have no end yet.
    void pass_rest();

  private:
    struct Pipe {
        control::KernelTextKind kind = control::KernelTextKind::output;
        FileDescriptor end;
        std::string line;  // the line that has no end yet
        std::size_t owed = 0;
    };
    // Reads once. False: nothing is there.
    bool read(Pipe& pipe);
    void watch(bool on);

    const int epoll_;
    KernelTexts& texts_;
    std::array<Pipe, 2> pipes_;
    bool readable_ = false;
    bool paused_ = false;  // the pipes are not watched, because there was no room
};

}  // namespace offpath::proxy
