// MPI_Gather and MPI_Scatter in their forms. Every rank knows the size of a block, so all ranks make the same
// decision from the total.
#include "collectives/common/call.h"

using namespace offpath::mpi;

namespace {

// One rank's block, or all blocks at the root, as the user describes them.
struct Side {
    void* buffer;
    std::int64_t count;  // elements of one block
    MPI_Datatype type;
    TypeUse use{};

    bool plausible() const { return type != MPI_DATATYPE_NULL && count >= 0; }
    std::size_t block_bytes() const { return static_cast<std::size_t>(count) * type_bytes(type); }
    bool prepare(std::uint64_t block) {
        use = use_type(type, buffer);
        return use.usable && static_cast<std::size_t>(count) * use.bytes == block;
    }
    void* block(int i) const { return at(buffer, static_cast<MPI_Aint>(i) * count * use.extent); }
};

// `one`: every rank's block, which the root may leave in place. `all`: the blocks at the root.
struct Rooted : Call {
    Side one{}, all{};
    int root = 0;
    std::size_t block = 0;

    bool is_root() const { return root == team->rank; }
    bool in_place() const { return one.buffer == MPI_IN_PLACE; }

    bool plausible() {
        if (root < 0) return false;
        if (is_root() ? all.buffer == MPI_IN_PLACE || !all.plausible() : in_place()) return false;
        if (!in_place() && !one.plausible()) return false;
        block = in_place() ? all.block_bytes() : one.block_bytes();
        decided_by = block * static_cast<std::size_t>(team->size);
        return true;
    }

    bool prepare() {
        return root < team->size && (!is_root() || all.prepare(block)) && (in_place() || one.prepare(block));
    }

    // Only the root has to name a type, and only the root keeps it.
    MPI_Datatype type_of_all() const { return is_root() ? all.type : MPI_BYTE; }

    void keep(Kept& kept) {
        if (!in_place()) kept.type(one.type);
        if (is_root()) kept.type(all.type);
    }

    std::size_t ranks() const { return static_cast<std::size_t>(team->size); }
};

struct Gather : Rooted {
    static constexpr Op op = Op::igather;

    MPI_Comm comm;

    Gather(Call, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
           std::int64_t recvcount, MPI_Datatype recvtype, int the_root, MPI_Comm the_comm)
        : comm(the_comm) {
        one = {const_cast<void*>(sendbuf), sendcount, sendtype};
        all = {recvbuf, recvcount, recvtype};
        root = the_root;
    }

    auto host_arguments() const {
        return std::tuple(one.buffer, one.count, one.type, all.buffer, all.count, type_of_all(), root, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        void* recv = nullptr;
        const void* send = OFFPATH_IN_PLACE;  // NOLINT(performance-no-int-to-ptr)
        if (is_root()) {
            recv = bytes_to_receive(operation, all.use, all.buffer,
                                    ranks() * static_cast<std::size_t>(all.count));
            if (recv == nullptr) return OFFPATH_ERR_MEMORY;
            from_others = decided_by - block;
        }
        if (!in_place()) {
            send = bytes_to_send(operation, one.use, one.buffer, static_cast<std::size_t>(one.count));
            if (send == nullptr) return OFFPATH_ERR_MEMORY;
        } else if (!put_own_block(all.use, all.block(root), static_cast<std::size_t>(all.count), recv,
                                  static_cast<std::size_t>(root) * block)) {
            return OFFPATH_ERR_MEMORY;
        }
        return tell_device(operation, {DevicePart::Shape::gather, sent_from(send), recv, block, root}, [&] {
            return offpath_igather(device_team, send, recv, block, static_cast<std::uint32_t>(root),
                                   &operation.device);
        });
    }
};

struct Scatter : Rooted {
    static constexpr Op op = Op::iscatter;

    MPI_Comm comm;

    Scatter(Call, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
            std::int64_t recvcount, MPI_Datatype recvtype, int the_root, MPI_Comm the_comm)
        : comm(the_comm) {
        one = {recvbuf, recvcount, recvtype};
        all = {const_cast<void*>(sendbuf), sendcount, sendtype};
        root = the_root;
    }

    auto host_arguments() const {
        return std::tuple(all.buffer, all.count, type_of_all(), one.buffer, one.count, one.type, root, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        const void* send = nullptr;
        void* recv = const_cast<void*>(OFFPATH_IN_PLACE);  // NOLINT(performance-no-int-to-ptr)
        if (is_root()) {
            send =
                bytes_to_send(operation, all.use, all.buffer, ranks() * static_cast<std::size_t>(all.count));
            if (send == nullptr) return OFFPATH_ERR_MEMORY;
        } else {
            from_others = block;
        }
        if (!in_place()) {
            recv = bytes_to_receive(operation, one.use, one.buffer, static_cast<std::size_t>(one.count));
            if (recv == nullptr) return OFFPATH_ERR_MEMORY;
        }
        void* const own = in_place() ? nullptr : recv;
        return tell_device(operation, {DevicePart::Shape::scatter, send, own, block, root}, [&] {
            return offpath_iscatter(device_team, send, recv, block, static_cast<std::uint32_t>(root),
                                    &operation.device);
        });
    }
};

}  // namespace

COLLECTIVE(Gather, Gather, gather,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
COLLECTIVE(Scatter, Scatter, scatter,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
