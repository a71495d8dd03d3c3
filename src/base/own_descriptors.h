// Descriptors that this process keeps for itself. A forked child would inherit them, and hold a connection
// open for as long as it lives, so that the other side would not notice the parent's death. Where
// replace_in_children() was called, each of them is /dev/null in a child that this process forks: closed, and
// its number still taken, so that the parent's objects, which the child has too, harm nothing.
//
// A child made by a bare clone() keeps them; so does one of vfork() or posix_spawn() until it execs, which
// closes them. Threads: any. note() and forget() are one atomic instruction each.
#pragma once

namespace offpath::own_descriptors {

// Of an open descriptor; until forget(), which comes before its close() or before it is handed on.
void note(int fd);
void forget(int fd);

// From here on, in this process. Called by the client; a daemon's children get what it hands to them.
void replace_in_children();

}  // namespace offpath::own_descriptors
