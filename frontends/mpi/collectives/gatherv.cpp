// MPI_Gatherv and MPI_Scatterv in their forms. Only the root knows all sizes; each rank knows its own.
#include "collectives/common/pairs.h"

using namespace offpath::mpi;

namespace {

// `one`: every rank's block, which the root may leave in place. `all`: the blocks at the root.
struct RootedBlocks : Call {
    void* one = nullptr;
    std::int64_t one_count = 0;
    MPI_Datatype one_type = MPI_DATATYPE_NULL;
    void* all = nullptr;
    Counts counts = nullptr;
    Counts displs = nullptr;
    MPI_Datatype all_type = MPI_DATATYPE_NULL;
    int root = 0;
    TypeUse one_use{}, all_use{};

    bool is_root() const { return root == team->rank; }
    bool in_place() const { return one == MPI_IN_PLACE; }

    bool plausible() {
        if (root < 0 || (in_place() && !is_root())) return false;
        if (is_root() && (all == MPI_IN_PLACE || !plausible_counts(counts, team->size) || displs == nullptr ||
                          !plausible_type(all_type, any_elements(counts, team->size)))) {
            return false;
        }
        return in_place() || (one_count >= 0 && plausible_type(one_type, one_count > 0));
    }

    bool prepare() {
        if (root >= team->size) return false;
        if (is_root()) all_use = use_type_of(all_type, any_elements(counts, team->size), all);
        if (!in_place()) one_use = use_type_of(one_type, one_count > 0, one);
        if ((is_root() && !all_use.usable) || (!in_place() && !one_use.usable)) return false;
        return !is_root() || in_place() ||
               static_cast<std::size_t>(one_count) * one_use.bytes ==
                   static_cast<std::size_t>(counts[root]) * all_use.bytes;
    }

    // Only the root has to name a type, and only the root keeps it.
    MPI_Datatype type_of_all() const { return is_root() ? all_type : MPI_BYTE; }

    void keep(Kept& kept) {
        if (!in_place()) kept.type(one_type);
        if (!is_root()) return;
        kept.type(all_type);
        kept.array(counts, team->size);
        kept.array(displs, team->size);
    }

    void add_one(std::vector<Block>& blocks) const {
        if (!in_place()) blocks.push_back({root, static_cast<char*>(one), one_count, one_type, one_use});
    }
    // If the root's own block stays in place, it has no bytes here.
    void add_all(std::vector<Block>& blocks) const {
        for (int i = 0; is_root() && i < team->size; ++i) {
            const std::int64_t count = in_place() && i == root ? 0 : counts[i];
            blocks.push_back({i, at(all, displs[i] * all_use.extent), count, all_type, all_use});
        }
    }
};

struct Gatherv : RootedBlocks {
    static constexpr Op op = Op::igatherv;

    MPI_Comm comm;

    Gatherv(Call, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
            Counts recvcounts, Counts the_displs, MPI_Datatype recvtype, int the_root, MPI_Comm the_comm)
        : comm(the_comm) {
        one = const_cast<void*>(sendbuf);
        one_count = sendcount;
        one_type = sendtype;
        all = recvbuf;
        counts = recvcounts;
        displs = the_displs;
        all_type = recvtype;
        root = the_root;
    }

    auto host_arguments() const {
        return std::tuple(one, one_count, one_type, all, counts, displs, type_of_all(), root, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        Exchange& exchange = fresh_exchange();
        add_one(exchange.sends);
        add_all(exchange.recvs);
        return start_exchange(*this, operation, exchange, [&](const DeviceExchange& device) {
            const void* send = in_place() ? OFFPATH_IN_PLACE : device.from;
            const DevicePart part{DevicePart::Shape::gatherv, sent_from(send), device.to, 0, root};
            return tell_device(operation, part, [&] {
                return offpath_igatherv(device_team, send, in_place() ? 0 : device.send_bytes[0], device.to,
                                        device.recv_bytes, device.recv_offsets,
                                        static_cast<std::uint32_t>(root), &operation.device);
            });
        });
    }
};

struct Scatterv : RootedBlocks {
    static constexpr Op op = Op::iscatterv;

    MPI_Comm comm;

    Scatterv(Call, const void* sendbuf, Counts sendcounts, Counts the_displs, MPI_Datatype sendtype,
             void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int the_root, MPI_Comm the_comm)
        : comm(the_comm) {
        one = recvbuf;
        one_count = recvcount;
        one_type = recvtype;
        all = const_cast<void*>(sendbuf);
        counts = sendcounts;
        displs = the_displs;
        all_type = sendtype;
        root = the_root;
    }

    auto host_arguments() const {
        return std::tuple(all, counts, displs, type_of_all(), one, one_count, one_type, root, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        Exchange& exchange = fresh_exchange();
        add_all(exchange.sends);
        add_one(exchange.recvs);
        return start_exchange(*this, operation, exchange, [&](const DeviceExchange& device) {
            void* recv = in_place() ? const_cast<void*>(OFFPATH_IN_PLACE) : device.to;
            void* const own = in_place() ? nullptr : device.to;
            const DevicePart part{DevicePart::Shape::scatterv, device.from, own, 0, root};
            return tell_device(operation, part, [&] {
                return offpath_iscatterv(device_team, device.from, device.send_bytes, device.send_offsets,
                                         recv, in_place() ? 0 : device.recv_bytes[0],
                                         static_cast<std::uint32_t>(root), &operation.device);
            });
        });
    }
};

}  // namespace

COLLECTIVE(Gatherv, Gatherv, gatherv,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
            const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, int root,
            MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm))
COLLECTIVE(Scatterv, Scatterv, scatterv,
           (const void* sendbuf, const Count sendcounts[], const Displacement displs[], MPI_Datatype sendtype,
            void* recvbuf, Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm))
