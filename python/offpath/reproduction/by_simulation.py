"""Rows from simulations: the engine on the papers' platforms."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from offpath import sim
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.reproduction.row import Kind, Paper, Published, Row

PLATFORM = "thor-bf2"
MESSAGES = tuple(2**i for i in range(3, 21))  # 8 B to 1 MiB
GATHERED = (64, 1024, 16 << 10, 64 << 10, 256 << 10)
# The papers' 32 ranks a node are too many for a page that tests make again.
NODES, RANKS_PER_NODE = 16, 8
EXCHANGED = 16 << 10


def rows(artifacts: Artifacts) -> list[Row]:
    figures = sim.read_figures(PLATFORM)
    return [*_osu(figures, artifacts), *_alltoall(figures, artifacts), *_get(artifacts)]


def _simulate(
    figures: Mapping, points: list[tuple[str, int]], nodes: int, each: int, engine: str, artifacts: Artifacts,
    *more: str,
) -> list[dict]:  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="offpath-sim-") as folder:
        file = Path(folder) / "platform.json"
        file.write_text(json.dumps(figures))
        listed = ",".join(f"{pattern}:{size}" for pattern, size in points)
        command = [
            str(artifacts.program(sim.PROGRAM)), f"--platform={file}", f"--nodes={nodes}",
            f"--ranks-per-node={each}", f"--engine={engine}", "--iterations=1", "--repeatable",
            f"--points={listed}", *more,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OffpathError(Code.JOB_FAILED, done.stderr.strip().removeprefix(f"{sim.PROGRAM}: "))
    return json.loads(done.stdout)["rows"]


def alone(figures: Mapping, side: str) -> dict:
    """The platform of a cluster of hosts, or of cards alone, whose MPI library copies small messages.
    `side`: host or device."""
    changed = dict(figures)
    for name in figures:
        if name.startswith("host."):
            changed[name] = figures[side + name.removeprefix("host")]
    copy = {
        "value": 1 / changed["host.copy_Bps"]["value"],
        "source": "small messages are copied at the rate of memory",
    }
    return changed | {"host.send_byte_s": copy, "host.receive_byte_s": copy}


def _times(
    figures: Mapping, side: str, pattern: str, sizes: tuple[int, ...], nodes: int, artifacts: Artifacts
):
    points = [(pattern, size) for size in sizes]
    found = _simulate(alone(figures, side), points, nodes, 1, "host", artifacts, "--alone")
    return [row["time_s"] for row in found]


def last_growth(sizes: tuple[int, ...], excess: list[float]) -> int:
    """The largest size up to which the excess grows with each size."""
    for i in range(1, len(sizes)):
        if excess[i] <= excess[i - 1] * 1.01:
            return sizes[i - 1]
    return sizes[-1]


def _osu(figures: Mapping, artifacts: Artifacts) -> list[Row]:
    def ratio(pattern: str, sizes: tuple[int, ...], nodes: int) -> list[tuple[float, float]]:
        return list(
            zip(
                _times(figures, "host", pattern, sizes, nodes, artifacts),
                _times(figures, "device", pattern, sizes, nodes, artifacts),
                strict=True,
            )
        )

    messages, gathers = ratio("ring", MESSAGES, 2), ratio("allgather", GATHERED, 16)
    # From 512 B on: below, the bytes do not matter.
    grown = [i for i, size in enumerate(MESSAGES) if size >= 512]
    crossover = last_growth(
        tuple(MESSAGES[i] for i in grown), [messages[i][1] - messages[i][0] for i in grown]
    )

    def row(place: str, what: str, published: Published, ours: float, how: str, why: str = "") -> Row:
        return Row(Paper.MINIMD, place, what, published, ours, Kind.SIMULATION, how, why)

    return [
        row(
            "Fig. 3",
            "size beyond which BlueField-to-BlueField latency gains on the hosts'",
            Published.exactly(16, "KiB"),
            crossover / 1024,
            f"`ring`, {PLATFORM}, cards alone",
            "both copy messages up to an eager limit, which is 8 KiB in the simulator",
        ),
        row(
            "Fig. 3",
            "BlueField-to-BlueField latency over the hosts', 8 B",
            Published.at_least(1),
            messages[0][1] / messages[0][0],
            f"`ring`, {PLATFORM}, cards alone",
        ),
        row(
            "Fig. 3",
            "the same, 1 MiB",
            Published(0, 1),
            messages[-1][1] / messages[-1][0],
            f"`ring`, {PLATFORM}, cards alone",
            "the simulated network is equal on both sides, so slower cores cannot win",
        ),
        row(
            "Fig. 5",
            "allgather of 16 BlueFields over that of 16 hosts, least of all sizes",
            Published.at_least(1),
            min(device / host for host, device in gathers),
            f"`allgather`, {PLATFORM}, cards alone",
        ),
    ]


def _alltoall(figures: Mapping, artifacts: Artifacts) -> list[Row]:
    point = [("alltoall", EXCHANGED)]
    staged = dict(figures) | {"memory": "staged"}
    (direct,) = _simulate(figures, point, NODES, RANKS_PER_NODE, "offpath", artifacts)
    (through,) = _simulate(staged, point, NODES, RANKS_PER_NODE, "offpath", artifacts)
    (host,) = _simulate(figures, point, NODES, RANKS_PER_NODE, "host", artifacts)
    how = f"`alltoall` of {EXCHANGED >> 10} KiB, {NODES} nodes x {RANKS_PER_NODE}, {PLATFORM}"
    return [
        Row(
            Paper.FRAMEWORK, "slide on MPI_alltoall", "alltoall and computation, less than through staging",
            Published.at_least(25, "%"), 100 * (1 - direct["total_s"] / through["total_s"]), Kind.SIMULATION,
            f"{how}, `xgvmi` over `staged`",
            "the engine's staging is pipelined, so it loses less than BluesMPI's",
        ),
        Row(
            Paper.FRAMEWORK, "slide on MPI_alltoall", "overlap of alltoall", Published.exactly(100, "%"),
            direct["overlap_percent"], Kind.SIMULATION, how,
        ),
        Row(
            Paper.TUTORIAL, "slide on UCC offload", "overlap of alltoall", Published.exactly(100, "%"),
            direct["overlap_percent"], Kind.SIMULATION, how,
        ),
        Row(
            Paper.TUTORIAL, "slide on UCC offload", "alltoall and computation, at most saved",
            Published.exactly(43, "%"), 100 * (1 - direct["total_s"] / host["total_s"]), Kind.SIMULATION, how,
            "the simulated host makes no progress while it computes; in the tutorial it hides a part",
        ),
    ]  # fmt: skip


def _get(artifacts: Artifacts) -> list[Row]:
    figures = sim.read_figures("helios-bf2")
    (found,) = _simulate(figures, [("get", 1 << 20)], 2, 1, "offpath", artifacts)
    return [
        Row(
            Paper.ONE_SIDED,
            "VI-B, Fig. 5",
            "overlap of a get between nodes, large messages",
            Published(75, 78, "%"),
            found["overlap_percent"],
            Kind.SIMULATION,
            "`get` of 1 MiB, helios-bf2",
            "a proxy of ours needs nothing from the host until the end; the paper does not say what is left",
        )
    ]
