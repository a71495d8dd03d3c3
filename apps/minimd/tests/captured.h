// A file in memory that C's output functions can write to.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace minimd {

class Captured {
  public:
    Captured() : file_(open_memstream(&text_, &bytes_)) {}
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    ~Captured() {
        std::fclose(file_);
        std::free(text_);
    }
    std::FILE* file() const { return file_; }
    std::string text() const {
        std::fflush(file_);
        return {text_, bytes_};
    }

  private:
    char* text_ = nullptr;
    std::size_t bytes_ = 0;
    std::FILE* file_;
};

}  // namespace minimd
