/* The name under which older programs look for shmem.h. */
#include <shmem.h>
