#!/usr/bin/env bash
# more_rights.sh BUILD: a daemon with more rights than its user starts. The loader takes GLIBC_TUNABLES away from
# such a program, so a daemon that waited for it would start itself for ever. Skipped where this test may not
# give such rights.
set -u
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/support/daemons.sh"
if ! setpriv --reuid=nobody --clear-groups test -x "$build" 2>/dev/null; then
    echo "skipped: other users cannot reach $build, or this test cannot become one"
    exit 77
fi
offpathd=$dir/offpathd
cp "$build/bin/offpathd" "$offpathd" && chmod 755 "$dir" "$offpathd"
if ! setcap cap_sys_ptrace+ep "$offpathd" 2>/dev/null || ! setpriv --reuid=nobody --clear-groups "$offpathd" --help >/dev/null 2>&1; then
    echo "skipped: no rights to give a program rights, or to become another user"
    exit 77
fi
mkdir "$dir/session" && chown nobody "$dir/session"
daemon_prefix=(setpriv --reuid=nobody --clear-groups)
start_daemon "$dir/session" "$dir/daemon.log"
end_daemon
