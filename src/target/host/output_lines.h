// OutputLines: takes over what the program's functions write to descriptors 1 and 2, and passes it on line by
// line. A thread of its own does so while functions run. flush() does so for everything that was written
// before it. Threads: any. Lifetime: one per process.
#pragma once

#include "base/file_descriptor.h"

#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace offpath::target {

class OutputLines {
  public:
    // Takes whole lines from descriptor 1 or 2, and at the end what has no line end.
    using Take = std::function<void(int descriptor, const std::string& text)>;

    // Descriptors 1 and 2 are pipes from now on.
    explicit OutputLines(Take take);
    ~OutputLines();
    OutputLines(const OutputLines&) = delete;
    OutputLines& operator=(const OutputLines&) = delete;

    // When it returns, everything that has been written is passed on, stdio's buffers included.
    void flush();

  private:
    struct Pipe {
        int descriptor = 0;
        FileDescriptor end;
        std::string line;  // the line that has no end yet
    };
    bool drain(Pipe& pipe);
    void watch();

    const Take take_;
    std::mutex mutex_;
    Pipe pipes_[2];
    FileDescriptor stop_;
    std::thread thread_;
};

}  // namespace offpath::target
