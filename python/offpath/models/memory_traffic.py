"""Offload by the ratio of memory traffic to communication.

A phase of a program moves `memory` bytes through the host's memory, at `memory_Bps`, and sends and receives
`wire` bytes at `link_Bps`. Their ratio decides what offload can gain: x = (memory / memory_Bps) / (wire /
link_Bps) is computation over communication.

    host without overlap:   t = t_memory + t_wire
    device:                 t = max(t_memory + t_copies, t_wire)

A device that cannot place data in the processor's cache writes each byte that arrives to memory, and the host
reads it from there: `copies` counts these accesses of each byte on the wire (2 without direct cache access, 0
with it).

Source: "Communication Offloading on SmartNIC DPUs: A Quantitative Approach" (arXiv 2605.04842), whose result
is that the ratio of memory to communication predicts the gain, up to 1.55 times, and that a DPU without
direct cache access causes much DRAM traffic. The formulas are ours. Range: phases that memory bandwidth
limits, all of whose communication can be posted before; a host without progress of its own.
"""

from dataclasses import dataclass

from offpath.models import checks


@dataclass(frozen=True)
class Phase:
    memory_bytes: float
    wire_bytes: float
    memory_Bps: float
    link_Bps: float

    def __post_init__(self) -> None:
        checks.positive("the bytes of memory", self.memory_bytes)
        checks.positive("the bytes on the wire", self.wire_bytes)
        checks.positive("the rate of memory", self.memory_Bps)
        checks.positive("the link's rate", self.link_Bps)

    @property
    def ratio(self) -> float:
        """Bytes of memory traffic for each byte of communication."""
        return self.memory_bytes / self.wire_bytes

    @property
    def best_ratio(self) -> float:
        """The ratio at which offload gains most: both sides take the same time."""
        return self.memory_Bps / self.link_Bps

    @property
    def host_s(self) -> float:
        return self.memory_bytes / self.memory_Bps + self.wire_bytes / self.link_Bps

    def device_s(self, copies: float = 2.0) -> float:
        """`copies`: accesses of the host's memory for each byte on the wire that direct cache access would
        avoid."""
        checks.number("the copies", copies)
        traffic = self.memory_bytes + copies * self.wire_bytes
        return max(traffic / self.memory_Bps, self.wire_bytes / self.link_Bps)

    def speedup(self, copies: float = 2.0) -> float:
        """At most 2, without copies and at the best ratio."""
        return self.host_s / self.device_s(copies)
