"""A node of the lab: a process that only holds the node's namespaces, and another one for the device if that
has namespaces of its own."""

import os
import subprocess
from dataclasses import dataclass, field

from offpath import system_tools
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import network, segments
from offpath.lab.network import INTERFACE, PCIE_INTERFACE, Link
from offpath.lab.placement import NodePlacement

_HOLD = """
set -e
hostname "$1"
mount -t sysfs -o ro sysfs /sys
mount --bind "$2" /etc/hosts
for f in all default; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done 2>/dev/null || true
# No node forwards packets for others, so that all traffic between nodes uses the emulated links.
echo 0 >/proc/sys/net/ipv4/ip_forward 2>/dev/null || true
echo 0 >/proc/sys/net/ipv4/tcp_slow_start_after_idle 2>/dev/null || true
echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save 2>/dev/null || true
# A fixed choice, not the machine's default: BBR, for one, mistakes the bursts of a shaped link for its rate
# and paces by it.
echo cubic >/proc/sys/net/ipv4/tcp_congestion_control 2>/dev/null ||
    echo reno >/proc/sys/net/ipv4/tcp_congestion_control 2>/dev/null || true
echo ready
exec sleep infinity
"""


@dataclass
class Node:
    """One emulated machine: a node, or its device (`dpu` of a node). Without namespaces (`holder` is None) it
    is this machine itself."""

    name: str
    placement: NodePlacement
    holder: subprocess.Popen | None = field(default=None, repr=False)
    index: int = 0
    dpu: "Node | None" = None  # set if the device has an operating system of its own

    @property
    def pid(self) -> int:
        """The process that holds the namespaces."""
        if self.holder is None:
            raise ValueError(f"{self.name} has no namespaces of its own")
        return self.holder.pid

    @property
    def device(self) -> "Node":
        """The machine of the device. Raises ValueError if the device has none."""
        if self.dpu is None:
            raise ValueError(f"the device of {self.name} has no machine of its own")
        return self.dpu

    def command(self, command: list[str], cpus: tuple[int, ...] = ()) -> list[str]:
        """Returns the command line that runs `command` on this node, on the given cores."""
        pinned = ["taskset", "-c", ",".join(map(str, cpus)), *command] if cpus else command
        return pinned if self.holder is None else [*self.enter(), *pinned]

    def enter(self) -> list[str]:
        # The directory is given by path because the node has mounts of its own.
        return ["nsenter", "-t", str(self.pid), "-n", "-u", "-i", "-m", f"--wdns={os.getcwd()}"]

    def holders(self) -> list[subprocess.Popen]:
        return [
            machine.holder
            for machine in (self, self.dpu)
            if machine is not None and machine.holder is not None
        ]


def make_node(
    index: int, placement: NodePlacement, hosts: str, link: Link, pcie: Link | None, addresses: list[str]
) -> Node:
    """Makes the namespaces of node `index`, connects them to the switch and shapes the links. The device gets
    namespaces only with `pcie`.

    `addresses` are those of all machines on the network.
    """
    node = Node(network.node_name(index), placement, _hold(network.node_name(index), hosts), index)
    try:
        if pcie is None:
            _connect_to_switch(node, link, addresses)
        else:
            name = network.device_name(index)
            node.dpu = Node(name, placement, _hold(name, hosts), index)
            _connect_by_card(node, link, pcie, addresses)
    except BaseException:
        for holder in node.holders():
            holder.kill()
        raise
    return node


def _hold(name: str, hosts: str) -> subprocess.Popen:
    holder = subprocess.Popen(
        [
            "unshare",
            "--net",
            "--uts",
            "--ipc",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            _HOLD,
            "hold",
            name,
            hosts,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert holder.stdout is not None and holder.stderr is not None
    if holder.stdout.readline() != "ready\n":
        holder.kill()
        raise OffpathError(Code.LAB_FAILED, f"{name} cannot be made: {holder.stderr.read().strip()}")
    return holder


def _connect_to_switch(node: Node, link: Link, addresses: list[str]) -> None:
    port, plug = network.port(node.index), network.plug(node.index)
    _pair(port, plug, link)
    _plug_in(node, plug, INTERFACE, network.node_address(node.index), 16, link, addresses)
    _join(INTERFACE, port, link)


def _connect_by_card(node: Node, link: Link, pcie: Link, addresses: list[str]) -> None:
    index, device = node.index, node.device
    run_ip(network.card_commands(index))
    port, uplink = network.port(index), network.uplink(index)
    _pair(port, uplink, link)
    _join(INTERFACE, port, link)
    _join(network.card(index), uplink, link)
    for machine, of_device, address, crossed in (
        (node, False, network.node_address(index), pcie),
        (device, True, network.device_address(index), Link(None)),
    ):
        socket = network.socket(index, of_device)
        _pair(socket, network.plug(index), link)
        _plug_in(machine, network.plug(index), INTERFACE, address, 16, crossed, addresses)
        _join(network.card(index), socket, crossed)
    ends = [network.pcie_plug(index, of_device) for of_device in (False, True)]
    _pair(ends[0], ends[1], pcie)
    both = [network.pcie_address(index, of_device) for of_device in (False, True)]
    for machine, of_device in ((node, False), (device, True)):
        _plug_in(machine, ends[of_device], PCIE_INTERFACE, both[of_device], 30, pcie, both)


def _pair(end: str, other: str, link: Link) -> None:
    run_ip(network.pair_commands(end, other))
    for each in (end, other):
        segments.set_largest(each, network.segment_bytes(link))


def _join(bridge: str, end: str, link: Link) -> None:
    run_ip(network.attach_commands(bridge, end))
    for command in network.shaping_commands(end, link):
        run_tool(command)


def _plug_in(
    machine: Node, plug: str, interface: str, address: str, prefix: int, link: Link, addresses: list[str]
) -> None:
    run_ip(network.move_commands(plug, machine.pid, interface, address))
    run_ip(
        network.address_commands(interface, address, prefix)
        + network.neighbour_commands(interface, address, addresses),
        machine.enter(),
    )
    for command in network.shaping_commands(interface, link):
        run_tool([*machine.enter(), *command])


def run_ip(lines: list[str], prefix: list[str] | None = None) -> None:
    run_tool([*(prefix or []), "ip", "-batch", "-"], "\n".join(lines) + "\n")


def run_tool(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=system_tools.environment())
    if done.returncode != 0:
        reason = done.stderr.strip() or f"code {done.returncode}"
        if "netem" in command:
            raise OffpathError(
                Code.NO_LAB,
                f"latency cannot be added: this kernel has no netem queue ({reason})",
                "leave --latency out",
            )
        raise OffpathError(Code.LAB_FAILED, f"`{' '.join(command)}` failed: {reason}")
    return done.stdout
