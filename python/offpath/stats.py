"""Medians and spreads of repeated measurements, and the circumstances under which they were taken."""

import math
import os
import platform
import re
import statistics
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from offpath.artifacts import SOURCE_ROOT
from offpath.lab import network


@dataclass(frozen=True)
class Summary:
    median: float
    low: float
    high: float
    count: int


def summarize(values: list[float]) -> Summary:
    return Summary(statistics.median(values), min(values), max(values), len(values))


def chance(a: list[float], b: list[float]) -> float:
    """The probability that two such samples of one distribution are at least as far apart as `a` and `b`, in
    either direction. This is the rank-sum test of Mann and Whitney."""
    n, m = len(a), len(b)
    above = sum((x > y) + (x == y) / 2 for x in a for y in b)
    distance = abs(above - n * m / 2)
    if n * m > 400:
        sigma = math.sqrt(n * m * (n + m + 1) / 12)
        return math.erfc(distance / sigma / math.sqrt(2))
    # ways[j][u] is the number of orders of i values of a and j values of b in which u pairs have a's value
    # above b's.
    ways = [[1] for _ in range(m + 1)]
    for i in range(1, n + 1):
        row = [[1]]
        for j in range(1, m + 1):
            counts = [0] * (i * j + 1)
            for u, count in enumerate(ways[j]):  # the largest value is from a, above all j values of b
                counts[u + j] += count
            for u, count in enumerate(row[j - 1]):  # the largest value is from b
                counts[u] += count
            row.append(counts)
        ways = row
    counts = ways[m]
    return sum(count for u, count in enumerate(counts) if abs(u - n * m / 2) >= distance) / sum(counts)


_BUSY = 1.0  # load average from which on other work spoils a measurement


def why_busy(load: float | None = None) -> str:
    """A sentence if other work runs on this machine; else nothing. `load`: the load average, if known."""
    load = os.getloadavg()[0] if load is None else load
    if load <= _BUSY:
        return ""
    return f"the machine is not idle (load average {load:.1f}): times will be longer and scatter more"


def environment() -> dict:
    """What a reader needs to judge the numbers."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores_allowed": sorted(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "mpi": _first_line(["mpirun", "--version"]),
        "offpath": (
            _first_line(["git", "-C", str(SOURCE_ROOT), "describe", "--always", "--dirty"])
            or "not a git checkout"
        ),
    }


def describe_cluster(cluster) -> dict:
    spec = cluster.spec
    return {
        "nodes": spec.nodes,
        "ranks_per_node": spec.ranks_per_node,
        "link": str(spec.link),
        "link_bits_per_s": spec.link.rate,
        "link_burst_bytes": network.burst_bytes(spec.link) if spec.link.rate else None,
        "dpu": spec.dpu,
        "pcie": str(spec.pcie) if spec.remote else None,
        "pcie_bits_per_s": spec.pcie.rate if spec.remote else None,
        "placement": [asdict(place) for place in cluster.placements],
        "device_quota": spec.device_quota,
        "environment": spec.environment,
        "description": cluster.describe(),
    }


def _cpu_model() -> str:
    match = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1] if match else platform.processor()


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.partition("\n")[0].strip()
