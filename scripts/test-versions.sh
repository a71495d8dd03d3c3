#!/usr/bin/env bash
# Tests that this version and older ones work together or say why not (tests/versions/meet.sh). Each older one
# is a tag or commit of this repository. Its sources go to build-versions/COMMIT, and what the test needs of
# it is built there. Without REFS the last tag is taken. Exits with non-zero if a meeting goes wrong.
# usage: scripts/test-versions.sh [REFS...]
set -euo pipefail
cd "$(dirname "$0")/.."
refs=("$@")
if [ ${#refs[@]} -eq 0 ]; then
    tag=$(git describe --tags --abbrev=0 2>/dev/null || true)
    if [ -z "$tag" ]; then
        echo "versions: skipped: no release is tagged; name a commit: make test-versions REFS=COMMIT"
        exit 0
    fi
    refs=("$tag")
fi
wanted=(bin/offpathd bin/offpath-bench-mpi bin/offpath-sim lib/liboffpath-mpi.so lib/liboffpath-shmem.so lib/liboffpath-profile.so
    bin/shmem_collectives_test bin/shmem_atomics_test)
for ref in "${refs[@]}"; do
    commit=$(git rev-parse --short --quiet --verify "$ref^{commit}") || {
        echo "versions: '$ref' is no tag or commit of this repository" >&2
        exit 2
    }
    older=build-versions/$commit
    if [ ! -d "$older" ]; then
        mkdir -p "$older.new"
        git archive "$commit" | tar -x -C "$older.new"
        ln -sfn "$PWD/.venv" "$older.new/.venv"
        mv "$older.new" "$older"
    fi
    [ -f "$older/build/build.ninja" ] || (cd "$older" && cmake --preset release -DCMAKE_MESSAGE_LOG_LEVEL=WARNING)
    cmake --build "$older/build" -j "${JOBS:-$(nproc)}" --target "${wanted[@]}" -- --quiet
    echo "versions: this one and $ref"
    tests/versions/meet.sh "$PWD/build" "$PWD/$older/build"
done
