// Ends the whole job, from any PE. Threads: any.
#pragma once

namespace offpath::shmem {

// All PEs end at once; `status` becomes the launcher's exit code where it passes it on.
[[noreturn]] void end_job(int status);

}  // namespace offpath::shmem
