// MPI_Type_free: also releases what the front end keeps for a datatype.
#include <mpi.h>
#include <offpath/types.h>

#include "datatypes/datatypes.h"

extern "C" {

OFFPATH_API int MPI_Type_free(MPI_Datatype* type) {
    return type != nullptr ? offpath::mpi::free_type(type) : PMPI_Type_free(type);
}

}  // extern "C"
