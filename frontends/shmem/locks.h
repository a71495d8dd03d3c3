// Locks that are granted in the order of asking: a queue whose end is known at one PE (the MCS lock).
//
// A lock is a symmetric long, 0 while free. At its home PE the lower half holds the last of the queue, plus
// 1; at every PE the upper half holds, while that PE is in the queue, its successor, plus 1, and whether its
// turn has come. Threads of one PE queue within the process first.
#pragma once

namespace offpath::shmem {

void set_lock(volatile long* lock);
// 0: it is held now; 1: somebody has it.
int test_lock(volatile long* lock);
// What was done on the default context before is done when the next one gets the lock.
void clear_lock(volatile long* lock);

}  // namespace offpath::shmem
