#include "minimd/files/shared_file.h"

#include <algorithm>
#include <filesystem>

#include "minimd/files/shared_text.h"

namespace minimd {

namespace {

constexpr std::int64_t piece_bytes = 1 << 28;

}  // namespace

SharedFile::SharedFile(MPI_Comm comm, const std::string& path, int mode) : comm_(comm), path_(path) {
    // Open MPI 4.1 does not open some relative names, for example "r", for reading.
    const std::string absolute = std::filesystem::absolute(path).string();
    note(MPI_File_open(comm, absolute.c_str(), mode, MPI_INFO_NULL, &file_));
}

SharedFile::~SharedFile() {
    close();
}

void SharedFile::note(int code) {
    if (code == MPI_SUCCESS || !error_.empty()) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    error_.assign(text, static_cast<std::size_t>(length));
}

template <typename Transfer>
void SharedFile::in_pieces(std::int64_t at, std::int64_t bytes, const Transfer& transfer) {
    for (std::int64_t done = 0; done < bytes && error_.empty();) {
        const auto piece = static_cast<int>(std::min(piece_bytes, bytes - done));
        MPI_Status status;
        note(transfer(at + done, done, piece, &status));
        int moved = 0;
        if (error_.empty()) MPI_Get_count(&status, MPI_BYTE, &moved);
        if (error_.empty() && moved != piece) error_ = "only a part of the data could be moved";
        done += piece;
    }
}

void SharedFile::write(std::int64_t at, const void* data, std::int64_t bytes) {
    const auto* from = static_cast<const char*>(data);
    in_pieces(at, bytes, [&](std::int64_t place, std::int64_t done, int piece, MPI_Status* status) {
        return MPI_File_write_at(file_, place, from + done, piece, MPI_BYTE, status);
    });
}

void SharedFile::read(std::int64_t at, void* data, std::int64_t bytes) {
    auto* to = static_cast<char*>(data);
    in_pieces(at, bytes, [&](std::int64_t place, std::int64_t done, int piece, MPI_Status* status) {
        return MPI_File_read_at(file_, place, to + done, piece, MPI_BYTE, status);
    });
}

void SharedFile::resize(std::int64_t bytes) {
    if (file_ != MPI_FILE_NULL) note(MPI_File_set_size(file_, bytes));
}

void SharedFile::close() {
    if (file_ != MPI_FILE_NULL) note(MPI_File_close(&file_));
    file_ = MPI_FILE_NULL;
}

void SharedFile::finish(const std::string& doing) {
    close();
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &ranks);
    int first = error_.empty() ? ranks : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm_);
    if (first == ranks) return;
    // Rank 0 reports the error of the lowest rank that has one.
    std::string said = error_;
    if (first != 0) {
        constexpr int tag = 1;
        char text[MPI_MAX_ERROR_STRING] = "";
        if (rank == first) {
            error_.copy(text, sizeof text - 1);
            MPI_Send(text, sizeof text, MPI_CHAR, 0, tag, comm_);
        } else if (rank == 0) {
            MPI_Recv(text, sizeof text, MPI_CHAR, first, tag, comm_, MPI_STATUS_IGNORE);
            said = text;
        }
    }
    throw_shared("cannot " + doing + " '" + path_ + "': " + said, comm_);
}

}  // namespace minimd
