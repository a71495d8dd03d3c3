/* Extensions of OpenSHMEM by offpath: none. */
#ifndef OFFPATH_SHMEMX_H
#define OFFPATH_SHMEMX_H

#include <shmem.h>

#endif
