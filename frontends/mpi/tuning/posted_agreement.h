// Posted agreements: how the ranks of a communicator agree while the program calls no blocking collective on
// it (agreement.h). Without them, a device that is slower than the host would never be left there.
//
// Once they have begun on a communicator, measurements are agreed on in no other way there. They begin in a
// non-blocking collective of the program, and need no wait: words_under_way.h. All ranks take
// the result up in the same later call. Then all ranks have usually begun that one long ago, because an
// operation which needs all of them has ended since. A rank that has more calls in flight than any had before
// may come first. It waits in this call, at most for as long as silence means no loss (base/patience.h).
// After that it leaves the device, as if one were lost: the other ranks follow (runtime/departure.h), and so
// all start the same calls on the host's MPI, whatever they had agreed on.
#pragma once

#include "agreement.h"

namespace offpath::mpi {

// For the next non-blocking collective of which no rank has a result before all have begun it, unless it is
// too small to matter. In their order, on all ranks.
void agree_meanwhile(Team& team);

}  // namespace offpath::mpi
