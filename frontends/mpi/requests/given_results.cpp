#include "given_results.h"

#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "after_loss.h"
#include "datatypes/reductions.h"
#include "leaving_messages.h"
#include "runtime/kept_results.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

// The root of a broadcast only sends.
bool sends_result(const OffloadedRequest& operation) {
    return operation.part.shape == DevicePart::Shape::bcast && operation.team->rank == operation.part.root;
}

// Where the device sees it.
const std::byte* result_of(const OffloadedRequest& operation) {
    const DevicePart& part = operation.part;
    return static_cast<const std::byte*>(sends_result(operation) ? part.send : part.recv);
}

std::size_t result_bytes(const OffloadedRequest& operation) {
    const DevicePart& part = operation.part;
    switch (part.shape) {
        case DevicePart::Shape::bcast:
            return part.size;
        case DevicePart::Shape::allgather:
            return part.size * static_cast<std::size_t>(operation.team->size);
        default:
            return bytes_in_memory(part.type, 1) * part.size;
    }
}

// Its number comes first.
std::vector<std::byte> message_of(std::uint64_t number, std::span<const std::byte> result) {
    std::vector<std::byte> message(sizeof number + result.size());
    std::memcpy(message.data(), &number, sizeof number);
    if (!result.empty()) std::memcpy(message.data() + sizeof number, result.data(), result.size());
    return message;
}

void give(const Team& team, int to, std::uint64_t number, std::span<const std::byte> result) {
    auto given = std::make_unique<LeavingMessages>();
    given->bytes = message_of(number, result);
    MPI_Request& request = given->requests.emplace_back(MPI_REQUEST_NULL);
    if (team.small_messages.send(given->bytes.data(), static_cast<int>(given->bytes.size()), MPI_BYTE, to,
                                 SmallLane::of_given_results(), &request) == MPI_SUCCESS)
        let_leave(std::move(given));
}

}  // namespace

void keep_result(const OffloadedRequest& operation) {
    // A persistent collective's departure serves no communicator, so it would give nothing.
    if (operation.number == 0 || operation.persistent || !repair_of(operation.op).given || runtime().threads)
        return;
    operation.departure->kept().keep(operation.number, {result_of(operation), result_bytes(operation)});
}

std::size_t given_bytes(const OffloadedRequest& operation) {
    return sizeof operation.number + result_bytes(operation);
}

bool take_given(const OffloadedRequest& operation, const std::vector<std::byte>& message) {
    std::uint64_t number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    if (number != operation.number) return false;
    if (message.size() > sizeof number && !sends_result(operation))
        std::memcpy(operation.part.recv, message.data() + sizeof number, message.size() - sizeof number);
    return true;
}

int giver_of(const OffloadedRequest& operation) {
    if (!repair_of(operation.op).given) return -1;
    const int world_rank = operation.departure->giver_of(operation.number);
    const std::vector<SmallPeer>& peers = operation.team->small_messages.peers();
    for (std::size_t i = 0; i < peers.size() && world_rank >= 0; ++i)
        if (peers[i].world_rank == world_rank) return static_cast<int>(i);
    return -1;
}

void give_results(const Departure& departure) {
    const Team* const team = departure.team();
    if (team == nullptr) return;
    const std::vector<SmallPeer>& peers = team->small_messages.peers();
    try {
        // Receivers wait for them in the order of the calls.
        departure.kept().for_each([&](std::uint64_t number, std::span<const std::byte> result) {
            if (departure.giver_of(number) != runtime().rank ||
                departure.passage_of(number, {.given = true}) != Passage::again)
                return;
            for (std::size_t i = 0; i < peers.size(); ++i)
                if (!departure.has_result(number, peers[i].world_rank))
                    give(*team, static_cast<int>(i), number, result);
        });
    } catch (const std::bad_alloc&) {
        // They wait in vain, and end with an error.
    }
}

}  // namespace offpath::mpi
