/* The context: the attachment of a process to the device of its node, from offpath_init to offpath_finalize.
 * It owns its teams, groups, requests, windows, kernels and memory. A process normally has one context. */
#ifndef OFFPATH_CONTEXT_H
#define OFFPATH_CONTEXT_H

#include <offpath/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum offpath_threads OFFPATH_ENUM_TYPE {
    OFFPATH_THREADS_SINGLE = 0,
    OFFPATH_THREADS_MULTIPLE = 1
} offpath_threads_t;

/* Gathers `bytes` bytes at `mine` from every rank into `all` (size * bytes bytes, by rank). Returns 0 on
 * success. Only offpath_init calls it, equally often on every rank, with the same `bytes`. */
typedef int (*offpath_allgather_fn)(void* user, const void* mine, size_t bytes, void* all);

typedef struct offpath_init_params {
    size_t struct_size;
    offpath_threads_t threads;
    /* How the ranks find each other. NULL: through the launcher's PMIx server (mpirun, prterun,
     * srun --mpi=pmix). rank, size and local_rank are then ignored, and the process may have only one
     * context at a time. */
    offpath_allgather_fn allgather;
    void* allgather_user;
    uint32_t rank;       /* 0 .. size-1 */
    uint32_t size;       /* processes of the job, 1 .. 2^20 */
    uint32_t local_rank; /* 0-based among the processes of this node */
    /* Directory of the daemon's socket <hostname>.sock; NULL: OFFPATH_DIR, else /tmp/offpath-<uid>. */
    const char* directory;
} offpath_init_params_t;

/* Attaches this process to the daemon of its node, learns how to reach every other rank's proxy, and makes
 * the team of all ranks. Collective over the job: if one rank cannot attach, all ranks get its error. A rank
 * whose parameters are rejected at once leaves the others waiting. docs/api.md lists the environment
 * variables that it reads.
 *
 * Errors: INVALID (parameters, environment), UNAVAILABLE (no daemon, or no bootstrap), ACCESS (another
 * user's daemon, or a wrong key), UNSUPPORTED (the requested back end), VERSION, PROTOCOL, MEMORY, SYSTEM,
 * PEER_LOST (the daemon died meanwhile; then other ranks may have succeeded).
 *
 * Threads: one thread of the process. The call may start a thread, which blocks all signals. */
OFFPATH_API offpath_status_t offpath_init(const offpath_init_params_t* params, offpath_context_h* context);

/* Waits until every operation of this process is done, then detaches and frees the context and all that it
 * owns, except memory that offpath_mem_keep keeps. Local: it does not wait for other ranks, so finish common
 * work first. It waits forever for a receive that no message will match. Returns OFFPATH_OK, even if the
 * device is lost; INVALID: null. Threads: no other call on the context may be running or follow. */
OFFPATH_API offpath_status_t offpath_finalize(offpath_context_h context);

/* Disconnects this process from the launcher's PMIx server before offpath_finalize does so. Local; with an
 * allgather callback it does nothing. It is for programs that a script may start one after the other under
 * one launcher: every rank calls it, then completes a barrier (offpath_ibarrier), then calls
 * offpath_finalize. Otherwise the server may still wait for a rank of the first run when the second run
 * begins. Errors: INVALID (null). Threads: as offpath_finalize. */
OFFPATH_API offpath_status_t offpath_context_leave_launcher(offpath_context_h context);

/* How a device reaches memory of the process. */
typedef enum offpath_back_end OFFPATH_ENUM_TYPE {
    OFFPATH_BACK_END_XGVMI = 1, /* the device's network card, with the host's address */
    OFFPATH_BACK_END_MAP = 2,   /* host and device have mapped the same memory */
    OFFPATH_BACK_END_CMA = 3,   /* the proxy reads and writes the process's memory by system call */
    OFFPATH_BACK_END_STAGED = 4 /* a thread of the process copies chunks to and from the device */
} offpath_back_end_t;

/* What transfers need of the process. */
typedef enum offpath_progress OFFPATH_ENUM_TYPE {
    OFFPATH_PROGRESS_NONE = 0,  /* calls of this API; no back end is of this kind today */
    OFFPATH_PROGRESS_AGENT = 1, /* a sleeping thread of the process, which wakes to copy */
    OFFPATH_PROGRESS_DEVICE = 2 /* nothing */
} offpath_progress_t;

typedef struct offpath_context_info {
    size_t struct_size;
    uint32_t rank, size;
    offpath_back_end_t default_back_end; /* for memory that offpath did not allocate */
    offpath_progress_t default_progress;
    char node[64];   /* the name that the daemon gives its node */
    uint32_t proxy;  /* index of the proxy on that device */
    char fabric[64]; /* what connects the proxies, for people to read */
    /* How completions arrive: "shared memory" (local attach), "messages" or "remote memory". With remote
     * attach it may change after init. */
    char completions[24];
} offpath_context_info_t;

/* Gives facts about the attachment. Texts that are too long are cut. Local. Errors: INVALID. Any thread. */
OFFPATH_API offpath_status_t offpath_context_query(offpath_context_h context, offpath_context_info_t* info);

/* While `on` is not 0, several threads may call at a time, as with OFFPATH_THREADS_MULTIPLE, and each call
 * takes a mutex. It is for a layer that sometimes starts its own thread. No effect with
 * OFFPATH_THREADS_MULTIPLE. Errors: INVALID (null). Threads: the one to which the context belongs, with no
 * other call in progress. */
OFFPATH_API offpath_status_t offpath_context_share(offpath_context_h context, int on);

/* What this process has passed to its proxy since init. */
typedef struct {
    size_t struct_size;
    uint64_t operations;      /* started */
    uint64_t direct;          /* of these, by the short way to another proxy (windows.h) */
    uint64_t completed;       /* done, without error */
    uint64_t failed;          /* done, with an error */
    uint64_t bytes;           /* payload bytes that the started operations send from this rank */
    uint64_t schedules_built; /* schedules sent to the proxy; the other starts were replays */
    uint64_t doorbells;       /* times that a sleeping proxy was woken */
    uint64_t agent_cpu_ns;    /* remote attach: CPU time of the thread that serves staged memory */
    uint64_t agent_bytes;     /* remote attach: bytes staged between this process and its device */
    uint64_t own_bytes;       /* of blocks that stay within this rank: copied while it waited */
} offpath_context_counters_t;
/* `completed` and `failed` are current even if no thread has tested the requests. Local. Errors: INVALID.
 * Threads: as the context. */
OFFPATH_API offpath_status_t offpath_context_counters(offpath_context_h context,
                                                      offpath_context_counters_t* counters);

/* Payloads of more than 4 KiB that have come for this process from other proxies since init, by the copies
 * that proxies made of them on the way, in bytes. The network's own copies do not count. */
typedef struct {
    uint64_t direct; /* no proxy touched them */
    uint64_t once;
    uint64_t more;
} offpath_copies_t;
/* Asks the proxy, and waits for its answer. Errors: INVALID (null), PEER_LOST. Threads: as the context. */
OFFPATH_API offpath_status_t offpath_context_copies(offpath_context_h context, offpath_copies_t* copies);

#ifdef __cplusplus
}
#endif

#endif
