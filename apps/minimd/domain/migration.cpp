#include "minimd/domain/migration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "minimd/domain/patience.h"
#include "minimd/domain/wire.h"

namespace minimd {

template <typename Real>
Migration<Real>::Migration(const Decomposition& decomposition) : decomposition_(decomposition) {
    for (int d = 0; d < 3; ++d)
        if (decomposition.grid()[static_cast<std::size_t>(d)] > 1) dimensions_.push_back(d);
}

template <typename Real>
void Migration<Real>::start(const Particles<Real>& particles, std::int64_t step) {
    layout_ = particles.layout;
    step_ = step;
    x_.clear();
    y_.clear();
    z_.clear();
    origin_.clear();
    leaving_.clear();
    leaving_origin_.clear();
    received_.clear();
    for (auto& dimension : passes_)
        for (Pass& pass : dimension)
            pass = {};

    const int lanes = layout_.lanes;
    const Vec3& lo = decomposition_.lo();
    const Vec3& hi = decomposition_.hi();
    std::array<Real, 3> box;
    for (std::size_t d = 0; d < 3; ++d)
        box[d] = static_cast<Real>(decomposition_.box()[d]);
    for (std::int32_t slot = 0; slot < particles.local_slots; ++slot) {
        const auto s = static_cast<std::size_t>(slot);
        if (particles.id[s] == 0) continue;
        const std::size_t address = layout_.address(slot);
        std::array<Real, 3> x;
        bool inside = true;
        for (std::size_t d = 0; d < 3; ++d) {
            x[d] = particles.x[address + d * static_cast<std::size_t>(lanes)];
            if (x[d] < 0) x[d] += box[d];
            if (x[d] >= box[d]) x[d] -= box[d];
            if (!(x[d] >= 0 && x[d] < box[d])) {
                if (x[d] < 0 && x[d] > -box[d] * Real(1e-5)) {
                    x[d] = 0;  // rounding at the edge
                } else {
                    throw SimulationError(
                        fmt::format("step {}: atom {} is at {} in dimension {}, more than a whole box ({}) "
                                    "away: atoms are "
                                    "too fast for this time step, or forces are not numbers",
                                    step, particles.id[s], x[d], d, box[d]));
                }
            }
            inside = inside && x[d] >= lo[d] && x[d] < hi[d];
        }
        if (dimensions_.empty() || inside) {
            stay(x[0], x[1], x[2], slot);
        } else {
            Traveller traveller{{x[0], x[1], x[2]}, {}, particles.id[s], particles.type[s], 0};
            for (std::size_t d = 0; d < 3; ++d)
                traveller.v[d] = particles.v[address + d * static_cast<std::size_t>(lanes)];
            leaving_.push_back(traveller);
            leaving_origin_.push_back(slot);
        }
    }
    if (!dimensions_.empty()) send(dimensions_.front());
}

template <typename Real>
void Migration<Real>::finish(bool patient) {
    for (const int d : dimensions_) {
        if (d != dimensions_.front()) send(d);
        receive(d, patient);
    }
    for (std::size_t i = 0; i < leaving_.size(); ++i)
        stay(leaving_[i].x[0], leaving_[i].x[1], leaving_[i].x[2], leaving_origin_[i]);
    received_count_ = received_.size();
}

template <typename Real>
void Migration<Real>::send(int d) {
    const int grid = decomposition_.grid()[static_cast<std::size_t>(d)];
    const int mine = decomposition_.place()[static_cast<std::size_t>(d)];
    const int down = (mine + grid - 1) % grid, up = (mine + 1) % grid;
    for (auto& out : out_)
        out.clear();
    std::vector<Traveller> waiting;
    std::vector<std::int32_t> waiting_origin;
    for (std::size_t i = 0; i < leaving_.size(); ++i) {
        const double x = static_cast<double>(leaving_[i].x[d]);
        const auto at = [&](int place) { return decomposition_.lower_bound(d, place); };
        if (x >= at(mine) && x < at(mine + 1)) {
            waiting.push_back(leaving_[i]);
            waiting_origin.push_back(leaving_origin_[i]);
            continue;
        }
        const bool goes_up = x >= at(up) && x < at(up + 1);
        if (!goes_up && !(x >= at(down) && x < at(down + 1)))
            throw SimulationError(
                fmt::format("step {}: atom {} moved further than the width of a subdomain ({:.4g} in "
                            "dimension {}) since atoms were "
                            "exchanged: use a smaller re-neighbouring interval or fewer ranks",
                            step_, leaving_[i].id, decomposition_.lower_bound(d, 1), d));
        const std::size_t way = goes_up ? 1 : 0;
        out_[way].push_back(leaving_[i]);
        passes_[static_cast<std::size_t>(d)][way].sent.push_back(leaving_origin_[i]);
    }
    leaving_.swap(waiting);
    leaving_origin_.swap(waiting_origin);
    const std::array<int, 2> to{decomposition_.neighbor(d, -1), decomposition_.neighbor(d, 1)};
    calls_.in([&] {
        for (std::size_t way = 0; way < 2; ++way)
            MPI_Isend(out_[way].data(), static_cast<int>(out_[way].size() * sizeof(Traveller)), MPI_BYTE,
                      to[way], tag_migration + static_cast<int>(way), decomposition_.comm(), &sends_[way]);
    });
}

template <typename Real>
void Migration<Real>::receive(int d, bool patient) {
    // Atoms that move down come from above. A message tells how many there are.
    const std::array<int, 2> from{decomposition_.neighbor(d, 1), decomposition_.neighbor(d, -1)};
    for (std::size_t way = 0; way < 2; ++way) {
        MPI_Message message = MPI_MESSAGE_NULL;
        int bytes = 0;
        calls_.in([&] {
            MPI_Status status;
            const int tag = tag_migration + static_cast<int>(way);
            if (patient)
                wait_patiently([&] {
                    int there = 0;
                    MPI_Improbe(from[way], tag, decomposition_.comm(), &there, &message, &status);
                    return there != 0;
                });
            else
                MPI_Mprobe(from[way], tag, decomposition_.comm(), &message, &status);
            MPI_Get_count(&status, MPI_BYTE, &bytes);
        });
        const std::size_t first = received_.size(),
                          count = static_cast<std::size_t>(bytes) / sizeof(Traveller);
        received_.resize(first + count);
        calls_.in([&] { MPI_Mrecv(received_.data() + first, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE); });
        passes_[static_cast<std::size_t>(d)][way].received = static_cast<std::int32_t>(count);
        for (std::size_t i = first; i < received_.size(); ++i) {
            leaving_.push_back(received_[i]);
            leaving_origin_.push_back(-1 - static_cast<std::int32_t>(i));
        }
    }
    calls_.in([&] { MPI_Waitall(2, sends_.data(), MPI_STATUSES_IGNORE); });
}

template <typename Real>
void Migration<Real>::settle(Particles<Real>& particles, const std::vector<std::int32_t>& order) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    const std::size_t slots = order.size();
    new_x_.resize(3 * slots);
    new_v_.resize(3 * slots);
    new_id_.resize(slots);
    new_type_.resize(slots);
    origin_of_slot_.resize(slots);
    for (std::size_t s = 0; s < slots; ++s) {
        const std::size_t to = layout_.address(static_cast<std::int32_t>(s));
        const std::int32_t atom = order[s];
        if (atom < 0) {
            for (std::size_t d = 0; d < 3; ++d) {
                new_x_[to + d * lanes] =
                    static_cast<Real>(filler_position(static_cast<std::int32_t>(s), static_cast<int>(d)));
                new_v_[to + d * lanes] = 0;
            }
            new_id_[s] = 0;
            new_type_[s] = 0;
            origin_of_slot_[s] = filler_origin;
            continue;
        }
        const auto a = static_cast<std::size_t>(atom);
        const std::int32_t origin = origin_[a];
        new_x_[to] = x_[a];
        new_x_[to + lanes] = y_[a];
        new_x_[to + 2 * lanes] = z_[a];
        origin_of_slot_[s] = origin;
        if (origin >= 0) {
            const std::size_t from = layout_.address(origin);
            for (std::size_t d = 0; d < 3; ++d)
                new_v_[to + d * lanes] = particles.v[from + d * lanes];
            new_id_[s] = particles.id[static_cast<std::size_t>(origin)];
            new_type_[s] = particles.type[static_cast<std::size_t>(origin)];
        } else {
            const Traveller& traveller = received_[static_cast<std::size_t>(-1 - origin)];
            for (std::size_t d = 0; d < 3; ++d)
                new_v_[to + d * lanes] = traveller.v[d];
            new_id_[s] = traveller.id;
            new_type_[s] = traveller.type;
        }
    }
    particles.x.swap(new_x_);
    particles.v.swap(new_v_);
    particles.id.swap(new_id_);
    particles.type.swap(new_type_);
    particles.atoms = static_cast<std::int32_t>(size());
    particles.local_slots = particles.slots = static_cast<std::int32_t>(slots);
}

template <typename Real>
void Migration<Real>::follow(const Real* old_blocks, Real* new_blocks, const Real* more) const {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    std::vector<Triple<Real>> arrived(received_count_);
    const auto value = [&](std::int32_t origin) -> Triple<Real> {
        if (origin == filler_origin) return {0, 0, 0};
        if (origin < 0) return arrived[static_cast<std::size_t>(-1 - origin)];
        const std::size_t address = layout_.address(origin);
        const Real* at = old_blocks + address;
        if (more == nullptr) return {at[0], at[lanes], at[2 * lanes]};
        const Real* plus = more + address;
        return {at[0] + plus[0], at[lanes] + plus[lanes], at[2 * lanes] + plus[2 * lanes]};
    };
    std::size_t into = 0;
    for (int d = 0; d < 3; ++d) {
        if (decomposition_.grid()[static_cast<std::size_t>(d)] == 1) continue;
        const std::array<int, 2> to{decomposition_.neighbor(d, -1), decomposition_.neighbor(d, 1)};
        std::array<std::vector<Triple<Real>>, 2> out;
        std::array<MPI_Request, 4> requests;
        for (std::size_t way = 0; way < 2; ++way) {
            const Pass& pass = passes_[static_cast<std::size_t>(d)][way];
            for (const std::int32_t origin : pass.sent)
                out[way].push_back(value(origin));
            MPI_Isend(out[way].data(), 3 * static_cast<int>(out[way].size()), mpi_type<Real>(), to[way],
                      tag_migration_follow + static_cast<int>(way), decomposition_.comm(),
                      &requests[2 + way]);
        }
        for (std::size_t way = 0; way < 2; ++way) {
            const std::int32_t count = passes_[static_cast<std::size_t>(d)][way].received;
            MPI_Irecv(arrived.data() + into, 3 * count, mpi_type<Real>(), decomposition_.process(to[1 - way]),
                      tag_migration_follow + static_cast<int>(way), decomposition_.comm(), &requests[way]);
            into += static_cast<std::size_t>(count);
        }
        MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
    }
    for (std::size_t s = 0; s < origin_of_slot_.size(); ++s) {
        Real* at = new_blocks + layout_.address(static_cast<std::int32_t>(s));
        const Triple<Real> t = value(origin_of_slot_[s]);
        at[0] = t.x;
        at[lanes] = t.y;
        at[2 * lanes] = t.z;
    }
}

template <typename Real>
void Migration<Real>::describe(std::vector<std::int32_t>& record) const {
    const auto put = [&](const std::vector<std::int32_t>& numbers) {
        record.push_back(static_cast<std::int32_t>(numbers.size()));
        record.insert(record.end(), numbers.begin(), numbers.end());
    };
    for (const auto& dimension : passes_)
        for (const Pass& pass : dimension) {
            put(pass.sent);
            record.push_back(pass.received);
        }
    put(origin_of_slot_);
}

template <typename Real>
void Migration<Real>::adopt(Layout layout, std::span<const std::int32_t> record) {
    layout_ = layout;
    std::size_t at = 0;
    const auto take = [&](std::vector<std::int32_t>& into) {
        const auto count = static_cast<std::size_t>(record[at++]);
        into.assign(record.begin() + static_cast<std::ptrdiff_t>(at),
                    record.begin() + static_cast<std::ptrdiff_t>(at + count));
        at += count;
    };
    received_count_ = 0;
    for (auto& dimension : passes_)
        for (Pass& pass : dimension) {
            take(pass.sent);
            pass.received = record[at++];
            received_count_ += static_cast<std::size_t>(pass.received);
        }
    take(origin_of_slot_);
}

template class Migration<float>;
template class Migration<double>;

}  // namespace minimd
