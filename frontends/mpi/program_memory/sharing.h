// Ordinary buffers of the program that its device maps (memory/page_sharing.h). This room watches the calls
// by which memory ends or changes hands, and decides whether buffers may be shared at all.
#pragma once

namespace offpath::mpi {

// Call it once the device is there. Nothing is shared if another library serves the program's memory calls
// before this one, or if the user wants ordinary memory to be copied by system calls (OFFPATH_BACK_END).
void begin_sharing();
// From now on other ranks may write into memory of the program at any time, so no more of it is moved.
void end_sharing();

}  // namespace offpath::mpi
