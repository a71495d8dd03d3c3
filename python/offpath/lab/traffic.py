"""Counts the bytes on each link. The numbers show that host and offload move the same bytes over the same
wire, and what the host-device links carry."""

import json
from dataclasses import dataclass
from pathlib import Path

from offpath.lab import network
from offpath.lab.node import Node, run_tool


@dataclass(frozen=True)
class NodeTraffic:
    """The traffic of one node: through its cable, counted by the switch; or through its host-device link,
    counted by the host."""

    sent: int
    received: int
    dropped: int  # by the queues of the cable, or at the host's end of the host-device link


def read(nodes: list[Node]) -> list[NodeTraffic]:
    """Traffic through the network. If the device is a machine of its own, this is the traffic of host and
    device together."""
    links = {
        link["ifname"]: link["stats64"] for link in json.loads(run_tool(["ip", "-s", "-j", "link", "show"]))
    }
    drops: dict[str, int] = {}
    for queue in json.loads(run_tool(["tc", "-s", "-j", "qdisc", "show"])):
        drops[queue["dev"]] = drops.get(queue["dev"], 0) + queue.get("drops", 0)
    counted = []
    for node in nodes:
        stats = links[network.port(node.index)]
        dropped = drops.get(network.port(node.index), 0) + drops.get(network.uplink(node.index), 0)
        # The switch counts: what it receives on a port, the node has sent.
        counted.append(NodeTraffic(stats["rx"]["bytes"], stats["tx"]["bytes"], dropped))
    return counted


def read_pcie(nodes: list[Node]) -> list[NodeTraffic]:
    """Traffic through the host-device links, as the hosts count it. Empty if there are none."""
    return [
        parse_counters(Path(f"/proc/{node.pid}/net/dev").read_text(), network.PCIE_INTERFACE)
        for node in nodes
        if node.dpu is not None
    ]


def parse_counters(text: str, interface: str) -> NodeTraffic:
    """The counters of one interface in the text of /proc/PID/net/dev."""
    for line in text.splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == interface:
            values = [int(word) for word in counters.split()]
            return NodeTraffic(sent=values[8], received=values[0], dropped=values[3] + values[11])
    raise ValueError(f"there is no interface {interface} in /proc/net/dev")


def difference(before: list[NodeTraffic], after: list[NodeTraffic]) -> list[NodeTraffic]:
    return [
        NodeTraffic(b.sent - a.sent, b.received - a.received, b.dropped - a.dropped)
        for a, b in zip(before, after, strict=True)
    ]
