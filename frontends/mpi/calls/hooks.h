// Hooks that the C functions generated from calls.txt call after the host's MPI. Each gets the object
// that the call was for and the one that it made, and returns what the call returns. Functions that are
// collective over `comm` also call before_collective() before the host's MPI. This header includes the
// headers of all hooks that the table names.
#pragma once

#include "communicators/communicators.h"
#include "requests/held_calls.h"
