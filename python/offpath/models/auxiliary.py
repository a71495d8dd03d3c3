"""The auxiliary node: how few fast cores on a card equal many slow ones.

A card of n slow cores computes forces in slowness * factor(n) times one host core's time. A card of m cores
of the host's speed needs factor(m). Both take the same time where these are equal.

Source: "'Smarter' NICs for faster molecular dynamics" (IPDPS 2022), Fig. 15 and section V-4: one host core
equals the eight cores of a BlueField-2, which together are 2.5 times as fast as one of them. Range: the
force computation decides; communication of the card is not in it.
"""

from offpath.models import checks
from offpath.models.off_path import Threads


def matching_slowness(device_threads: int, threads: Threads) -> float:
    """How slow one core of the card may be, relative to a host core, so that `device_threads` of them equal
    one host core."""
    return 1 / threads.factor(device_threads)


def matching_threads(slowness: float, threads: Threads, most: int = 1024) -> int | None:
    """How many cores of the card equal one host core. None: not even `most` of them do, because the serial
    share or the penalty of threads forbids it."""
    checks.positive("the slowness", slowness)
    for count in range(1, most + 1):
        if slowness * threads.factor(count) <= 1 + 1e-9:
            return count
    return None


def devices_against_host(
    devices: int, device_threads: int, host_threads: int, slowness: float, threads: Threads
) -> float:
    """How many times as fast as one host on `host_threads` threads the same work is on `devices` cards alone,
    if it divides evenly and nothing is communicated (the setting of Fig. 8)."""
    checks.count("the number of devices", devices)
    checks.positive("the slowness", slowness)
    return threads.factor(host_threads) * devices / (slowness * threads.factor(device_threads))
