"""The emulated network: a bridge (the switch), one veth pair per node, a token bucket at both ends of every pair.

Egress of the node's end limits what the node sends, egress of the switch's end what it receives: full duplex links. The
switch's own port, where mpirun sits, is not limited. The functions here are pure: they give command lines.
"""

from dataclasses import dataclass

from offpath.errors import OffpathError
from offpath.units import format_rate

INTERFACE = "net0"  # of every node, and of the switch itself: one name fits UCX_NET_DEVICES and btl_tcp_if_include
MTU = 9000  # jumbo frames, as in clusters: headers take 0.8 % of the link and not 4 %
SEGMENT_BYTES = 128 * 1024  # largest that TCP hands to a link: half the timers of the usual 64 KiB, 1 ms of a 1 gbit link
MAX_NODES = 250
_QUEUE_BYTES = 64 * 2**20  # no loss: TCP's own window bounds the queue, as credits do in an HPC fabric


@dataclass(frozen=True)
class Link:
    rate: int | None  # bits per second each way; None: not limited
    latency: float = 0.0  # seconds added one way

    def __str__(self) -> str:
        extra = f" with {self.latency * 1e6:g} us added" if self.latency else ""
        return format_rate(self.rate) + extra


def node_name(index: int) -> str:
    return f"node{index}"


def node_address(index: int) -> str:
    return f"10.77.0.{index + 1}"


HEAD_ADDRESS = "10.77.255.254"


def hosts_file(nodes: int) -> str:
    lines = ["127.0.0.1 localhost", f"{HEAD_ADDRESS} head"]
    return "\n".join(lines + [f"{node_address(i)} {node_name(i)}" for i in range(nodes)]) + "\n"


def switch_commands() -> list[str]:
    """For `ip -batch` in the lab's own network namespace."""
    return [
        "link set lo up",
        f"link add {INTERFACE} mtu {MTU} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        f"addr add {HEAD_ADDRESS}/16 dev {INTERFACE}",
        f"link set {INTERFACE} up",
    ]


def port(index: int) -> str:
    return f"port{index}"


def plug(index: int) -> str:
    """The node's end of its cable before it is in the node."""
    return f"plug{index}"


def cable_commands(index: int) -> list[str]:
    """For `ip -batch`: a cable, both ends still at the switch."""
    return [f"link add {port(index)} mtu {MTU} type veth peer name {plug(index)} mtu {MTU}"]


def attach_commands(index: int, pid: int) -> list[str]:
    """For `ip -batch`: connects the node whose namespace process `pid` holds."""
    return [
        f"link set {plug(index)} netns {pid} name {INTERFACE}",
        f"link set {port(index)} master {INTERFACE}",
        f"link set {port(index)} up",
    ]


def node_commands(index: int) -> list[str]:
    """For `ip -batch` inside the node."""
    return ["link set lo up", f"addr add {node_address(index)}/16 dev {INTERFACE}", f"link set {INTERFACE} up"]


def burst_bytes(rate: int) -> int:
    """Two milliseconds of the rate, but never less than what one of the largest segments takes, headers included."""
    return max(2 * SEGMENT_BYTES, rate // 8 // 500)


def shaping_commands(device: str, link: Link) -> list[list[str]]:
    """`tc` command lines that shape the egress of `device`."""
    commands = []
    if link.rate is not None:
        commands.append(
            ["tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "tbf",
             "rate", f"{link.rate}bit", "burst", str(burst_bytes(link.rate)), "limit", str(_QUEUE_BYTES)]
        )
    if link.latency:
        parent = ["parent", "1:1"] if link.rate is not None else ["root"]
        # Half of it at either end of the cable.
        commands.append(["tc", "qdisc", "add", "dev", device, *parent, "netem", "delay", f"{link.latency * 5e5:.1f}us", "limit", "100000"])
    return commands


def check_nodes(nodes: int) -> None:
    if not 1 <= nodes <= MAX_NODES:
        raise OffpathError(f"--nodes {nodes} is out of range", f"use 1 to {MAX_NODES}")
