#include "profile/scope.h"

#include <cstdlib>
#include <memory>
#include <string>

namespace offpath::profile {
namespace {

std::unique_ptr<Recorder> the_recorder;
bool in_call = false;  // of the thread that records
std::string folder;

struct SizedType {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int bytes = 0;
} last_type;
std::vector<std::uint64_t> scratch;

void append_blocks(int ranks, const int* counts, MPI_Datatype type) {
    const std::uint64_t size = bytes_of(1, type);
    for (int i = 0; i < ranks; ++i)
        scratch.push_back(static_cast<std::uint64_t>(counts[i]) * size);
}

}  // namespace

constinit thread_local Recorder* recorder_of_thread = nullptr;

Scope::Scope() : recorder_(recorder_of_thread != nullptr && !in_call ? recorder_of_thread : nullptr) {
    if (recorder_ == nullptr) return;
    in_call = true;
    recorder_->enter();
}

Scope::~Scope() {
    if (recorder_ != nullptr) in_call = false;
}

void begin_profile() {
    const char* const named = std::getenv("OFFPATH_PROFILE");
    if (named == nullptr || *named == 0 || the_recorder != nullptr) return;
    folder = named;
    the_recorder = std::make_unique<Recorder>();
    the_recorder->begin();
    recorder_of_thread = the_recorder.get();
}

void end_profile() {
    if (recorder_of_thread == nullptr) return;
    recorder_of_thread = nullptr;
    the_recorder->write(folder.c_str());
}

void forget_datatypes() {
    last_type = {};
    if (recorder_of_thread != nullptr) recorder_of_thread->repeat_no_more();
}

std::uint64_t bytes_of(int count, MPI_Datatype type) {
    if (type == MPI_DATATYPE_NULL || count <= 0) return 0;
    if (type != last_type.type) {
        last_type.type = type;
        PMPI_Type_size(type, &last_type.bytes);
    }
    return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(last_type.bytes);
}

std::span<const std::uint64_t> blocks_of(MPI_Comm comm, const int* counts, MPI_Datatype type) {
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    scratch.clear();
    append_blocks(ranks, counts, type);
    return scratch;
}

std::span<const std::uint64_t> vectors_of(MPI_Comm comm, const int* sent, MPI_Datatype sent_type,
                                          const int* received, MPI_Datatype received_type) {
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    scratch.clear();
    append_blocks(ranks, sent, sent_type);
    append_blocks(ranks, received, received_type);
    return scratch;
}

std::span<const std::uint64_t> typed_vectors_of(MPI_Comm comm, const int* sent,
                                                const MPI_Datatype* sent_types, const int* received,
                                                const MPI_Datatype* received_types) {
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    scratch.clear();
    for (int i = 0; i < ranks; ++i)
        scratch.push_back(bytes_of(sent[i], sent_types[i]));
    for (int i = 0; i < ranks; ++i)
        scratch.push_back(bytes_of(received[i], received_types[i]));
    return scratch;
}

bool is_root(MPI_Comm comm, int root) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank == root;
}

CallKind kind_of(const char* name, const void* site) {
    CallKind kind;
    kind.name = name;
    kind.site = site;
    return kind;
}

CallKind collective_kind(Recorder& recorder, const char* name, const void* site, MPI_Comm comm) {
    CallKind kind = kind_of(name, site);
    kind.comm = recorder.communicator(comm);
    return kind;
}

}  // namespace offpath::profile
