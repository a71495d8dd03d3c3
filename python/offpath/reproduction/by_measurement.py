"""Rows from stored results: of measurements, and of simulations that take too long to repeat."""

import json
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.minimd.case import BALANCED, HOSTS, PAPER, RUNTIME_PAPER
from offpath.models.bound import communication_bound_percent
from offpath.models.off_path import Machine, OffPath, StepTimes, Threads
from offpath.models.testbeds import THOR
from offpath.reproduction.by_models import SLOWNESS
from offpath.reproduction.row import Kind, Paper, Published, Row

STORED = Path(__file__).parent / "stored"
_TURNS = "all hosts share one core, and all devices the other"


def read(name: str) -> dict:
    """A stored result: the `command` that made it, and its `rows`."""
    path = STORED / f"{name}.json"
    try:
        found = json.loads(path.read_text())
        return {"command": str(found["command"]), "rows": list(found["rows"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OffpathError(Code.INPUT_FILE, f"{path}: not a stored result: {error!r}") from error


def names() -> list[str]:
    return sorted(path.stem for path in STORED.glob("*.json"))


def commands() -> dict[str, str]:
    return {name: read(name)["command"] for name in names()}


def rows() -> list[Row]:
    return [row for make in (_minimd, _eq3, _alltoall, _programs, _overlap, _one_sided) for row in make()]


def _minimd() -> list[Row]:
    def row(place: str, what: str, published: Published, ours: float, how: str, why: str = "") -> Row:
        return Row(Paper.MINIMD, place, what, published, ours, Kind.MEASUREMENT, how, why)

    slow = [one["slowdown"] for one in read("minimd-slowdown")["rows"]]
    gains = read("minimd-offpath")["rows"]
    published = [one for one in gains if one["scheme"] in (PAPER, RUNTIME_PAPER)]
    balanced = [one for one in gains if one["scheme"] == BALANCED]
    tdr = {(one["scheme"], one["interval"]): one for one in read("minimd-tdr")["rows"]}
    longest = max(interval for scheme, interval in tdr if scheme == PAPER)
    base, off = tdr[HOSTS, longest], tdr[PAPER, longest]
    error = (base["tdr_300_error"] ** 2 + off["tdr_300_error"] ** 2) ** 0.5
    models = read("minimd-model")["rows"]
    slowness = "devices compute each force twice, so they are at most 2 times slower; the rest is as fast"
    return [
        row("Fig. 6", "least slowdown of miniMD on devices", Published.exactly(1.64), min(slow),
            "minimd-slowdown", slowness),
        row("Fig. 6", "largest slowdown", Published.exactly(2.53), max(slow), "minimd-slowdown", slowness),
        row("Fig. 11", "largest gain of the algorithm as published", Published.exactly(20, "%"),
            max(one["improvement_percent"] for one in published), "minimd-offpath",
            "our rebuilds are faster, so less can be hidden behind them"),
        row("Fig. 11", "largest gain, balanced", Published.exactly(20, "%"),
            max(one["improvement_percent"] for one in balanced), "minimd-offpath"),
        row("Fig. 12", "most above the bound of communication, as published",
            Published.exactly(16.75, "points"), max(one["above_bound_percent"] for one in published),
            "minimd-offpath",
            f"{_TURNS}, so the bound also has their turns; and the gain is smaller"),
        row("Fig. 12", "the same, balanced", Published.exactly(16.75, "points"),
            max(one["above_bound_percent"] for one in balanced), "minimd-offpath",
            f"{_TURNS}, so the bound also has their turns"),
        row("Fig. 13", f"TDR of off-path less that of the baseline, interval {longest}, in standard errors",
            Published(0, 2), abs(off["tdr_300"] - base["tdr_300"]) / error, "minimd-tdr"),
        *(
            row("Fig. 14", f"measured over Eq. 3, {one['nodes']} nodes" if one["nodes"] > 1
                else "measured over Eq. 3, 1 node", Published.exactly(1), one["measured_to_predicted"],
                "minimd-model", "Eq. 3 has no wake-ups, and no influence of busy cores on each other")
            for one in models
        ),
    ]  # fmt: skip


def _eq3() -> list[Row]:
    """Eq. 3 with the times of the public miniMD, a rebuild in every step, by threads of host and device."""
    (one,) = read("mantevo-minimd")["rows"]
    # A rebuild's time is spread over the steps until the next one.
    step = StepTimes(one["force_ns"], one["neigh_ns"] * one["interval"], one["comm_ns"]).scaled(1e-9)
    program = OffPath(step)
    machine = Machine(SLOWNESS, force=Threads.from_speedup(THOR.force_speedup, THOR.device_cores))

    def gain(threads: int) -> float:
        return program.predict(machine, threads, threads, 1000, 1).improvement_percent

    def row(place: str, what: str, published: Published, ours: float, why: str = "") -> Row:
        return Row(
            Paper.MINIMD, place, what, published, ours, Kind.MODEL, "off-path, times of mantevo-minimd", why
        )

    bound = communication_bound_percent(step.comm, step.total)
    return [
        row("Fig. 11", "largest gain by Eq. 3, one thread each", Published.exactly(20, "%"), gain(1)),
        row(
            "Fig. 12", "the same above the bound of communication", Published.exactly(16.75, "points"),
            gain(1) - bound, "one rank communicates little, so the bound is low",
        ),
        *(
            row("Fig. 14", f"gain by Eq. 3, {threads} threads each", Published.at_most(0, "%"), gain(threads))
            for threads in (2, 4, 8)
        ),
    ]  # fmt: skip


def _alltoall() -> list[Row]:
    """The paper's own setting, which takes too long to simulate with each test."""
    (direct,), (staged,), (host,) = (
        read(f"alltoall-{name}")["rows"] for name in ("direct", "staged", "host")
    )
    return [
        Row(
            Paper.FRAMEWORK, "slide on MPI_alltoall", "the same, 32 ranks a node, 64 KiB",
            Published.at_least(25, "%"), 100 * (1 - direct["total_s"] / staged["total_s"]), Kind.SIMULATION,
            "alltoall-direct, alltoall-staged",
            "the engine's staging is pipelined, so only its start and end show where the link decides",
        ),
        Row(
            Paper.TUTORIAL, "slide on UCC offload", "the same, 32 ranks a node, 64 KiB",
            Published.exactly(43, "%"), 100 * (1 - direct["total_s"] / host["total_s"]), Kind.SIMULATION,
            "alltoall-direct, alltoall-host",
            "the simulated host makes no progress while it computes; in the tutorial it hides a part",
        ),
    ]  # fmt: skip


def _programs() -> list[Row]:
    """The programs of the papers at their scale, by skeletons of ours."""

    def less(
        paper: Paper, place: str, what: str, published: Published, names: tuple[str, str], why: str
    ) -> Row:
        ours, other = (read(name)["rows"][0]["time_s"] for name in names)
        return Row(
            paper, place, what, published, 100 * (1 - ours / other), Kind.SIMULATION, ", ".join(names), why
        )

    computes = (
        "the paper's tiles are not said; 128 x 128 take 0.1 ms here, so little computation hides transfers"
    )
    return [
        less(
            Paper.FRAMEWORK, "slide on P3DFFT and HPL", "fft3d, 1024 cubed, less time than through staging",
            Published.at_least(20, "%"), ("fft3d-direct", "fft3d-staged"),
            "P3DFFT's size and layout are not said; the engine's staging is pipelined, so it loses less than"
            " BluesMPI's",
        ),
        less(
            Paper.FRAMEWORK, "slide on P3DFFT and HPL", "ring-hpl, order 16384, less time than HPL's 1ring",
            Published.at_least(8, "%"), ("hpl-offpath", "hpl-1ring"), "",
        ),
        less(
            Paper.ONE_SIDED, "VI-C, Fig. 10", "BSPMM, mesh 40, 256 processes, less than blocking gets",
            Published.exactly(96, "%"), ("bspmm-offpath", "bspmm-blocking"), computes,
        ),
        less(
            Paper.ONE_SIDED, "VI-C, Fig. 10", "the same, less than non-blocking gets",
            Published.exactly(76, "%"), ("bspmm-offpath", "bspmm-nonblocking"), computes,
        ),
    ]  # fmt: skip


def _overlap() -> list[Row]:
    of_alltoall = [
        one for one in read("overlap")["rows"] if one["op"] == "ialltoall" and one["engine"] == "offpath"
    ]
    largest = max(of_alltoall, key=lambda one: one["bytes"])
    return [
        Row(
            Paper.TUTORIAL, "slide on UCC offload", f"overlap of alltoall, {largest['bytes'] >> 20} MiB",
            Published.exactly(100, "%"), largest["overlap_percent"], Kind.MEASUREMENT, "overlap",
        )
    ]  # fmt: skip


def _one_sided() -> list[Row]:
    def overlap(op: str) -> float:
        chosen = [one for one in read("shmem")["rows"] if one["op"] == op and one["engine"] == "offpath"]
        return max(chosen, key=lambda one: one["bytes"])["overlap_percent"]

    return [
        *(
            Row(
                Paper.ONE_SIDED, "VI-B, Fig. 5", f"overlap of a {op} between nodes, 1 MiB",
                Published(75, 78, "%"), overlap(op), Kind.MEASUREMENT, "shmem",
                "a proxy of ours needs nothing from the host until the end; the paper does not say what is"
                " left",
            )
            for op in ("get", "put")
        ),
        *_block_sparse(),
    ]  # fmt: skip


def _block_sparse() -> list[Row]:
    """Non-blocking OpenSHMEM over offpath, beside the host's library."""
    times = {(one["variant"], one["library"]): one for one in read("bspmm")["rows"]}
    ours = times["shmem-nbi", "offpath"]

    def less(what: str, variant: str, published: float, key: str, why: str) -> Row:
        saved = 100 * (1 - ours[key] / times[variant, "host"][key])
        return Row(
            Paper.ONE_SIDED, "VI-C, Fig. 10 and 11", what, Published.exactly(published, "%"), saved,
            Kind.MEASUREMENT, "bspmm", why,
        )  # fmt: skip

    computes = (
        "4 ranks take turns on one core, so most of the time is computing; the paper has 256 on 8 nodes"
    )
    return [
        less("BSPMM, less time than blocking gets", "shmem", 96, "total_s", computes),
        less("BSPMM, less time than non-blocking gets", "shmem-nbi", 76, "total_s", computes),
        less("the same, time of the gets", "shmem-nbi", 84, "get_s", "other scale"),
    ]
