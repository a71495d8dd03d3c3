/* What the examples share: stop on an error, and say which call it was. */
#ifndef OFFPATH_EXAMPLES_EXAMPLE_H
#define OFFPATH_EXAMPLES_EXAMPLE_H

#include <offpath/offpath.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        offpath_status_t status_ = (call);                                                                 \
        if (status_ != OFFPATH_OK) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, offpath_status_string(status_)); \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

/* Attaches under mpirun (PMIx). A machine without a daemon is no failure of the example: exit code 77. */
static inline offpath_context_h example_init(void) {
    offpath_init_params_t params = {.struct_size = sizeof params, .threads = OFFPATH_THREADS_SINGLE};
    offpath_context_h context = NULL;
    offpath_status_t status = offpath_init(&params, &context);
    if (status == OFFPATH_ERR_UNAVAILABLE) {
        fprintf(stderr, "no offpathd here: start `offpathd --dir DIR` and set OFFPATH_DIR=DIR\n");
        exit(77);
    }
    CHECK(status);
    return context;
}

#endif
