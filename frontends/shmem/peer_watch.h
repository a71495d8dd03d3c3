// Detects that another PE of the job has died. It is for calls that wait for memory and have no operation at
// a device that would end with an error. The watch is a receive from any PE. The device ends it with an error
// as soon as a PE is lost; at the end, this PE sends the matching message itself. It costs nothing until it
// is checked. fail_lost() of core.h is here too. Threads: no other call may run during close_peer_watch().
#pragma once

namespace offpath::shmem {

// Call it while all PEs are there; an earlier loss is not detected. Ends the job on an error.
void open_peer_watch();
void close_peer_watch();
// Ends the job with a message if a PE was lost, unless it can go on (recovery.h).
void check_peers();
// Whether a call that waits should look for the lost PE now: at once if this PE's own device is lost, and
// otherwise when what it waits for has not come half a second after the loss. One load, most of the time.
bool must_act_on_loss();
// The device of the watch is gone, or its session has ended.
void forget_peer_watch();
// The same, and the symmetric memory is gone.
void drop_peer_watch();
// No device can be used any more. From now on only PEs of this node are told of a loss.
void forget_devices();
// Whether the process of a PE of this node has ended.
bool pe_has_died();

}  // namespace offpath::shmem
