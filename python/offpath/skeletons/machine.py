"""What a skeleton must know of the machine: where ranks are, and how fast links are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """`ranks_per_node` consecutive ranks share a node. Rates are in bytes a second, for one direction."""

    nodes: int
    ranks_per_node: int
    link_Bps: float  # noqa: N815, as in platforms
    inside_Bps: float  # noqa: N815

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    def transfer_s(self, sender: int, receiver: int, size: float) -> float:
        """The time of a transfer that has its link to itself, without latency."""
        inside = sender // self.ranks_per_node == receiver // self.ranks_per_node
        return size / (self.inside_Bps if inside else self.link_Bps)
