# second_machine.sh: gives a shell test a second machine: a network namespace with a host name of its own, joined to the
# test's namespace by a veth pair. Both ends of the pair are called v0. Source it first, then call:
#   enter_namespaces "$@"     starts the test again in namespaces of its own, where it returns. Without the right to make them, the
#                             test ends with exit code 77
#   second_machine NETWORK    makes the machine. The test has the address NETWORK.1, the machine NETWORK.2. The process $second
#                             lives there until the test ends; the array $on_second is a command that starts another command there
# It prints why a test is skipped, and ends the test if the machine does not come up.
second= on_second=()

enter_namespaces() {
    if [ -n "${OFFPATH_TEST_IN_NAMESPACES:-}" ]; then
        mount -t sysfs sysfs /sys # UCX finds network devices there
        hostname node-one
        return
    fi
    unshare --user --map-root-user --net --uts --mount mount -t sysfs sysfs /sys 2>/dev/null && command -v ip >/dev/null || {
        echo "skipped: no user and network namespaces, or no ip command"
        exit 77
    }
    OFFPATH_TEST_IN_NAMESPACES=1 exec unshare --user --map-root-user --net --uts --mount --pid --fork --kill-child --mount-proc "$0" "$@"
}

second_machine() {
    local network=$1 up said
    exec {up}< <(exec unshare --net --uts --mount sh -c "mount -t sysfs sysfs /sys; hostname node-two; echo up; exec sleep 200")
    second=$!
    read -r -t 20 said <&"$up" || {
        echo "$(basename "$0"): the second machine does not come up" >&2
        exit 1
    }
    on_second=(nsenter -t "$second" -n -u -m)
    ip link add v0 type veth peer name v0 netns "$second"
    for _ in $(seq 100); do
        ip link set v0 up && "${on_second[@]}" ip link set v0 up && break
    done
    ip addr add "$network.1/24" dev v0
    "${on_second[@]}" ip addr add "$network.2/24" dev v0
    for _ in $(seq 1500); do
        [ "$(cat /sys/class/net/v0/operstate) $("${on_second[@]}" cat /sys/class/net/v0/operstate)" = "up up" ] && return
        sleep 0.02
    done
    echo "$(basename "$0"): the link to the second machine does not come up" >&2
    exit 1
}
