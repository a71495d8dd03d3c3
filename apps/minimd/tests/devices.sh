# devices.sh: devices of the runtime for a test. Source it after `build=BUILD offpathd=PROGRAM`; it sources daemons.sh.
#   device NAME   starts a daemon in the directory $work/NAME, which local clients find there, and remote ones at $port with the key $work/key
tests=$(cd "$(dirname "$0")/../../../tests" && pwd)
. "$tests/support/daemons.sh"
work=$dir
export OMP_WAIT_POLICY=passive

device() {
    listen_options
    rm -f "$work/$1"/*.port
    # Kernels of remote hosts may not run as a user who can read the key's file.
    start_daemon "$work/$1" "$work/$1.log" --listen 127.0.0.1:0 --key-fd 9 --allow-kernels / --allow-images 9< <(cat "$work/key")
    port=$(cat "$work/$1"/*.port)
}
