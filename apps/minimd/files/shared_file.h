// A file that all ranks read or write at their own offsets, through MPI-IO.
//
// An error on any rank is kept. finish() throws it on all ranks together, as UsageError. One thread.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

namespace minimd {

class SharedFile {
  public:
    // Opens the file. `mode` is that of MPI_File_open. Collective.
    SharedFile(MPI_Comm comm, const std::string& path, int mode);
    // Closes the file and drops any error. Collective.
    ~SharedFile();
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;

    // Transfer any number of bytes at offset `at`, for this rank alone. Local.
    void write(std::int64_t at, const void* data, std::int64_t bytes);
    void read(std::int64_t at, void* data, std::int64_t bytes);
    // Sets the size of the file. Collective.
    void resize(std::int64_t bytes);

    // Closes the file, and throws if any rank had an error. `doing` is "read" or "write", for the message.
    // Collective.
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
