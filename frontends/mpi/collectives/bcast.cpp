#include "collectives/common/call.h"

using namespace offpath::mpi;

namespace {

struct Bcast : Call {
    static constexpr Op op = Op::ibcast;

    void* buffer;
    std::int64_t count;
    MPI_Datatype type;
    int root;
    MPI_Comm comm;
    TypeUse use{};

    bool plausible() {
        if (buffer == MPI_IN_PLACE || type == MPI_DATATYPE_NULL || count < 0) return false;
        decided_by = static_cast<std::size_t>(count) * type_bytes(type);
        return true;
    }

    std::uint64_t bytes_at_a_glance() const { return glance(count, type); }
    void remember() const { remember_bytes(type); }
    bool prepare() {
        use = use_type(type, buffer);
        return use.usable && root >= 0 && root < team->size;
    }

    auto host_arguments() const { return std::tuple(buffer, count, type, root, comm); }

    offpath_status_t start(OffloadedRequest& operation) {
        const bool is_root = root == team->rank;
        const auto elements = static_cast<std::size_t>(count);
        void* data = is_root ? const_cast<void*>(bytes_to_send(operation, use, buffer, elements))
                             : bytes_to_receive(operation, use, buffer, elements);
        if (data == nullptr) return OFFPATH_ERR_MEMORY;
        from_others = is_root ? 0 : decided_by;
        return tell_device(operation, {DevicePart::Shape::bcast, data, data, decided_by, root}, [&] {
            return offpath_ibcast(device_team, data, decided_by, static_cast<std::uint32_t>(root),
                                  &operation.device);
        });
    }

    void keep(Kept& kept) { kept.type(type); }
};

}  // namespace

COLLECTIVE(Bcast, Bcast, bcast, (void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm))
