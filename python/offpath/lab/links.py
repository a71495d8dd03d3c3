"""The links of a lab that is up, as the kernel has them: what `offpath info` shows."""

import json

from offpath.lab import network
from offpath.lab.cluster import Cluster
from offpath.lab.node import run_tool


def describe(cluster: Cluster) -> list[dict]:
    """The network link and, where devices have machines of their own, the host-device link. All nodes have
    the same."""
    if not cluster.namespaced:
        return []
    node, spec = cluster.nodes[0], cluster.spec
    if node.dpu is None:
        return [
            _link(
                "network",
                network.INTERFACE,
                "each node and the switch",
                spec.link.latency,
                node.enter(),
                [network.node_address(0)],
            )
        ]
    addresses = [network.node_address(0), network.device_address(0)]
    ends = [network.pcie_address(0, of_device) for of_device in (False, True)]
    return [
        _link(
            "network",
            network.INTERFACE,
            "each card (host and device) and the switch",
            spec.link.latency,
            [],
            addresses,
            network.uplink(0),
        ),
        _link("host-device", network.PCIE_INTERFACE, "each host and its device", 0.0, node.enter(), ends),
    ]


def _link(
    name: str,
    interface: str,
    between: str,
    latency: float,
    enter: list[str],
    addresses: list[str],
    end: str | None = None,
) -> dict:
    """`end`: where the queue is that limits the link, if not at the interface that programs see."""
    end = end or interface
    (device,) = json.loads(run_tool([*enter, "ip", "-j", "link", "show", "dev", end]))
    return {
        "name": name,
        "interface": interface,
        "between": between,
        "rate_bits_per_s": rate_of(run_tool([*enter, "tc", "-j", "qdisc", "show", "dev", end])),
        "added_latency_s": latency,
        "mtu": device["mtu"],
        "addresses_of_node0": addresses,
    }


def rate_of(queues: str) -> int | None:
    """Bits per second of the token bucket in what `tc -j qdisc show` prints; None where there is none."""
    for queue in json.loads(queues):
        if queue["kind"] == "tbf":
            return 8 * queue["options"]["rate"]
    return None
