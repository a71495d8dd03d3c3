#include "rescue.h"

#include <fmt/format.h>
#include <offpath/loss.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <list>
#include <memory>
#include <new>
#include <vector>

#include "base/clock.h"
#include "base/lost_device.h"
#include "base/patience.h"
#include "communicators/communicators.h"
#include "counts.h"
#include "datatypes/large_counts.h"
#include "lock.h"
#include "parcel_progress.h"
#include "runtime/losses.h"
#include "runtime/mailbox.h"
#include "runtime/runtime.h"

namespace offpath::mpi::p2p {
namespace {

struct SentAgain {
    int to = 0;  // rank in the world
    offpath_message_key_t key{};
    std::unique_ptr<char[]> copy;
    MPI_Request request = MPI_REQUEST_NULL;
};

std::list<SentAgain> sent_again;
std::vector<RescueNote> offers, refusals;
std::atomic<std::uint32_t> rescues{0};  // receives that wait for an offer

Mailbox<RescueNote> rescue_notes(arriving_rescue_note);
constexpr int rescue_tag = 2;  // letters have another one (runtime/letters.h)

// A sender whose own device is silent may wait for it before it looks at its notes. It gives its device up
// after lost_after_ns() and the intervals between its looks.
std::uint64_t answer_limit_ns() {
    constexpr std::uint64_t looks_ns = 1'500'000'000;
    const std::uint64_t limit_ns = lost_after_ns();
    return limit_ns == UINT64_MAX ? limit_ns : limit_ns + looks_ns;
}

void tell(int world_rank, RescueNote::Kind kind, int tag, const offpath_message_key_t& key) {
    rescue_notes.send(world_rank, {kind, tag, key, runtime().rank});
}

bool is_same(const offpath_message_key_t& one, const offpath_message_key_t& other) {
    return one.high == other.high && one.low == other.low;
}

// Calls `start` with count and type for `bytes` bytes.
template <typename Start>
int as_bytes(std::size_t bytes, Start start) {
    if (bytes <= INT_MAX) return start(static_cast<int>(bytes), MPI_BYTE);
    MPI_Datatype all = type_of_many(static_cast<MPI_Count>(bytes), MPI_BYTE);
    const int error = start(1, all);
    PMPI_Type_free(&all);
    return error;
}

void forget_delivered() {
    std::erase_if(sent_again, [](SentAgain& message) {
        int flag = 0;
        PMPI_Test(&message.request, &flag, MPI_STATUS_IGNORE);
        return flag != 0;
    });
}

// Removes and returns the note about this receive, if there is one.
bool take_note_for(const Parcel& receive, std::vector<RescueNote>& notes, RescueNote& taken) {
    const int source = receive.pairs->world(receive.peer);
    const auto found = std::find_if(notes.begin(), notes.end(), [&](const RescueNote& note) {
        return note.from == source && is_same(note.key, receive.key);
    });
    if (found == notes.end()) return false;
    taken = *found;
    notes.erase(found);
    return true;
}

char* place_of(Parcel& receive) {
    if (receive.landed) return receive.landing;
    if (receive.use.contiguous()) return static_cast<char*>(receive.buffer);
    if (receive.staging.address == nullptr) receive.staging = acquire_staging(receive.announced);
    return static_cast<char*>(receive.staging.address);
}

// Whether a device that is only silent may still write where the message goes. It maps staging memory.
bool may_be_written(const Parcel& receive) {
    if (!receive.landed && !receive.use.contiguous()) return true;
    const void* const place = receive.landed ? receive.landing : receive.buffer;
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    return offpath_mem_query(runtime().context, place, 1, &back_end, &progress) != OFFPATH_OK ||
           back_end != OFFPATH_BACK_END_CMA || lost_device::may_still_call();
}

void answer_request(const RescueNote& request) {
    const auto sent = [&](const SentAgain& message) {
        return message.to == request.from && is_same(message.key, request.key);
    };
    if (std::any_of(sent_again.begin(), sent_again.end(), sent)) return;
    Parcel* const send = find_device_send(request.from, request.key);
    if (send == nullptr || !send_again(*send)) {
        tell(request.from, RescueNote::refusal, 0, request.key);
        return;
    }
    // The device may go on reading the buffer, but nobody takes what it reads.
    lost_rank(request.from);
    offpath_request_free(send->keyed_message);
    send->keyed_message = nullptr;
    left_device(*send);
}

void keep_offer(const RescueNote& note) {
    if (note.kind == RescueNote::offer) offers.push_back(note);
}

void drop(const RescueNote& offer) {
    MPI_Status status;
    PMPI_Probe(offer.from, offer.tag, payload_comm(), &status);
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    const auto size = static_cast<std::size_t>(std::max<MPI_Count>(bytes, 1));
    const std::unique_ptr<char[]> nowhere(new char[size]);
    as_bytes(size, [&](int count, MPI_Datatype type) {
        return PMPI_Recv(nowhere.get(), count, type, offer.from, offer.tag, payload_comm(),
                         MPI_STATUS_IGNORE);
    });
}

}  // namespace

bool send_again(Parcel& send) {
    std::unique_ptr<char[]> copy(new (std::nothrow) char[std::max<std::size_t>(send.capacity, 1)]);
    if (copy == nullptr) return false;
    const void* const bytes = send.staging.address != nullptr ? send.staging.address : send.buffer;
    std::memcpy(copy.get(), bytes, send.capacity);
    const int to = send.pairs->world(send.peer);
    const int tag = next_payload_tag();
    sent_again.push_back({to, send.key, std::move(copy)});
    SentAgain& message = sent_again.back();
    const int error = as_bytes(send.capacity, [&](int count, MPI_Datatype type) {
        return PMPI_Isend(message.copy.get(), count, type, to, tag, payload_comm(), &message.request);
    });
    if (error != MPI_SUCCESS) {
        sent_again.pop_back();
        return false;
    }
    tell(to, RescueNote::offer, tag, send.key);
    count_rescued();
    return true;
}

bool begin_rescue(Parcel& receive) {
    if (receive.announced > receive.capacity) return false;
    const offpath_device_state_t device = offpath_context_device_state(runtime().context);
    if (device == OFFPATH_DEVICE_SILENT && may_be_written(receive)) return false;
    if (device != OFFPATH_DEVICE_SERVES) lost_own_device();
    receive.lost_ns = now_ns();
    rescues.fetch_add(1, std::memory_order_relaxed);
    attend(receive);
    tell(receive.pairs->world(receive.peer), RescueNote::request, 0, receive.key);
    return true;
}

bool advance_rescue(Parcel& receive) {
    answer_rescue_notes();
    RescueNote note;
    const auto fails = [&](const char* why) {
        warn(Code::device_lost,
             fmt::format("rank {}: the message from rank {} with tag {} is lost with the device: {}",
                         runtime().rank, receive.pairs->world(receive.peer), receive.tag, why));
        fail(receive, MPI_ERR_OTHER, "receive", OFFPATH_ERR_PEER_LOST);
    };
    if (take_note_for(receive, offers, note)) {
        char* const place = place_of(receive);
        const int error = place == nullptr ? MPI_ERR_NO_MEM
                                           : as_bytes(receive.announced, [&](int count, MPI_Datatype type) {
                                                 return PMPI_Irecv(place, count, type, note.from, note.tag,
                                                                   payload_comm(), &receive.payload);
                                             });
        if (error != MPI_SUCCESS) {
            offers.push_back(note);
            fails("it cannot be received");
        }
    } else if (take_note_for(receive, refusals, note)) {
        fails("the sender has finished it and does not have it any more");
    } else if (now_ns() - receive.lost_ns > answer_limit_ns()) {
        fails("the sender does not answer");
    } else {
        return false;
    }
    receive.lost_ns = 0;
    rescues.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

void answer_rescue_notes() {
    while (const std::optional<RescueNote> note = rescue_notes.next()) {
        if (note->kind == RescueNote::request) {
            answer_request(*note);
        } else {
            (note->kind == RescueNote::offer ? offers : refusals).push_back(*note);
        }
    }
    if (!sent_again.empty()) forget_delivered();
}

bool must_answer_rescue_notes() {
    return arriving_rescue_note.has_come() || rescues.load(std::memory_order_relaxed) != 0;
}

void open_rescue() {
    rescue_notes.open(runtime().service, rescue_tag);
}

void close_rescue() {
    rescue_notes.close(keep_offer);
    for (const RescueNote& offer : offers)
        drop(offer);
    offers.clear();
    for (SentAgain& message : sent_again)
        PMPI_Wait(&message.request, MPI_STATUS_IGNORE);
    sent_again.clear();
}

}  // namespace offpath::mpi::p2p
