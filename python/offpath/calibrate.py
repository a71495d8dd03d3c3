"""Measures this machine, in the lab, and writes its figures as a platform file for `offpath sim`.

What a program can time is measured directly: copies, posting, a command's round trip. What only shows in
whole operations (work for a message and for a byte, the switch between processes of a core, the wake-up) is
fitted: the simulator runs the same operations, and the figures change until its times agree with the lab's.
"""

import json
import math
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, lab_times, stats, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import placement, turns
from offpath.lab_times import Point, Shape

MICRO = "offpath-bench-micro"
MICRO_NAMES = ("round_trip", "post", "memcpy", "cma")  # in what its benchmarks are called
TURN = "turn"  # beside these: how long the lab's turns last
# No configuration of validate.py is among these.
SHAPES = (
    Shape(2, "2gbit", "offpath"),
    Shape(3, "unlimited", "offpath"),
    Shape(2, "2gbit", "host"),
    Shape(3, "unlimited", "host"),
    Shape(5, "unlimited", "offpath"),
    Shape(5, "unlimited", "host"),
    Shape(2, "unlimited", "host", ranks_per_node=2),
)
POINTS = lab_times.points("isend ialltoall ibcast iallgather", "1K 16K 64K 256K 1M")
LABS = [(shape, POINTS) for shape in SHAPES]
BASE = "lab"  # what cannot be measured here comes from this platform

# Figures that are fitted, each with the fields that have it, by the engine whose times show it.
FITTED = {
    "offpath": (
        ("device.send_s", "device.receive_s"),
        ("device.send_byte_s", "device.receive_byte_s"),
        ("device.switch_s",),
        ("device.operation_s",),
        ("wake_s",),
    ),
    "host": (
        ("host.send_s",),
        ("host.receive_s",),
        ("host.send_byte_s", "host.receive_byte_s"),
        ("host.switch_s",),
        ("link_latency_s",),
        ("inside_latency_s",),
        ("inside_Bps",),
    ),
}
# What a figure can be at all in a lab. Times of whole operations could also be told by wrong figures that
# make up for each other, such as a long latency and no work.
LIMITS = {
    "host.send_s": (3e-6, 3e-5),  # a message passes both hosts' network stacks
    "host.receive_s": (5e-7, 3e-5),
    "host.send_byte_s": (2e-11, 1e-9),
    "host.switch_s": (1e-6, 1e-5),
    "link_latency_s": (2e-6, 3e-5),
    "inside_latency_s": (1e-7, 1e-5),
    "inside_Bps": (3e8, 2e10),
}
FACTORS = (3.0, 1.7, 1.25, 1.1)
FIT_REPETITIONS = 9  # of each simulation, of which a fit takes some hundreds
STARTS = (1.0, 0.25)  # the base's values times these
LEAST_S, LEAST_BYTE_S = 1e-8, 1e-12
# The ranges of Open MPI's protocols over TCP, and of the device's. Each gives one line of `protocols`.
RANGES = (("eager", 0, 16 << 10), ("middle", 16 << 10, 256 << 10), ("large", 256 << 10, 1 << 20))


@dataclass(frozen=True)
class Measured:
    """The lab's times of some points in one shape."""

    shape: Shape
    points: list[Point]
    rows: list[dict]

    def of_collectives(self) -> "Measured":
        """Without messages: with devices, the host's MPI library matches them, which is not simulated."""
        kept = [(p, row) for p, row in zip(self.points, self.rows, strict=True) if p.op != "isend"]
        return Measured(self.shape, [p for p, _ in kept], [row for _, row in kept])


def measure(artifacts: Artifacts, seconds: float) -> list[Measured]:
    return of_rows(lab_times.measure_in_rounds(LABS, artifacts, seconds))


def of_rows(rows: list[list[dict]]) -> list[Measured]:
    """What was measured in LABS, in their order."""
    return [Measured(shape, points, its) for (shape, points), its in zip(LABS, rows, strict=True)]


def kept(found: Mapping[str, list[float]], measured: list[Measured]) -> dict:
    """What was measured, as a file keeps it."""
    shapes = [{"lab": str(one.shape), "rows": one.rows} for one in measured]
    return {"environment": stats.environment(), "micro": dict(found), "shapes": shapes}


def read(file: Path) -> tuple[dict[str, list[float]], list[Measured]]:
    """What an earlier calibration measured, or a validation that calibrated."""
    try:
        content = json.loads(file.read_text())
        content = content.get("calibration", content)
        rows = {one["lab"]: one["rows"] for one in content["shapes"]}
        measured = [Measured(shape, POINTS, rows[str(shape)]) for shape in SHAPES]
        for one in measured:
            if [(row["op"], row["bytes"]) for row in one.rows] != [(p.op, p.size) for p in POINTS]:
                raise ValueError(f"other operations or sizes in {one.shape}")
        names = [*MICRO_NAMES, *({TURN} & set(content["micro"]))]
        return {name: [float(value) for value in content["micro"][name]] for name in names}, measured
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OffpathError(
            Code.INPUT_FILE, f"{file}: not written by `offpath calibrate --json`: {error!r}"
        ) from error


def micro(artifacts: Artifacts) -> dict[str, list[float]]:
    """Seconds of each repetition, or bytes per second of copies, by the benchmark's name."""
    names = "command_round_trip|post_and_complete/bytes:?/?8/|copy/(memcpy|cma)/bytes/1048576"
    with tempfile.TemporaryDirectory(prefix="offpath-calibrate-") as folder:
        file = Path(folder) / "micro.json"
        command = [
            str(artifacts.program(MICRO)), f"--benchmark_filter={names}", "--benchmark_min_time=0.1",
            "--benchmark_repetitions=5", f"--benchmark_out={file}", "--benchmark_out_format=json",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OffpathError(
                Code.JOB_FAILED, f"{MICRO} failed with code {done.returncode}\n{done.stderr.strip()}"
            )
        runs = json.loads(file.read_text())["benchmarks"]
    found: dict[str, list[float]] = {}
    for run in runs:
        if run.get("run_type") != "iteration":
            continue
        name = next(word for word in MICRO_NAMES if word in run["name"])
        value = run["bytes_per_second"] if name in ("memcpy", "cma") else run["real_time"] * 1e-9
        found.setdefault(name, []).append(value)
    length = turns.length_s(turns.DEFAULT_US, placement.place(2, 1, "split")[0].host[0])
    return found if length is None else found | {TURN: [length]}


def figure(values: list[float], what: str, factor: float = 1.0) -> dict:
    """A figure of a platform, with its spread and count."""
    scaled = [value * factor for value in values]
    found = stats.summarize(scaled)
    return {
        "value": found.median,
        "source": f"measured: {what}; median of {found.count}, {found.low:.4g} to {found.high:.4g}",
    }


def direct_figures(found: Mapping[str, list[float]]) -> dict:
    """The figures that programs time directly."""
    # A host posts, the command and the completion cross the ring, and the proxy needs a round.
    half = 0.5 * max(statistics.median(found["round_trip"]) - statistics.median(found["post"]), 2 * LEAST_S)
    crossing = half / statistics.median(found["round_trip"])
    figures = {
        "post_s": figure(found["post"], "a posted operation of 8 B"),
        "command_s": figure(found["round_trip"], "half of a round trip without the posting", crossing),
        "completion_s": figure(found["round_trip"], "half of a round trip without the posting", crossing),
        # A copy of the device within its host is a read and a write.
        "host_memory_Bps": figure(found["cma"], "copies of 1 MiB by cma, counted twice", 2),
    }
    for side in ("host", "device"):
        figures[f"{side}.copy_Bps"] = figure(found["memcpy"], "memcpy of 1 MiB")
    return figures


def loss(simulated: list[float], measured: list[float]) -> float:
    """The mean distance, as a share: 0.1 is about 10 %."""
    return statistics.mean(abs(math.log(s / m)) for s, m in zip(simulated, measured, strict=True))


def within_limits(name: str, value: float) -> float:
    low, high = LIMITS.get(name, (0.0, math.inf))
    return min(max(value, low), high)


def fit(values: dict[str, float], names: list[str], judge: Callable[[dict[str, float]], float]) -> float:
    """Changes the named values by factors, one after the other, as long as `judge` falls. Returns what it is
    in the end."""
    best = judge(values)
    for factor in FACTORS:
        improved = True
        for _ in range(3):
            if not improved:
                break
            improved = False
            for name in names:
                for change in (factor, 1 / factor):
                    tried = values | {name: within_limits(name, values[name] * change)}
                    found = judge(tried)
                    if found < best * 0.999:
                        best, improved = found, True
                        values[name] = tried[name]
                        break
    return best


def fit_from_anywhere(
    start: dict[str, float], judge: Callable[[dict[str, float]], float]
) -> tuple[float, dict[str, float]]:
    """The best of fits that begin in different places: one stays where no single change is for the better."""
    found = []
    for factor in STARTS:
        values = {name: within_limits(name, value * factor) for name, value in start.items()}
        found.append((fit(values, list(values), judge), values))
    return min(found, key=lambda one: one[0])


def fit_figures(figures: dict, measured: list[Measured], artifacts: Artifacts) -> dict[str, float]:
    """Fits what FITTED lists, in place. Returns the mean distance by engine."""
    distances = {}
    for engine in ("host", "offpath"):  # the device's times also depend on the link's latency
        groups = FITTED[engine]
        samples = [one for one in measured if one.shape.engine == engine]
        if engine == "offpath":
            samples = [one.of_collectives() for one in samples]
        wanted = [row["pure_s"] for one in samples for row in one.rows]

        def judge(values: dict[str, float], groups=groups, samples=samples, wanted=wanted) -> float:
            tried = dict(figures)
            for group in groups:
                for field in group:
                    tried[field] = {"value": values[group[0]], "source": "tried"}
            simulated = [
                row["time_s"]
                for one in samples
                for row in lab_times.simulate(tried, one.shape, one.points, artifacts, FIT_REPETITIONS)
            ]
            return loss(simulated, wanted)

        start = {
            group[0]: max(figures[group[0]]["value"], LEAST_BYTE_S if "byte" in group[0] else LEAST_S)
            for group in groups
        }
        distances[engine], values = fit_from_anywhere(start, judge)
        for group in groups:
            low, high = _range_of(values, group[0], judge, distances[engine])
            for field in group:
                figures[field] = {
                    "value": values[group[0]],
                    "source": f"measured: fitted to {len(wanted)} times in the lab, distance "
                    f"{100 * distances[engine]:.1f} %; {low:.3g} to {high:.3g} fit as well",
                }
    return distances


def _range_of(
    values: dict[str, float], name: str, judge: Callable[[dict[str, float]], float], best: float
) -> tuple[float, float]:
    """How far the value may change until the distance grows by a tenth."""
    ends = []
    for factor in (1 / 1.5, 1.5):
        at = values[name]
        for _ in range(3):
            if judge(values | {name: at * factor}) > best * 1.1:
                break
            at *= factor
        ends.append(at)
    return ends[0], ends[1]


def protocols(measured: list[Measured]) -> list[dict]:
    """For each engine and range of sizes: the time of a message without its bytes (L and o of both sides),
    and of a byte (G), by least squares over the messages of a ring between two nodes."""
    lines = []
    for one in measured:
        if one.shape.nodes != 2:
            continue
        messages = [
            (point.size, row) for point, row in zip(one.points, one.rows, strict=True) if point.op == "isend"
        ]
        for name, low, high in RANGES:
            inside = [(size, row) for size, row in messages if low < size <= high]
            if len(inside) < 2:
                inside = [(size, row) for size, row in messages if low <= size <= high]
            sizes = [size for size, _ in inside]
            times = [row["pure_s"] for _, row in inside]
            slope, start = statistics.linear_regression(sizes, times)
            lines.append(
                {
                    "engine": one.shape.engine,
                    "link": one.shape.link,
                    "range": name,
                    "bytes": [min(sizes), max(sizes)],
                    "latency_and_overheads_s": max(start, 0.0),
                    "G_s_per_byte": slope,
                    "o_s": statistics.median(row["post_s"] for _, row in inside),
                    "count": sum(row["count"] for _, row in inside),
                }
            )
    return lines


def shared_cores(found: Mapping[str, list[float]], cores: list[tuple[int, ...]] | None = None) -> dict:
    """Who has which cores in a lab of two nodes."""
    places = placement.place(2, 1, "split", cores)
    shared = places[0].host == places[1].host
    source = "measured: the lab's placement on this machine"
    alone = {"value": 0, "source": "ranks have cores of their own"}
    return {
        "cores": "shared" if shared else "own",
        "host_cores": {"value": len(places[0].host), "source": source},
        "device_cores": {"value": len(places[0].device), "source": source},
        "turn_s": turn(found) if shared else alone,
    }


def turn(found: Mapping[str, list[float]]) -> dict:
    """How long a process keeps a core that it shares in the lab."""
    if TURN not in found:
        return {"value": 0.004, "assumed": [0.001, 0.01]}
    return figure(found[TURN], f"the lab's turns of {turns.DEFAULT_US} us")


def platform(
    base: Mapping, found: Mapping[str, list[float]], measured: list[Measured], artifacts: Artifacts
) -> tuple[dict, dict[str, float]]:
    """The figures of this machine, and the mean distance of the fit by engine."""
    environment = stats.environment()
    figures = dict(base) | {
        "name": "measured",
        "description": f"the lab on {environment['cpu']}, Linux {environment['kernel']}; offpath calibrate",
    }
    figures |= shared_cores(found) | direct_figures(found)
    distances = fit_figures(figures, measured, artifacts)
    figures["protocols"] = protocols(measured)
    return figures, distances


def show(figures: Mapping, distances: Mapping[str, float]) -> None:
    table = Table(title="figures measured on this machine", title_justify="left")
    for column in ("field", "value", "source"):
        table.add_column(column)
    for name, value in figures.items():
        if isinstance(value, dict) and value.get("source", "").startswith("measured"):
            number = value["value"]
            text = (
                units.format_seconds(number)
                if name.endswith("_s") and "byte" not in name
                else f"{number:.4g}"
            )
            table.add_row(name, text, value["source"].removeprefix("measured: "))
    console.out.print(table)
    for engine, distance in distances.items():
        console.note(
            f"{engine}: the simulator is {100 * distance:.1f} % from the calibration's times on average"
        )
