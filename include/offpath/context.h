/* The attachment of a process to its device: init, finalize, facts about it. */
#ifndef OFFPATH_CONTEXT_H
#define OFFPATH_CONTEXT_H

#include <offpath/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum offpath_threads { OFFPATH_THREADS_SINGLE = 0, OFFPATH_THREADS_MULTIPLE = 1 } offpath_threads_t;

/* Gathers `bytes` bytes of every rank into `all` (size * bytes, by rank). Returns 0 on success. Called by
 * offpath_init only, on every rank, the same number of times. */
typedef int (*offpath_allgather_fn)(void* user, const void* mine, size_t bytes, void* all);

typedef struct offpath_init_params {
    size_t struct_size;
    offpath_threads_t threads;
    /* Bootstrap by callback. With allgather == NULL the launcher's PMIx server is asked instead
     * (mpirun, prterun, srun --mpi=pmix), and rank, size and local_rank are ignored. Have one context
     * at a time then. */
    offpath_allgather_fn allgather;
    void* allgather_user;
    uint32_t rank;       /* 0 .. size-1 */
    uint32_t size;       /* number of processes of the job */
    uint32_t local_rank; /* 0-based among the processes of this node */
    /* Directory in which the daemon's socket <hostname>.sock lies; NULL: OFFPATH_DIR, else
     * /tmp/offpath-<uid>. */
    const char* directory;
} offpath_init_params_t;

/* Attaches this process to the daemon of its node and learns how to reach every other rank's proxy.
 * Collective over the job: it succeeds on all ranks or on none. Errors: INVALID (parameters), UNAVAILABLE (no
 * daemon or bootstrap), ACCESS (another user's daemon), UNSUPPORTED, VERSION, PROTOCOL, MEMORY, SYSTEM. */
OFFPATH_API offpath_status_t offpath_init(const offpath_init_params_t* params, offpath_context_h* context);

/* Waits until nothing of this process is outstanding on its proxy, then detaches. Local. Teams, groups,
 * requests, regions and memory of the context end with it. */
OFFPATH_API offpath_status_t offpath_finalize(offpath_context_h context);

/* Ends this process's part in the launcher's PMIx server before offpath_finalize does. Local; does nothing
 * with an allgather callback. A program that a script may start twice under one launcher calls it on every
 * rank, lets the ranks meet (offpath_ibarrier) and then calls offpath_finalize: so no rank of the second run
 * asks the server for anything while it still waits for a rank of the first. Errors: INVALID. */
OFFPATH_API offpath_status_t offpath_context_leave_launcher(offpath_context_h context);

typedef enum offpath_back_end {
    OFFPATH_BACK_END_XGVMI = 1, /* the device posts RDMA with the host's address */
    OFFPATH_BACK_END_MAP = 2,   /* the memory is mapped by host and device */
    OFFPATH_BACK_END_CMA = 3,   /* the device reads and writes the process's memory by system call */
    OFFPATH_BACK_END_STAGED = 4 /* chunks through a buffer of the device, served by a thread of the process */
} offpath_back_end_t;

typedef enum offpath_progress {
    OFFPATH_PROGRESS_NONE = 0,  /* moves only inside offpath calls */
    OFFPATH_PROGRESS_AGENT = 1, /* a sleeping thread of the process wakes to serve it */
    OFFPATH_PROGRESS_DEVICE = 2 /* the device needs nothing from the process */
} offpath_progress_t;

typedef struct offpath_context_info {
    size_t struct_size;
    uint32_t rank, size;
    offpath_back_end_t default_back_end; /* for memory that offpath did not allocate */
    offpath_progress_t default_progress;
    char node[64];   /* the name that the daemon gives its node */
    uint32_t proxy;  /* index of the proxy on that device */
    char fabric[64]; /* what connects the proxies, for people */
    /* how completions come: "shared memory" (local attach), "messages" or "remote memory"; may change */
    char completions[24];
} offpath_context_info_t;

/* Facts about the attachment. Set struct_size before the call. Local, thread-safe. */
OFFPATH_API offpath_status_t offpath_context_query(offpath_context_h context, offpath_context_info_t* info);

/* While on, several threads may call at a time, as with OFFPATH_THREADS_MULTIPLE, and each call takes a
 * mutex. Called by the thread that the context belongs to, with no other call in progress. Changes nothing
 * with OFFPATH_THREADS_MULTIPLE. */
OFFPATH_API offpath_status_t offpath_context_share(offpath_context_h context, int on);

/* What this process has handed to its proxy since init. Local. */
typedef struct {
    size_t struct_size;
    uint64_t operations;      /* started */
    uint64_t direct;          /* of these, by the short way to another proxy (windows.h) */
    uint64_t completed;       /* done, without error */
    uint64_t failed;          /* done, with an error */
    uint64_t bytes;           /* payload bytes that the started operations send from this rank */
    uint64_t schedules_built; /* schedules sent to the proxy; the others were replays */
    uint64_t doorbells;       /* times that a sleeping proxy was woken */
    uint64_t agent_cpu_ns;    /* remote attach: CPU time of the thread that serves staged memory */
    uint64_t agent_bytes;     /* remote attach: what was staged between this process and its device */
} offpath_context_counters_t;
OFFPATH_API offpath_status_t offpath_context_counters(offpath_context_h context,
                                                      offpath_context_counters_t* counters);

#ifdef __cplusplus
}
#endif

#endif
