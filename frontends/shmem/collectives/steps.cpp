#include "collectives/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "collectives/collectives.h"

namespace offpath::shmem {

namespace {

template <class T>
T* at_member(const Team& team, int rank, T* own) {
    const auto offset = reinterpret_cast<std::byte*>(own) - team.own.base;
    return reinterpret_cast<T*>(slot_of(team, rank).base + offset);
}

}  // namespace

Cell next_cell(Team& team) {
    const std::uint64_t number = ++team.operations;
    const std::size_t index = number % cell_count;
    if (index == 0) sync_team(team);
    return {index, number};
}

void tell(Team& team, int rank, std::uint64_t* own_word, std::uint64_t value) {
    if (is_near(team, rank)) {
        publish(at_member(team, rank, own_word), value);
    } else {
        amo(*team.context, Amo::set, sizeof value, own_word, value, 0, nullptr, rank, false);
    }
}

void send(Team& team, int rank, void* own_place, const void* from, std::size_t bytes, std::uint64_t* own_word,
          std::uint64_t value) {
    if (is_near(team, rank)) {
        std::memcpy(at_member(team, rank, static_cast<std::byte*>(own_place)), from, bytes);
        publish(at_member(team, rank, own_word), value);
    } else {
        put_signal(*team.context, own_place, from, bytes, own_word, value, signal_set, rank, false);
    }
}

Part part_of(std::size_t count, std::size_t element, std::size_t i, std::size_t parts) {
    const std::size_t step = std::max<std::size_t>(1, line / element);
    const std::size_t steps = (count + step - 1) / step;
    return {std::min(count, steps * i / parts * step), std::min(count, steps * (i + 1) / parts * step)};
}

void check_symmetric(const char* what, const void* address, std::size_t bytes) {
    if (bytes > 0 && !is_symmetric(address, bytes))
        fail(fmt::format("{} {} of {} bytes is not symmetric", what, address, bytes));
}

}  // namespace offpath::shmem
