// A file that all ranks read or write at their own places, by MPI-IO.
//
// Errors of any rank are kept and thrown by all of them together in finish(), as UsageError. One thread.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

namespace minimd {

class SharedFile {
  public:
    // `mode` of MPI_File_open. Collective.
    SharedFile(MPI_Comm comm, const std::string& path, int mode);
    // Closes without a word. Collective.
    ~SharedFile();
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;

    // Of this rank alone, any number of bytes.
    void write(std::int64_t at, const void* data, std::int64_t bytes);
    void read(std::int64_t at, void* data, std::int64_t bytes);
    // Collective.
    void resize(std::int64_t bytes);

    // Closes and throws if anything went wrong anywhere; `doing` is "read" or "write". Collective.
    void finish(const std::string& doing);

  private:
    template <typename Transfer>
    void in_pieces(std::int64_t at, std::int64_t bytes, const Transfer& transfer);
    void note(int code);
    void close();

    MPI_Comm comm_;
    std::string path_;
    MPI_File file_ = MPI_FILE_NULL;
    std::string error_;
};

}  // namespace minimd
