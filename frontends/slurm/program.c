#define _GNU_SOURCE
#include "slurm/program.h"

#include <stdlib.h>
#include <string.h>

enum { patience_ms = 10000 };

// Prints `openmpi`, `mpich`, or `none` for programs that use offpath themselves. Its arguments are the folder
// of the front ends and a command line.
static const char script[] =
    "front_ends=$1; shift\n"
    "mpi_of() { ldd \"$@\" 2>/dev/null | sed -n "
    "'s/^[[:space:]]*\\(lib\\(mpi\\|offpath\\)[-a-z]*\\.so[.0-9]*\\) .*/\\1/p'; }\n"
    "openmpi=$(mpi_of \"$front_ends/liboffpath-mpi.so\" | grep -v offpath)\n"
    "mpich=$(mpi_of \"$front_ends/liboffpath-mpi-mpich.so\" | grep -v offpath)\n"
    "for word; do\n"
    "    case $word in -* | *=*) continue ;; esac\n"
    "    file=$(command -v \"$word\") && [ -f \"$file\" ] || continue\n"
    "    python=\n"
    "    case ${file##*/} in python*) python=$file ;; esac\n"
    "    case $(head -c 2 \"$file\" | tr -d '\\0') in\n"
    "        '#!') case $(head -n 1 \"$file\") in *python*) python=python3 ;; esac ;;\n"
    "    esac\n"
    "    if [ -n \"$python\" ]; then\n"
    "        needs=$(mpi_of $(\"$python\" -c 'import glob, importlib.util as u; s = u.find_spec(\"mpi4py\")\n"
    "print(*glob.glob(s.submodule_search_locations[0] + \"/MPI*.so\") if s else [])'))\n"
    "    else\n"
    "        needs=$(mpi_of \"$file\")\n"
    "    fi\n"
    "    for need in $needs; do\n"
    "        [ \"$need\" != \"$openmpi\" ] || { echo openmpi; exit; }\n"
    "        [ \"$need\" != \"$mpich\" ] || { echo mpich; exit; }\n"
    "    done\n"
    "    case $needs in *liboffpath*) echo none; exit ;; esac\n"
    "done\n";

const char* offpath_front_end(offpath_mpi_t mpi) {
    if (mpi == OFFPATH_MPI_OPENMPI) return "liboffpath-mpi.so";
    return mpi == OFFPATH_MPI_MPICH ? "liboffpath-mpi-mpich.so" : NULL;
}

offpath_mpi_t offpath_mpi_of(const offpath_user_t* user, const char* libraries, int words, char* const* word,
                             char* const* environment, pid_t task) {
    const char* const before[] = {"/bin/sh", "-c", script, "sh", libraries};
    enum { before_count = sizeof before / sizeof before[0] };
    char line[16];
    char** const command = calloc(before_count + (size_t)words + 1, sizeof *command);
    if (command == NULL) return OFFPATH_MPI_UNKNOWN;
    memcpy(command, before, sizeof before);
    memcpy(command + before_count, word, (size_t)words * sizeof *word);
    offpath_process_ask(user, command, environment, task, patience_ms, line, sizeof line);
    free(command);
    if (strcmp(line, "openmpi") == 0) return OFFPATH_MPI_OPENMPI;
    if (strcmp(line, "none") == 0) return OFFPATH_MPI_NONE;
    return strcmp(line, "mpich") == 0 ? OFFPATH_MPI_MPICH : OFFPATH_MPI_UNKNOWN;
}
