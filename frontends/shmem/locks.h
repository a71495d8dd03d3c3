// Locks that are granted in the order of the requests: a queue whose tail is stored at one PE (the MCS lock).
//
// A lock is a symmetric long, which is 0 while the lock is free. At the lock's home PE, the lower half is the
// last PE of the queue, plus 1. At every PE in the queue, the upper half has its successor, plus 1, and
// whether its turn has come. Threads of one PE first queue within the process.
#pragma once

namespace offpath::shmem {

void set_lock(volatile long* lock);
// 0: the caller now holds it; 1: it is taken.
int test_lock(volatile long* lock);
// Operations that were started on the default context before are done when the next PE gets the lock.
void clear_lock(volatile long* lock);

}  // namespace offpath::shmem
