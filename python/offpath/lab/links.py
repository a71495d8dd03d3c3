"""The links of a lab that is up, as the kernel reports them. `offpath info` shows them."""

import json

from offpath.lab import network
from offpath.lab.cluster import Cluster
from offpath.lab.node import run_tool


def describe(cluster: Cluster) -> list[dict]:
    """The network link and, if devices have machines of their own, the host-device link. They are the same on
    all nodes."""
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
    """`end` is the place of the queue that limits the link, if that is not the interface that
    programs see."""
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
    """Bits per second of the token bucket in the output of `tc -j qdisc show`. None if there is
    no token bucket."""
    for queue in json.loads(queues):
        if queue["kind"] == "tbf":
            return 8 * queue["options"]["rate"]
    return None
