// In step k, a rank sends the sum of its last 2^k operands to rank + 2^k. It puts the sum from rank - 2^k
// before its own. There are ceil(log2(n)) steps. This suits small data. W. D. Hillis, G. L. Steele, Data
// parallel algorithms (1986).
#include "collectives/collectives.h"
#include "schedule/builder.h"

#include <bit>
#include <optional>

namespace offpath::collectives {

Schedule scan_recursive_doubling(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place,
                                 bool exclusive) {
    schedule::Builder builder(team.rank, team.size);
    const schedule::BufferRef own{builder.user_slot(bytes), 0};
    const schedule::BufferRef result{in_place ? own.slot : builder.user_slot(bytes), 0};
    if (bytes == 0) return builder.finish();

    const auto steps = static_cast<std::uint32_t>(std::bit_width(team.size - 1));
    const std::uint32_t scratch = steps == 0 ? own.slot : builder.scratch_slot(2 * bytes * steps);
    // The sum over ranks before this one, and the same with this rank's operand.
    struct Sum {
        schedule::BufferRef place;
        std::optional<schedule::OpId> ready;
    };
    Sum before, all{own, std::nullopt};
    std::vector<schedule::OpId> own_readers;
    const auto fold = [&](schedule::BufferRef left, schedule::OpId arrived, const Sum& right) {
        const schedule::OpId reduce = builder.reduce(what.type, what.reduction, right.place, left, bytes);
        builder.depend(reduce, arrived);
        if (right.ready) builder.depend(reduce, *right.ready);
        if (right.place == own) own_readers.push_back(reduce);
        return Sum{left, reduce};
    };
    for (std::uint32_t step = 0; step < steps; ++step) {
        const std::uint64_t distance = std::uint64_t{1} << step;
        if (team.rank + distance < team.size) {
            const schedule::OpId send =
                builder.send(static_cast<std::uint32_t>(team.rank + distance), step, all.place, bytes);
            if (all.ready) builder.depend(send, *all.ready);
            if (all.place == own) own_readers.push_back(send);
        }
        if (team.rank < distance) continue;
        const std::uint64_t offset = 2 * bytes * step;
        const schedule::BufferRef left{scratch, offset}, copy{scratch, offset + bytes};
        const schedule::OpId recv =
            builder.recv(static_cast<std::uint32_t>(team.rank - distance), step, left, bytes);
        const bool sends_again = team.rank + 2 * distance < team.size;
        if (!exclusive) {
            all = fold(left, recv, all);
            continue;
        }
        // The sum without this rank's operand stays here; the one with it is for later ranks.
        schedule::OpId copied = recv;
        if (sends_again) {
            copied = builder.copy(left, copy, bytes);
            builder.depend(copied, recv);
        }
        const Sum next = before.ready ? fold(left, copied, before) : Sum{left, copied};
        if (sends_again) all = fold(copy, copied, all);
        before = next;
    }
    const Sum& sum = exclusive ? before : all;
    if ((exclusive && !before.ready) || sum.place == result) return builder.finish();
    const schedule::OpId last = builder.copy(sum.place, result, bytes);
    if (sum.ready) builder.depend(last, *sum.ready);
    if (in_place)
        for (schedule::OpId reader : own_readers)
            builder.depend(last, reader);
    return builder.finish();
}

}  // namespace offpath::collectives
