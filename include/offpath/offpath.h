/* offpath moves communication and computation off the host cores of HPC programs. This header includes the
 * whole C API except device_ranks.h. types.h has its conventions. */
#ifndef OFFPATH_OFFPATH_H
#define OFFPATH_OFFPATH_H

#include <offpath/collectives.h>
#include <offpath/compute.h>
#include <offpath/context.h>
#include <offpath/memory.h>
#include <offpath/messages.h>
#include <offpath/primitives.h>
#include <offpath/request.h>
#include <offpath/team.h>
#include <offpath/types.h>
#include <offpath/windows.h>

#endif
