// OFFPATH_AUTOSTART=1: starts `offpathd` where no daemon answers, for programs that are run without `offpath
// run`.
//
// The daemon is no child of the rank (it is adopted by init and leads a session of its own), holds none of
// the rank's descriptors, and ends itself some seconds after its last session. One thread of one rank a node
// calls this.
#pragma once

#include <string>

namespace offpath::mpi {

// The directory of the daemons' sockets: OFFPATH_DIR, else /tmp/offpath-<uid>.
std::string session_directory();

// True once a daemon answers on this node. On false, `problem` says in one line why none does.
bool ensure_daemon(std::string& problem);

}  // namespace offpath::mpi
