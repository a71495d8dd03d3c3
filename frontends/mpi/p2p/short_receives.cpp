#include "short_receives.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "communicators/communicators.h"
#include "gpu/memory.h"
#include "parcel.h"
#include "requests/status_errors.h"
#include "runtime/request_hash.h"
#include "settings.h"

namespace offpath::mpi::p2p {
namespace {

constexpr std::size_t short_records_at_once = 64;

std::vector<std::unique_ptr<ShortReceive[]>> all_short_records;
ShortReceive* free_short_records = nullptr;

// By handle. A power of two of buckets, at least as many as there are receives.
std::vector<ShortReceive*> short_table;
int short_table_shift = 0;

ShortReceive*& short_bucket_of(MPI_Request request) {
    return short_table[hash_of(request) >> short_table_shift];
}

void insert_short(ShortReceive& receive) {
    ShortReceive*& bucket = short_bucket_of(receive.handle);
    receive.next = bucket;
    bucket = &receive;
}

[[gnu::noinline]] void grow_short_table() {
    std::vector<ShortReceive*> old(std::max<std::size_t>(256, short_table.size() * 2));
    old.swap(short_table);
    short_table_shift = 64 - std::countr_zero(short_table.size());
    for (ShortReceive* receive : old) {
        while (receive != nullptr) {
            ShortReceive* const next = receive->next;
            insert_short(*receive);
            receive = next;
        }
    }
}

[[gnu::noinline]] void make_short_records() {
    all_short_records.push_back(std::make_unique<ShortReceive[]>(short_records_at_once));
    for (std::size_t i = 0; i < short_records_at_once; ++i) {
        ShortReceive& record = all_short_records.back()[i];
        record.next = free_short_records;
        free_short_records = &record;
    }
}

void free_short_record(ShortReceive& receive) {
    receive.next = free_short_records;
    free_short_records = &receive;
}

// The receives of a communicator hold its team together.
void hold_team_of_short(ShortReceive& receive) {
    if (receive.pairs->short_receives++ == 0) retain(*receive.team);
}
void let_team_of_short_go(const ShortReceive& receive) {
    Team& team = *receive.team;
    if (--receive.pairs->short_receives == 0) release(team);
}

// The parcel's view of the elements.
TypeUse use_of_short(const ShortReceive& receive) {
    if (receive.layout != nullptr)
        return {true, receive.layout->bytes, receive.layout->extent, receive.layout};
    TypeUse bytes{true, 1, 1, nullptr};
    if (receive.capacity > 0 && gpu::is_device_memory(receive.buffer)) {
        gpu::count_staged();
        bytes.layout = &layout_in_gpu(1);
    }
    return bytes;
}

// The host's MPI has completed the request with this status and error.
int end_as_parcel(ShortReceive& receive, const MPI_Status& status, int error, MPI_Status* told) {
    Parcel& parcel = become_parcel(receive, MPI_REQUEST_NULL);
    MPI_Status its = status;
    its.MPI_ERROR = error;
    host_is_done(parcel, its);
    return wait_for(parcel, told);
}

// Room for `count` objects, which are not initialised: in the caller's frame if they are few.
template <typename T>
class Room {
  public:
    explicit Room(std::size_t count) {
        if (count <= few_.size()) return;
        many_ = std::make_unique_for_overwrite<T[]>(count);
        data_ = many_.get();
    }
    T& operator[](int i) { return data_[i]; }
    T* data() { return data_; }

  private:
    std::array<T, 128> few_;
    std::unique_ptr<T[]> many_;
    T* data_ = few_.data();
};

// Takes all short receives behind the requests. False: there are parcels among the requests, and nothing was
// taken.
bool take_all_short(int count, const MPI_Request* requests, ShortReceive** taken) {
    const bool any_parcels = outstanding.parcels > 1 || short_receive_count == 0;
    for (int i = 0; i < count; ++i) {
        taken[i] = requests[i] != MPI_REQUEST_NULL ? take_short(requests[i]) : nullptr;
        if (taken[i] != nullptr || !any_parcels || find_parcel(requests[i]) == nullptr) continue;
        while (--i >= 0) {
            if (taken[i] != nullptr) put_back(*taken[i]);
        }
        return false;
    }
    return true;
}

// Ends the receives after a wait of the host's MPI that returned `result`.
int end_all_short(int count, const MPI_Request* requests, ShortReceive** taken, MPI_Status* statuses,
                  int result, MPI_Status* told) {
    const bool in_status = is_in_status(result);
    const bool any_gpu = gpu::any_driver();
    std::vector<int> errors;
    for (int i = 0; i < count; ++i) {
        int error = in_status ? statuses[i].MPI_ERROR : MPI_SUCCESS;
        if (ShortReceive* receive = taken[i]) {
            if (requests[i] != MPI_REQUEST_NULL) {
                put_back(*receive);  // an error of another request has ended the wait
            } else if (error != MPI_SUCCESS || !end_if_plain(*receive, statuses[i], any_gpu)) {
                error = end_as_parcel(*receive, statuses[i], error, &statuses[i]);
            }
        }
        if (error == MPI_SUCCESS) continue;
        errors.resize(static_cast<std::size_t>(count), MPI_SUCCESS);
        errors[static_cast<std::size_t>(i)] = error;
    }
    if (result != MPI_SUCCESS && !in_status) return result;
    return errors.empty() ? MPI_SUCCESS : tell_errors(errors, told);
}

}  // namespace

bool is_short(const Arguments& a, std::size_t capacity, const Pairs& pairs) {
    return short_receives_are_used && capacity < job_settings.min_bytes && is_exact(a.peer, a.tag) &&
           pairs.wild.empty() && pairs.extracted.empty() && pairs.received.has_room();
}

int start_short(const Arguments& a, std::size_t capacity, Layout* layout, Team& team, Pairs& pairs,
                MPI_Request* request) {
    if (free_short_records == nullptr) make_short_records();
    ShortReceive& receive = *free_short_records;
    free_short_records = receive.next;
    receive.capacity = capacity;
    MPI_Request handle = MPI_REQUEST_NULL;
    const int error = receive.lands() ? PMPI_Irecv(receive.landing.data(), short_landing_bytes, MPI_PACKED,
                                                   a.peer, a.tag, a.comm, &handle)
                                      : PMPI_Irecv(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &handle);
    if (error != MPI_SUCCESS) {
        free_short_record(receive);
        return error;
    }
    pairs.received.next(a.peer, a.tag);
    receive.handle = handle;
    receive.buffer = a.buffer;
    receive.layout = layout;
    receive.team = &team;
    receive.pairs = &pairs;
    receive.peer = a.peer;
    receive.tag = a.tag;
    if (layout != nullptr) retain(*layout);
    hold_team_of_short(receive);
    put_back(receive);
    *request = handle;
    return MPI_SUCCESS;
}

ShortReceive* take_short(MPI_Request request) {
    if (short_receive_count == 0) return nullptr;
    ShortReceive** link = &short_bucket_of(request);
    while (*link != nullptr && (*link)->handle != request)
        link = &(*link)->next;
    ShortReceive* const found = *link;
    if (found == nullptr) return nullptr;
    *link = found->next;
    if (--short_receive_count == 0) outstanding.parcels.lower();
    return found;
}

void put_back(ShortReceive& receive) {
    if (short_receive_count >= short_table.size()) grow_short_table();
    insert_short(receive);
    if (short_receive_count++ == 0) outstanding.parcels.raise();
}

bool end_if_plain(ShortReceive& receive, const MPI_Status& status, bool any_gpu) {
    const std::size_t bytes = received_bytes(status);
    if (bytes == header_bytes || bytes > receive.capacity) return false;
    if (receive.lands() && bytes > 0) {
        if (receive.layout != nullptr || (any_gpu && gpu::is_device_memory(receive.buffer))) return false;
        std::memcpy(receive.buffer, receive.landing.data(), bytes);
    }
    if (receive.layout != nullptr) release(*receive.layout);
    let_team_of_short_go(receive);
    free_short_record(receive);
    return true;
}

Parcel& become_parcel(ShortReceive& receive, MPI_Request handle) {
    Parcel& parcel = acquire_parcel(*receive.team, *receive.pairs, true);
    parcel.handle = handle;
    parcel.buffer = receive.buffer;
    parcel.capacity = receive.capacity;
    parcel.use = use_of_short(receive);
    parcel.count = parcel.use.bytes > 0 ? parcel.capacity / parcel.use.bytes : 0;
    parcel.peer = receive.peer;
    parcel.tag = receive.tag;
    parcel.counted = true;
    parcel.direct = !receive.lands();
    let_team_of_short_go(receive);
    if (handle != MPI_REQUEST_NULL) register_parcel(parcel);
    if (parcel.direct) {
        free_short_record(receive);
        return parcel;
    }
    parcel.landing = receive.landing.data();
    parcel.landing_bytes = receive.landing.size();
    parcel.short_receive = &receive;
    return parcel;
}

void release_short(ShortReceive& receive) {
    free_short_record(receive);
}

bool wait_for_short(MPI_Request* request, MPI_Status* status, int* result) {
    if (short_receive_count == 0 || must_poll()) return false;
    ShortReceive* const receive = take_short(*request);
    if (receive == nullptr) return false;
    MPI_Status own;
    *result = PMPI_Wait(request, &own);
    if (*result == MPI_SUCCESS && end_if_plain(*receive, own, receive->lands() && gpu::any_driver())) {
        copy_status(own, status);
        return true;
    }
    *request = MPI_REQUEST_NULL;
    *result = end_as_parcel(*receive, own, *result, status);
    return true;
}

bool wait_for_all_short(int count, MPI_Request* requests, MPI_Status* statuses, int* result) {
    if (short_receive_count == 0 || must_poll() || count < 0) return false;
    Room<ShortReceive*> taken(static_cast<std::size_t>(count));
    if (!take_all_short(count, requests, taken.data())) return false;
    if (statuses != MPI_STATUSES_IGNORE) {
        *result = PMPI_Waitall(count, requests, statuses);
        *result = end_all_short(count, requests, taken.data(), statuses, *result, statuses);
        return true;
    }
    Room<MPI_Status> own(static_cast<std::size_t>(count));
    *result = PMPI_Waitall(count, requests, own.data());
    *result = end_all_short(count, requests, taken.data(), own.data(), *result, statuses);
    return true;
}

}  // namespace offpath::mpi::p2p
