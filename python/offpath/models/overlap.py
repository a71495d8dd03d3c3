"""Overlap of an operation with a computation.

An operation takes `pure` seconds alone. The host spends `post` of these to start it. While the host computes
for `compute` seconds, a share `progress` of the rest can advance without it: 0 for an MPI library that only
works inside its calls, 1 for a device. What has not advanced remains for the wait. Where the communication
takes cycles or memory bandwidth from the host, the computation grows by `interference` times what overlaps.

    hidden = min(compute, progress * (pure - post))
    total = compute + pure - hidden + interference * hidden

Source: the definition of overlap that `offpath bench overlap` and OSU's benchmarks use; the four quantities
are those of the timeline in "A Novel Framework for Efficient Offloading" (MUG 2023, slides).
Range: one operation at a time, and a host that does not poll during its computation.
"""

from dataclasses import dataclass

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.models import checks


@dataclass(frozen=True)
class Overlap:
    pure_s: float
    post_s: float = 0.0
    progress: float = 1.0
    interference: float = 0.0

    def __post_init__(self) -> None:
        checks.positive("the operation's time", self.pure_s)
        checks.number("the time to post", self.post_s)
        checks.share("the progress", self.progress)
        checks.share("the interference", self.interference)
        if self.post_s > self.pure_s:
            raise OffpathError(
                Code.OPTION,
                f"the time to post {self.post_s:g} is longer than the operation {self.pure_s:g}",
                "posting is a part of the operation",
            )

    def hidden_s(self, compute_s: float) -> float:
        """How much of the operation passes during a computation of `compute_s`."""
        return min(checks.number("the computation", compute_s), self.progress * (self.pure_s - self.post_s))

    def total_s(self, compute_s: float) -> float:
        """Post, compute and wait."""
        hidden = self.hidden_s(compute_s)
        return compute_s + self.pure_s - hidden + self.interference * hidden

    def overlap_percent(self, compute_s: float) -> float:
        """What the computation hides, as a share of the operation's pure time, after interference."""
        return 100 * (self.pure_s + compute_s - self.total_s(compute_s)) / self.pure_s

    def window_s(self) -> float:
        """The shortest computation that hides all that can be hidden."""
        return self.progress * (self.pure_s - self.post_s)


def gain_percent(host: Overlap, device: Overlap, compute_s: float) -> float:
    """What a device saves of the time of operation and computation together."""
    before = host.total_s(compute_s)
    return 100 * (before - device.total_s(compute_s)) / before


def progress_from(pure_s: float, compute_s: float, total_s: float, post_s: float = 0.0) -> float:
    """The progress that explains a measured `total_s`. It is limited to 0 to 1, as measurements scatter."""
    checks.positive("the computation", compute_s)
    checks.positive("the total", total_s)
    possible = min(compute_s, pure_s - post_s)
    if possible <= 0:
        raise OffpathError(
            Code.NOTHING_TO_DO, "nothing can overlap", "the time to post is the whole operation"
        )
    return min(1.0, max(0.0, (pure_s + compute_s - total_s) / possible))


def application_s(total_s: float, comm_s: float, comm_offloaded_s: float) -> float:
    """An application's time if offload changes only what its ranks spend in communication."""
    checks.number("the communication's time", comm_s, 0.0, total_s)
    checks.number("the communication's time with offload", comm_offloaded_s)
    return total_s - comm_s + comm_offloaded_s
