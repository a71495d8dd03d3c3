// Notices that another PE of the job has died, for calls that wait for memory and have nothing at a device
// that would end with an error. The watch is a receive from any PE, whose message this PE sends itself in the
// end; the device ends it with an error as soon as a PE is lost. Costs nothing until it is asked. fail_lost()
// of core.h is here too. Threads: close_peer_watch() needs no other call to be running.
#pragma once

namespace offpath::shmem {

// Of a job whose PEs are all there; a loss before that is not noticed. Ends the job on an error.
void open_peer_watch();
void close_peer_watch();
// Ends the job with a message if a PE was lost.
void check_peers();

}  // namespace offpath::shmem
