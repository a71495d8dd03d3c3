#!/usr/bin/env bash
# test-rdma.sh [conformance]: the tests that need an RDMA device. Where this machine has none, they run in a guest that has one made of
# software (soft-RoCE). `conformance`: instead, what every transport promises, on an idle machine: UCX 1.13 ends the process if an endpoint is
# closed while it connects, which load makes likely. Exits with 77 and a reason where a guest cannot run.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh rdma
[ -f build-rdma/build.ninja ] || cmake --preset rdma -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
scripts/build.py build-rdma rdma-tests
# UCX 1.13 of Debian 12 on soft-RoCE. Without its hooks for memory, UCX registers imported memory again for each transfer.
settings="UCX_TLS=rc_verbs,ud_verbs UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_RC_TIMEOUT=500ms UCX_RC_RETRY_COUNT=5
    UCX_MEM_MMAP_HOOK_MODE=bistro UCX_HANDLE_ERRORS=none UCX_WARN_UNUSED_ENV_VARS=n"
run="env ${settings//$'\n'/ }"
if [ "${1:-}" = conformance ]; then
    tests="$run build-rdma/bin/test-rdma-conformance --gtest_brief=1"
else
    tests="failed=0
    for test in build-rdma/bin/test-rdma build-rdma/tests/rdma/bin/test-rdma-hosts; do $run \$test --gtest_brief=1 || failed=1; done
    $run tests/rdma/no_copies.sh build-rdma || failed=1
    exit \$failed"
fi
if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    bash -c "$tests"
else
    tests/rdma/boot_files.sh build-rdma/guest
    tests/rdma/guest.py build-rdma/guest "$PWD" 900 "$tests"
fi
