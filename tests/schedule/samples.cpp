#include "samples.h"

#include "schedule/builder.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace offpath::testing {

using namespace offpath::schedule;

Schedule sample_of_everything() {
    Builder b(2, 200);
    b.user_slot(1 << 20);
    b.scratch_slot(300);
    b.copy({0, 0}, {0, 1 << 19}, 1 << 19);
    const OpId recv = b.recv(3, 1, {1, 0}, 300), send = b.send(199, UINT64_MAX, {1, 0}, 300);
    b.reduce(DataType::int32, Reduction::sum, {1, 0}, {0, 0}, 16);
    b.signal(0, 5);
    b.wait(6, 2);
    b.compute(
        {9, {std::byte{1}, std::byte{2}}, {{{0, 0}, 1 << 20, Access::in}, {{0, 70000}, 1, Access::inout}}});
    b.depend(send, recv);
    b.depend(0, {1, 2, 3, 4, 5});
    b.depend(6, 0);
    return b.finish();
}

Schedule random_schedule(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    const auto rank = static_cast<std::uint32_t>(below(5));
    const auto size = static_cast<std::uint32_t>(rank + 2 + below(300));
    Builder b(rank, size);
    const std::uint64_t slot_bytes = 1 + below(std::uint64_t{1} << below(40));
    const std::uint64_t slots = 1 + below(4);
    for (std::uint64_t i = 0; i < 2 * slots; ++i)  // even: users, odd: scratch, of one size
        i % 2 == 0 ? b.user_slot(slot_bytes) : b.scratch_slot(slot_bytes);

    const std::uint64_t count = below(40);
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto peer = static_cast<std::uint32_t>((rank + 1 + below(size - 1)) % size);
        std::uint64_t bytes = below(slot_bytes + 1);
        const auto place = [&](std::uint64_t odd) {
            return BufferRef{static_cast<std::uint32_t>(2 * below(slots) + odd),
                             below(slot_bytes - bytes + 1)};
        };
        switch (below(7)) {
            case 0:
                b.copy(place(0), place(1), bytes);
                break;
            case 1:
                b.send(peer, i, place(0), bytes);
                break;
            case 2:
                b.recv(peer, i << below(50), place(1), bytes);
                break;
            case 3:
                bytes -= bytes % most_element_bytes;
                for (bool found = false; !found;) {
                    const auto type = static_cast<DataType>(1 + below(24));
                    const auto reduction = static_cast<Reduction>(1 + below(12));
                    found = defined(type, reduction);
                    if (found) b.reduce(type, reduction, place(0), place(1), bytes);
                }
                break;
            case 4:
                b.signal(peer, random());
                break;
            case 5:
                b.wait(below(100), 1 + below(9));
                break;
            default:
                KernelCall call{below(1000), std::vector<std::byte>(below(20)), {}};
                for (std::uint64_t buffers = below(4); buffers > 0; --buffers)
                    call.buffers.push_back({place(0), bytes, static_cast<Access>(1 + below(3))});
                b.compute(std::move(call));
        }
    }
    // Dependencies along a random order of the ops, which has no circle.
    std::vector<OpId> order(count);
    std::iota(order.begin(), order.end(), 0);
    if (below(2) == 0) std::shuffle(order.begin(), order.end(), random);
    for (std::uint64_t i = 0; count > 1 && i < below(4) * count; ++i) {
        const std::uint64_t after = 1 + below(count - 1);
        b.depend(order[after], order[below(after)]);
    }
    return b.finish();
}

}  // namespace offpath::testing
