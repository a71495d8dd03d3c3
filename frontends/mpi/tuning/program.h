// What a signature belongs to: this program, on this platform (signature.h). Reads files of /proc and /sys; a
// part that cannot be read is empty. Threads: any.
#pragma once

#include <string>

namespace offpath::mpi {

// The program's file, for human readers.
std::string program_name();
// The program's build ID and size, or a hash of its file if it has no build ID; for an interpreter, a hash of
// the script too. Of a large file, both ends count.
std::string program_content();
// The processor, the networks and the kind of device, in words. Networks whose rate is not known do not
// count.
std::string platform_in_words();

}  // namespace offpath::mpi
