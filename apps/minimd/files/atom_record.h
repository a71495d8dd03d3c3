// An atom in messages between ranks outside the simulation, and in restart files.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "minimd/base/atoms.h"

namespace minimd {

struct AtomRecord {
    std::int64_t id;
    std::int32_t type;
    std::int32_t zero;
    Vec3 x, v;
};
static_assert(sizeof(AtomRecord) == 64);

inline AtomRecord record_of(const AtomList& atoms, std::size_t i) {
    return {atoms.id[i], atoms.type[i], 0, atoms.x[i], atoms.v[i]};
}

inline void append(AtomList& atoms, const AtomRecord& record) {
    atoms.id.push_back(record.id);
    atoms.type.push_back(record.type);
    atoms.x.push_back(record.x);
    atoms.v.push_back(record.v);
}

// Returns `x` moved into the box, periodically.
Vec3 wrapped(const Vec3& x, const Vec3& box);

// MPI's datatype of a record. It is freed with this object.
class RecordType {
  public:
    RecordType() {
        MPI_Type_contiguous(static_cast<int>(sizeof(AtomRecord)), MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
    }
    RecordType(const RecordType&) = delete;
    RecordType& operator=(const RecordType&) = delete;
    ~RecordType() { MPI_Type_free(&type_); }
    MPI_Datatype get() const { return type_; }

  private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace minimd
