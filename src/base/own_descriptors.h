// Descriptors that this process keeps to itself. A forked child would inherit them and hold a connection open
// for as long as it lives, so the peer would not notice the parent's death.
//
// After replace_in_children(), every noted descriptor refers to /dev/null in a child that this process forks.
// The connection is closed, but the number stays taken. The child's copies of the parent's objects can
// therefore not act on a descriptor that the child opened.
//
// A child made by a bare clone() keeps the descriptors. A child of vfork() or posix_spawn() keeps them until
// it execs, which closes them. Threads: any. note() and forget() are one atomic instruction each.
#pragma once

namespace offpath::own_descriptors {

// note() takes an open descriptor. forget() must come before the descriptor is closed or handed over.
void note(int fd);
void forget(int fd);

// Takes effect from this call on, for the whole process. The client calls it. The daemon does not: its
// children inherit what it gives them.
void replace_in_children();

}  // namespace offpath::own_descriptors
