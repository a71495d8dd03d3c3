"""The emulated network: a bridge (the switch), one veth pair (a cable) for each node, and a token bucket at
both ends of every pair.

The bucket at the node's end limits what the node sends, and the one at the switch's end what it receives. So
links are full duplex. The switch's own port, which mpirun uses, is not limited.

A node whose device has an operating system of its own has a card: a bridge between host and device. The cable
is its uplink, which host and device share, as in a SmartNIC's separated-host mode. What the host sends to its
card, and gets from it, crosses the emulated PCIe and is limited to its rate. The host-device link beside it
is a veth pair of its own with the same limit.

The functions here are pure: they return command lines.
"""

from dataclasses import dataclass

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.units import format_rate, format_size

# The interface of every node, every device and the switch itself. A single name suits UCX_NET_DEVICES and
# btl_tcp_if_include.
INTERFACE = "v0"
PCIE_INTERFACE = "p0"  # both ends of the host-device link
DEVICE_PORT = 7471  # the TCP port on which a device listens for its hosts
MTU = 9000  # jumbo frames, as in clusters: headers take 0.8 % of the link and not 4 %
_MAX_SEGMENT_BYTES = 128 * 1024  # of TCP segments on a link: half the timers of the usual 64 KiB
_MIN_SEGMENT_BYTES = 16 * 1024
MAX_NODES = 250
_QUEUE_BYTES = 64 * 2**20  # no loss: TCP's own window bounds the queue, as credits do in an HPC fabric


@dataclass(frozen=True)
class Link:
    rate: int | None  # bits per second each way; None: not limited
    latency: float = 0.0  # seconds added one way
    burst: int | None = None  # bytes that pass at once after a pause; None: as many as suit the rate

    def __str__(self) -> str:
        return format_rate(self.rate) + self._added()

    def describe(self) -> str:
        """Describes several links like this one, as a part of a sentence."""
        return (f"links of {format_rate(self.rate)}" if self.rate else "unlimited links") + self._added()

    def _added(self) -> str:
        burst = f" with bursts of {format_size(self.burst)}" if self.burst else ""
        return burst + (f" with {self.latency * 1e6:g} us added" if self.latency else "")


def node_name(index: int) -> str:
    return f"node{index}"


def node_address(index: int) -> str:
    return f"10.77.0.{index + 1}"


def device_name(index: int) -> str:
    return f"{node_name(index)}-dpu"


def device_address(index: int) -> str:
    """The address of the device of node `index` on the network."""
    return f"10.77.1.{index + 1}"


def pcie_address(index: int, of_device: bool) -> str:
    """The address of the host or of the device on the host-device link."""
    return f"10.78.{index}.{2 if of_device else 1}"


HEAD_ADDRESS = "10.77.255.254"


def hardware_address(address: str) -> str:
    """The hardware address of the interface with this IPv4 address. The lab chooses it, so that it can tell
    every machine beforehand."""
    return "02:4f:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def hosts_file(nodes: int, with_devices: bool = False) -> str:
    lines = ["127.0.0.1 localhost", f"{HEAD_ADDRESS} head"]
    lines += [f"{node_address(i)} {node_name(i)}" for i in range(nodes)]
    if with_devices:
        lines += [f"{device_address(i)} {device_name(i)}" for i in range(nodes)]
    return "\n".join(lines) + "\n"


def devices_file(nodes: int) -> str:
    """The text of a file for OFFPATH_DEVICES: the device of each node, by its address on the
    host-device link."""
    return "".join(f"{node_name(i)} {pcie_address(i, of_device=True)}:{DEVICE_PORT}\n" for i in range(nodes))


def switch_commands() -> list[str]:
    """Commands for `ip -batch` in the lab's own network namespace."""
    return [
        "link set lo up",
        (
            f"link add {INTERFACE} address {hardware_address(HEAD_ADDRESS)} mtu {MTU} type bridge stp_state 0"
            " forward_delay 0 mcast_snooping 0"
        ),
        f"addr add {HEAD_ADDRESS}/16 dev {INTERFACE}",
        f"link set {INTERFACE} up",
    ]


def port(index: int) -> str:
    return f"port{index}"


def plug(index: int) -> str:
    """The name of the node's end of its cable before that end is in the node."""
    return f"plug{index}"


def uplink(index: int) -> str:
    """The name of the card's end of the cable, if there is a card."""
    return f"uplink{index}"


def card(index: int) -> str:
    return f"card{index}"


def socket(index: int, of_device: bool) -> str:
    """The name of the card's end of its connection to the host or to the device."""
    return f"{'dpu' if of_device else 'host'}{index}"


def pcie_plug(index: int, of_device: bool) -> str:
    """The name of an end of the host-device link before that end is in its namespace."""
    return f"p{'d' if of_device else 'h'}{index}"


def pair_commands(end: str, other: str) -> list[str]:
    """Commands for `ip -batch` that make a veth pair, with both ends still at the switch."""
    return [f"link add {end} mtu {MTU} type veth peer name {other} mtu {MTU}"]


def attach_commands(bridge: str, end: str) -> list[str]:
    """Commands for `ip -batch` that put an end of a pair into a bridge."""
    return [f"link set {end} master {bridge}", f"link set {end} up"]


def card_commands(index: int) -> list[str]:
    """Commands for `ip -batch` that make the card's bridge. The bridge is in the switch's namespace. It must
    not answer for the switch, because that would bypass the cable."""
    return [
        f"link add {card(index)} mtu {MTU} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        f"link set {card(index)} arp off up",
    ]


def move_commands(end: str, pid: int, name: str, address: str) -> list[str]:
    """Commands for `ip -batch` that move an end of a pair into the namespace that process `pid` holds. The
    end will get the IPv4 address `address`."""
    return [f"link set {end} address {hardware_address(address)} netns {pid} name {name}"]


def address_commands(interface: str, address: str, prefix: int) -> list[str]:
    """Commands for `ip -batch` inside a node or device."""
    return ["link set lo up", f"addr add {address}/{prefix} dev {interface}", f"link set {interface} up"]


def network_addresses(nodes: int, with_devices: bool) -> list[str]:
    """The addresses of all machines on the network."""
    devices = [device_address(i) for i in range(nodes)] if with_devices else []
    return [HEAD_ADDRESS, *(node_address(i) for i in range(nodes)), *devices]


def neighbour_commands(interface: str, own: str, addresses: list[str]) -> list[str]:
    """Commands for `ip -batch` inside a machine that make `addresses`, except its own, permanent neighbours.

    The kernel keeps one table of learnt neighbours for all network namespaces. It has 1,024 entries by
    default, and 33 nodes need more. Permanent entries do not count against that limit.
    """
    return [
        f"neigh replace {a} lladdr {hardware_address(a)} nud permanent dev {interface}"
        for a in addresses
        if a != own
    ]


def segment_bytes(link: Link) -> int:
    """The largest segment that TCP hands to a link. Every segment on a shaped link costs a timer. So a
    segment takes a millisecond of the link's time, as far as segments can be that large. The bucket holds two
    of them."""
    if link.rate is None:
        return _MAX_SEGMENT_BYTES
    largest = _MAX_SEGMENT_BYTES if link.burst is None else min(link.burst // 2, _MAX_SEGMENT_BYTES)
    return min(max(link.rate // 8 // 1000, _MIN_SEGMENT_BYTES), largest)


def burst_bytes(link: Link) -> int:
    """The bytes that a link of limited rate lets pass at once: two milliseconds of the rate, but at least two
    of the largest segments."""
    assert link.rate is not None
    return link.burst or max(2 * segment_bytes(link), link.rate // 8 // 500)


def shaping_commands(device: str, link: Link) -> list[list[str]]:
    """`tc` command lines that shape the egress of `device`."""
    commands = []
    if link.rate is not None:
        commands.append(
            [
                "tc",
                "qdisc",
                "add",
                "dev",
                device,
                "root",
                "handle",
                "1:",
                "tbf",
                "rate",
                f"{link.rate}bit",
                "burst",
                str(burst_bytes(link)),
                "limit",
                str(_QUEUE_BYTES),
            ]
        )
    if link.latency:
        parent = ["parent", "1:1"] if link.rate is not None else ["root"]
        # Each end of the cable adds half of the latency.
        commands.append(
            [
                "tc",
                "qdisc",
                "add",
                "dev",
                device,
                *parent,
                "netem",
                "delay",
                f"{link.latency * 5e5:.1f}us",
                "limit",
                "100000",
            ]
        )
    return commands


def check_burst(link: Link) -> None:
    if link.burst is None:
        return
    if link.rate is None:
        raise OffpathError(
            Code.OPTION, "--burst needs links of a limited rate", "add --link, for example --link 2gbit"
        )
    if not 2 * _MIN_SEGMENT_BYTES <= link.burst <= _QUEUE_BYTES:
        raise OffpathError(
            Code.OPTION,
            f"--burst {format_size(link.burst)} is out of range",
            f"use {format_size(2 * _MIN_SEGMENT_BYTES)} to {format_size(_QUEUE_BYTES)}",
        )


def check_nodes(nodes: int) -> None:
    if not 1 <= nodes <= MAX_NODES:
        raise OffpathError(Code.OPTION, f"--nodes {nodes} is out of range", f"use 1 to {MAX_NODES}")
