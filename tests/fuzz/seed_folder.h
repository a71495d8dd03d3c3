// SeedFolder: where a program writes a fuzzer's first inputs. Threads: one.
#pragma once

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>

namespace offpath::fuzz {

class SeedFolder {
  public:
    // The program's only argument is a folder that exists.
    SeedFolder(int argc, char** argv) : folder_(argc == 2 ? argv[1] : "") {
        if (folder_.empty()) std::fprintf(stderr, "usage: %s FOLDER (which exists)\n", argv[0]);
    }
    void write(const std::string& name, std::span<const std::byte> bytes) {
        if (!good()) return;
        std::ofstream file(folder_ + "/" + name, std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        failed_ = !file.flush();
        if (failed_) std::fprintf(stderr, "%s/%s cannot be written\n", folder_.c_str(), name.c_str());
    }
    bool good() const { return !folder_.empty() && !failed_; }
    int exit_code() const { return folder_.empty() ? 2 : failed_ ? 1 : 0; }

  private:
    const std::string folder_;
    bool failed_ = false;
};

}  // namespace offpath::fuzz
