// What the C functions that are generated from calls.txt call after the host's MPI: each takes the object
// that the call made. One include for every hook that the table names.
#pragma once

#include "communicators.h"
