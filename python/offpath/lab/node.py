"""A node of the lab: a process that does nothing but hold the node's namespaces."""

import os
import subprocess
from dataclasses import dataclass, field

from offpath.errors import OffpathError
from offpath.lab import network, segments
from offpath.lab.placement import NodePlacement

_HOLD = """
set -e
hostname "$1"
mount -t sysfs -o ro sysfs /sys
mount --bind "$2" /etc/hosts
for f in all default; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done 2>/dev/null || true
echo 0 >/proc/sys/net/ipv4/tcp_slow_start_after_idle 2>/dev/null || true
echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save 2>/dev/null || true
# Not what the machine happens to use: BBR, for one, takes the bursts of a shaped link for its rate and paces by that.
echo cubic >/proc/sys/net/ipv4/tcp_congestion_control 2>/dev/null || echo reno >/proc/sys/net/ipv4/tcp_congestion_control 2>/dev/null || true
echo ready
exec sleep infinity
"""


@dataclass
class Node:
    """One emulated node. Without namespaces (`holder` is None) it is this machine itself."""

    name: str
    placement: NodePlacement
    holder: subprocess.Popen | None = field(default=None, repr=False)

    def command(self, command: list[str], cpus: tuple[int, ...] = ()) -> list[str]:
        """`command`, to be run on this node and on these of its cores."""
        pinned = ["taskset", "-c", ",".join(map(str, cpus)), *command] if cpus else command
        return pinned if self.holder is None else [*self.enter(), *pinned]

    def enter(self) -> list[str]:
        # The directory is given by path because the node has mounts of its own.
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-u", "-i", "-m", f"--wdns={os.getcwd()}"]


def make_node(index: int, placement: NodePlacement, hosts: str, link: network.Link) -> Node:
    """Makes the namespaces of node `index`, connects them to the switch and shapes the link."""
    name = network.node_name(index)
    holder = subprocess.Popen(
        ["unshare", "--net", "--uts", "--ipc", "--mount", "--propagation", "private", "sh", "-c", _HOLD, "hold", name, hosts],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    if holder.stdout.readline() != "ready\n":
        holder.kill()
        raise OffpathError(f"{name} cannot be made: {holder.stderr.read().strip()}")
    node = Node(name, placement, holder)
    run_ip(network.cable_commands(index))
    for end in (network.port(index), network.plug(index)):
        segments.set_largest(end, network.SEGMENT_BYTES)
    run_ip(network.attach_commands(index, holder.pid))
    run_ip(network.node_commands(index), node.enter())
    for command in network.shaping_commands(network.port(index), link):
        run_tool(command)
    for command in network.shaping_commands(network.INTERFACE, link):
        run_tool([*node.enter(), *command])
    return node


def run_ip(lines: list[str], prefix: list[str] | None = None) -> None:
    run_tool([*(prefix or []), "ip", "-batch", "-"], "\n".join(lines) + "\n")


def run_tool(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        reason = done.stderr.strip() or f"code {done.returncode}"
        if "netem" in command:
            raise OffpathError(f"latency cannot be added: this kernel has no netem queue ({reason})", "leave --latency out")
        raise OffpathError(f"`{' '.join(command)}` failed: {reason}")
    return done.stdout
