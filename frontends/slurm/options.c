#include "slurm/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_cores = 256 };

void offpath_step_options_init(offpath_step_options_t* options) {
    *options = (offpath_step_options_t){.on = false, .cores = 1, .mpi = OFFPATH_MPI_UNKNOWN, .dir = "/tmp"};
}

// Returns the value of `word` if it is `key=value`.
static const char* value_of(const char* word, const char* key) {
    const size_t length = strlen(key);
    return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool read_cores(const char* value, offpath_step_options_t* options) {
    char* end = NULL;
    const long cores = strtol(value, &end, 10);
    if (end == value || *end != '\0' || cores < 1 || cores > most_cores) return false;
    options->cores = (unsigned)cores;
    return true;
}

static bool read_mpi(const char* value, offpath_step_options_t* options) {
    if (strcmp(value, "openmpi") == 0)
        options->mpi = OFFPATH_MPI_OPENMPI;
    else if (strcmp(value, "mpich") == 0)
        options->mpi = OFFPATH_MPI_MPICH;
    else if (strcmp(value, "none") == 0)
        options->mpi = OFFPATH_MPI_NONE;
    else
        return false;
    return true;
}

static bool read_word(const char* word, offpath_step_options_t* options) {
    const char* value = NULL;
    if (strcmp(word, "on") == 0 || strcmp(word, "off") == 0) {
        options->on = strcmp(word, "on") == 0;
        return true;
    }
    if ((value = value_of(word, "cores")) != NULL) return read_cores(value, options);
    if ((value = value_of(word, "mpi")) != NULL) return read_mpi(value, options);
    return false;
}

bool offpath_step_options_parse(const char* text, offpath_step_options_t* options, char* problem,
                                size_t problem_bytes) {
    offpath_step_options_t read = *options;
    char* rest = NULL;
    char* const words = strdup(text);
    bool good = words != NULL;
    read.on = true;
    for (char* word = good ? strtok_r(words, ",", &rest) : NULL; word != NULL && good;
         word = strtok_r(NULL, ",", &rest))
        if (!(good = read_word(word, &read)))
            snprintf(
                problem, problem_bytes,
                "--offpath: %.100s is not known: use on, off, cores=N or mpi=openmpi|mpich|none [OFP-0604]",
                word);
    free(words);
    if (good) *options = read;
    return good;
}

bool offpath_step_options_argument(const char* word, offpath_step_options_t* options, char* problem,
                                   size_t problem_bytes) {
    const char* const dir = value_of(word, "dir");
    if (dir == NULL ? read_word(word, options) : dir[0] == '/' && strlen(dir) < sizeof options->dir) {
        if (dir != NULL) strcpy(options->dir, dir);
        return true;
    }
    snprintf(problem, problem_bytes, "the line of offpath in plugstack.conf: %.100s is not known [OFP-0604]",
             word);
    return false;
}
