"""Medians and spreads of repeated measurements, and where and with what they were taken."""

import os
import platform
import re
import statistics
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from offpath.artifacts import SOURCE_ROOT


@dataclass(frozen=True)
class Summary:
    median: float
    low: float
    high: float
    count: int


def summarize(values: list[float]) -> Summary:
    return Summary(statistics.median(values), min(values), max(values), len(values))


def environment() -> dict:
    """What a reader needs to judge the numbers."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores_allowed": sorted(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "mpi": _first_line(["mpirun", "--version"]),
        "offpath": _first_line(["git", "-C", str(SOURCE_ROOT), "describe", "--always", "--dirty"]) or "not a git checkout",
    }


def describe_cluster(cluster) -> dict:
    spec = cluster.spec
    return {
        "nodes": spec.nodes,
        "ranks_per_node": spec.ranks_per_node,
        "link": str(spec.link),
        "link_bits_per_s": spec.link.rate,
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
