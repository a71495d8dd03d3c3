"""Times of operations in the lab, and of the same operations in the simulator, for calibration and
validation."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath import console, metrics, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import network
from offpath.lab.network import Link
from offpath.last_words import last_words
from offpath.sim import PROGRAM

# The benchmark agrees on an instant before each repetition (bench/mpi/interval.cpp). Meanwhile messages
# arrive, buckets fill, and proxies fall asleep.
PAUSE_S = 0.001
REPETITIONS = 25
# Headers take 0.8 % of the links' rate, see docs/lab.md.
PAYLOAD_SHARE = 0.992
# Everything that the device can do goes to it, whatever its size.
ALL_TO_DEVICE = {"OFFPATH_MIN_BYTES": "0", "OFFPATH_P2P": "all", "OFFPATH_P2P_WAITED": "device"}
UNSHAPED_BPS = 5e9
# A machine in a cloud runs half as fast in some minutes as in others. So everything is measured that often,
# with everything else in between.
ROUNDS = 5
PATTERNS = {"isend": "ring"}  # others have the benchmark's name without its first letter


@dataclass(frozen=True)
class Shape:
    """A lab, and what runs there. `link` is as in `offpath lab`; `engine` is host or offpath."""

    nodes: int
    link: str
    engine: str
    dpu: str = "local"
    ranks_per_node: int = 1

    def __str__(self) -> str:
        attach = f", {self.dpu}" if self.engine == "offpath" else ""
        return f"{self.nodes} x {self.ranks_per_node}, {self.link}, {self.engine}{attach}"

    @property
    def rate(self) -> int | None:
        return units.parse_rate(self.link)


@dataclass(frozen=True)
class Point:
    op: str
    size: int

    def __str__(self) -> str:
        return f"{self.op} {units.format_size(self.size)}"

    @property
    def pattern(self) -> str:
        return PATTERNS.get(self.op, self.op.removeprefix("i"))


def points(ops: str, sizes: str) -> list[Point]:
    """All pairs of two lists of words."""
    return [Point(op, units.parse_size(size)) for op in ops.split() for size in sizes.split()]


def measure(shape: Shape, wanted: list[Point], artifacts: Artifacts, seconds: float = 0.2) -> list[dict]:
    """The rows of `offpath-bench-mpi sweep`, one for each point."""
    command = [
        sys.executable, "-m", "offpath", "lab", "run", "--quiet",
        f"--nodes={shape.nodes}", f"--ranks-per-node={shape.ranks_per_node}", f"--link={shape.link}",
        f"--dpu={shape.dpu}", f"--offload={'on' if shape.engine == 'offpath' else 'off'}", "--timeout=100",
    ]  # fmt: skip
    if shape.engine == "offpath":
        command += [f"--env={name}={value}" for name, value in ALL_TO_DEVICE.items()]
    program = str(artifacts.program("offpath-bench-mpi"))
    listed = ",".join(f"{point.op}:{point.size}" for point in wanted)
    command += ["--", program, "sweep", "--shared-clock", f"--seconds={seconds}", f"--points={listed}"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    said = metrics.last_json_object(done.stdout)
    if done.returncode != 0 or said is None:
        tail = last_words(done.stdout, done.stderr, 8)
        raise OffpathError(Code.JOB_FAILED, f"the lab failed with code {done.returncode} ({shape})\n{tail}")
    if shape.engine == "offpath" and "runs on the host's MPI" in done.stderr:
        raise OffpathError(
            Code.WRONG_RESULTS, f"the lab's devices did not take part ({shape})\n{done.stderr.strip()}"
        )
    return said["rows"]


def measure_in_rounds(
    labs: list[tuple[Shape, list[Point]]], artifacts: Artifacts, seconds: float
) -> list[list[dict]]:
    """As measure, for several labs, each `seconds / ROUNDS` long in every round."""
    rounds: list[list[list[dict]]] = [[] for _ in labs]
    for _ in range(ROUNDS):
        for found, (shape, wanted) in zip(rounds, labs, strict=True):
            console.note(f"measuring {shape}")
            found.append(measure(shape, wanted, artifacts, seconds / ROUNDS))
    return [[median_row(rows) for rows in zip(*found, strict=True)] for found in rounds]


def median_row(rows: Sequence[dict]) -> dict:
    """The row with the median time, with the range and the number of all. Right only if all are."""
    middle = sorted(rows, key=lambda row: row["pure_s"])[len(rows) // 2]
    return middle | {
        "low_s": min(row["low_s"] for row in rows),
        "high_s": max(row["high_s"] for row in rows),
        "count": sum(row["count"] for row in rows),
        "verified": all(row["verified"] for row in rows),
        "rounds_s": [row["pure_s"] for row in rows],
    }


def platform_in_lab(figures: Mapping, shape: Shape) -> dict:
    """The figures of a calibrated platform, with the links and the attachment of `shape`."""
    changed = dict(figures)

    def put(name: str, value: float) -> None:
        changed[name] = {"value": value, "source": "the lab"}

    rate = shape.rate
    put("link_Bps", rate / 8 * PAYLOAD_SHARE if rate else UNSHAPED_BPS)
    put("link_burst_bytes", network.burst_bytes(Link(rate)) if rate else 0)
    if shape.engine == "offpath" and shape.dpu != "local":
        changed["memory"] = "staged"
        put("bus_Bps", 4 * rate / 8 * PAYLOAD_SHARE if rate else UNSHAPED_BPS)
    return changed


def simulate(
    figures: Mapping, shape: Shape, wanted: list[Point], artifacts: Artifacts, repetitions: int = REPETITIONS
) -> list[dict]:
    """What offpath-sim says of the same points. Where ranks take turns, whose turn is next is drawn, and the
    median of so many repetitions counts."""
    if figures.get("turn_s", {}).get("value", 0) == 0:
        repetitions = 1
    with tempfile.TemporaryDirectory(prefix="offpath-sim-") as folder:
        file = Path(folder) / f"{figures['name']}.json"
        file.write_text(json.dumps(platform_in_lab(figures, shape)))
        command = [
            str(artifacts.program(PROGRAM)), f"--platform={file}", f"--nodes={shape.nodes}",
            f"--ranks-per-node={shape.ranks_per_node}", f"--engine={shape.engine}", "--alone",
            f"--pause={PAUSE_S}", f"--iterations={repetitions}", "--repeatable",
            "--points=" + ",".join(f"{point.pattern}:{point.size}" for point in wanted),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OffpathError(
            Code.JOB_FAILED,
            done.stderr.strip().removeprefix(f"{PROGRAM}: ").replace(str(file), figures["name"]),
        )
    return json.loads(done.stdout)["rows"]
