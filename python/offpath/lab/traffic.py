"""What crossed each node's link, counted by the switch: shows that host and offload move the same bytes over the same wire."""

import json
from dataclasses import dataclass

from offpath.lab import network
from offpath.lab.node import run_tool


@dataclass(frozen=True)
class NodeTraffic:
    sent: int
    received: int
    dropped: int  # by the switch's queue towards the node


def read(nodes: int) -> list[NodeTraffic]:
    links = {link["ifname"]: link["stats64"] for link in json.loads(run_tool(["ip", "-s", "-j", "link", "show"]))}
    drops: dict[str, int] = {}
    for queue in json.loads(run_tool(["tc", "-s", "-j", "qdisc", "show"])):
        drops[queue["dev"]] = drops.get(queue["dev"], 0) + queue.get("drops", 0)
    counted = []
    for i in range(nodes):
        stats = links[network.port(i)]
        # Seen from the switch: what it receives on a port, the node has sent.
        counted.append(NodeTraffic(stats["rx"]["bytes"], stats["tx"]["bytes"], drops.get(network.port(i), 0)))
    return counted


def difference(before: list[NodeTraffic], after: list[NodeTraffic]) -> list[NodeTraffic]:
    return [NodeTraffic(b.sent - a.sent, b.received - a.received, b.dropped - a.dropped) for a, b in zip(before, after)]
