// Ends the whole job, from any PE. Threads: any.
#pragma once

namespace offpath::shmem {

// Ends all PEs at once. `status` becomes the launcher's exit code if the launcher passes it on.
[[noreturn]] void end_job(int status);

}  // namespace offpath::shmem
