#!/usr/bin/env bash
# coverage.sh: builds the tree in build-coverage so that programs count the lines they reach, runs the tests of
# `make test`, and writes docs/coverage.md. Exits with 1 if a test failed, with the page written. Needs gcovr.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=build-coverage
[ -f $tree/build.ninja ] || cmake --preset coverage -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
scripts/build.py $tree one-mpi
find $tree -name '*.gcda' -delete
result=0
(cd tests && OFFPATH_BUILD=$PWD/../$tree ../.venv/bin/python -m suite $tree) || result=1
gcovr --root . --object-directory $tree --filter 'src/' --filter 'frontends/' --filter 'include/' --gcov-ignore-parse-errors \
    --exclude-unreachable-branches -j "$(nproc)" --json-summary $tree/coverage.json >$tree/gcovr.log 2>&1 || {
    tail -n 20 $tree/gcovr.log >&2
    exit 1
}
.venv/bin/python scripts/coverage_page.py $tree/coverage.json docs/coverage.md
exit $result
