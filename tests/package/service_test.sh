#!/usr/bin/env bash
# service_test.sh OFFPATHD UNIT CONF: the systemd unit of a device as shipped is valid, exposes little, and starts the
# daemon without kernels. Exit code 77: no systemd-analyze here.
set -euo pipefail
offpathd=$1 unit=$2 conf=$3
command -v systemd-analyze >/dev/null || {
    echo "skipped: no systemd-analyze"
    exit 77
}
fail() {
    echo "service_test.sh: $*" >&2
    exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The unit with the path of this build.
sed "s|/usr/local/bin/offpathd|$offpathd|" "$unit" >"$dir/offpathd.service"
said=$(systemd-analyze verify --man=no "$dir/offpathd.service" 2>&1) || fail "verify: $said"
[ -z "$said" ] || fail "verify: $said"
# Tenths of systemd's figure for exposure, which goes up to 10.
said=$(systemd-analyze security --offline=true --threshold=40 "$dir/offpathd.service" 2>&1) || fail "exposed: $said"

# The command line that systemd makes of the unit and the settings, with a directory and a key of this test.
set -a
OFFPATHD_KERNELS=$(sed -n 's/^Environment=OFFPATHD_KERNELS=//p' "$unit")
OFFPATHD_OPTIONS=$(sed -n 's/^OFFPATHD_OPTIONS=//p' "$conf")
set +a
[ "$OFFPATHD_KERNELS" = --no-kernels ] || fail "the unit runs kernels: '$OFFPATHD_KERNELS'"
grep -q '^ExecStart=.* \$OFFPATHD_KERNELS \$OFFPATHD_OPTIONS$' "$unit" || fail "the unit does not use its settings"
OFFPATHD_OPTIONS=$(echo "$OFFPATHD_OPTIONS" | sed 's/--listen [^ ]*/--listen 127.0.0.1:0/; s/--cpus [^ ]*/--cpus all/')
(umask 077 && head -c 32 /dev/urandom >"$dir/key")
mkfifo "$dir/ready"
# shellcheck disable=SC2086 # the settings are words
"$offpathd" --dir "$dir/run" --key-file "$dir/key" $OFFPATHD_KERNELS $OFFPATHD_OPTIONS --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
daemon=$!
read -r -t 20 -n 1 ready <"$dir/ready" || ready=
kill -TERM "$daemon" 2>/dev/null || true
wait "$daemon" || fail "the daemon ends with $?: $(cat "$dir/log")"
[ "$ready" = 1 ] || fail "the daemon does not start: $(cat "$dir/log")"
echo "the unit is valid, and its daemon starts"
