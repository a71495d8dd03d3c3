#!/usr/bin/env bash
# exports_test.sh BUILD: libraries show the names that their public headers declare, and no other.
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
failed=0

# shown LIBRARY: the names that programs can link.
shown() { nm -D --defined-only "$build/lib/$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }
# declared HEADERS...: all words of the headers. Their macros declare functions too.
declared() { cc -E -P -I"$root/include" -I"$build/include" "$@" | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u; }
# only LIBRARY NAMES: fails if the library shows others.
only() {
    local others
    others=$(comm -23 <(shown "$1") "$2")
    if [ -n "$others" ]; then
        printf '%s shows names that no public header declares:\n%s\n' "$1" "$others" >&2
        failed=1
    fi
}

api=$(mktemp)
trap 'rm -f "$api"' EXIT
# Besides the C API: what offpath's own plug-ins look up.
{ declared "$root/include/offpath/offpath.h" "$root/include/offpath/loss.h"; printf '%s\n' offpath_find_shareable offpath_mpi_serve_regions; } | sort -u >"$api"
nm -D --defined-only "$build/lib/liboffpath.so" | grep ' offpath_find_shareable@@OFFPATH_PRIVATE$' >/dev/null || {
    echo "liboffpath.so shows offpath_find_shareable like a public name" >&2
    failed=1
}
only liboffpath.so "$api"
only liboffpath-shmem.so <(declared "$build"/include/shmem.h "$build/include/pshmem.h" "$root/include/shmemx.h")
only liboffpath-link.so <(shown liboffpath-link.so | grep '^offpath_link_')
# The front ends have calls of MPI, in C and in Fortran's spellings, and the C API for programs that use both. The runtime of gcc's and
# clang's AddressSanitizer looks its options up. The front ends that run beside a device watch the end of memory.
mpi='^(__asan_default_options|P?MPIX?_[A-Za-z0-9_]*|p?mpix?_[a-z0-9_]*|ompix?_[a-z0-9_]*_f|MPII_Errhandler_set_cxx)$'
for library in "$build"/lib/liboffpath-{mpi,mpi-mpich,profile,profile-mpich,run-time}.so; do
    [ -e "$library" ] || continue
    library=$(basename "$library")
    memory=()
    case $library in *-mpi.so | *-mpi-mpich.so) memory=(free realloc reallocarray) ;; esac
    only "$library" <({ shown "$library" | grep -E "$mpi"; cat "$api"; printf '%s\n' "${memory[@]}"; } | sort -u)
done
# This header includes MPI's, so only its own names count.
if [ -e "$build/lib/liboffpath-ranks.so" ]; then
    only liboffpath-ranks.so <(grep -oE 'offpath_[a-z_]*' "$root/include/offpath/device_ranks.h" | sort -u)
fi
exit $failed
