"""The most that offloading all communication could gain.

    bound = 100 * t_comm / t_total percent

Source: "'Smarter' NICs for faster molecular dynamics" (IPDPS 2022), Fig. 12. Range: communication that is
entirely hidden, at no cost. Offload that also moves computation can exceed it.
"""

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.models import checks


def communication_bound_percent(comm_s: float, total_s: float) -> float:
    """The saving in percent of the total time. `comm_s` is a part of `total_s`."""
    checks.positive("the total time", total_s)
    checks.number("the communication's time", comm_s)
    if comm_s > total_s:
        raise OffpathError(
            Code.OPTION,
            f"the communication's time {comm_s:g} is longer than the total {total_s:g}",
            "give the time of communication within the total",
        )
    return 100 * comm_s / total_s


def speedup_bound(comm_s: float, total_s: float) -> float:
    """The same as a factor."""
    percent = communication_bound_percent(comm_s, total_s)
    if percent == 100:
        raise OffpathError(
            Code.NOTHING_TO_DO, "the program only communicates", "its bound as a factor is infinite"
        )
    return 1 / (1 - percent / 100)
