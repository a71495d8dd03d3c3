"""Measures the cost of operations on the host's MPI and on the device, and writes the table by which the
front end chooses.

Both engines run the same program, offpath-bench-mpi calibrate, in turn. On both, the computation between post
and wait takes as long as the host's pure time, so that the fractions that they hide are comparable.
"""

import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import JustifyMethod
from rich.table import Table

from offpath import collectives, console, metrics, units
from offpath.bench import PROGRAM
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster
from offpath.lab.mpi import Engine
from offpath.last_words import last_words
from offpath.tuning_table import DEVICE, HOST, device_pays

_MEASURED = [row for row in collectives.read() if row.shape and row.has_data]
OPERATIONS = tuple(row.op for row in _MEASURED)
DEFAULT_OPERATIONS = tuple(row.op for row in _MEASURED if "tune" in row.traits)
# For these operations, the front end decides by the bytes of the whole result, not by those of one rank.
_WHOLE_RESULT = {row.op for row in _MEASURED if row.bytes == "blocks"}
# During the measurement, everything that a device can do goes to it.
EVERYTHING = {"OFFPATH_MIN_BYTES": "0", "OFFPATH_OPS": "all"}

# Runs the program with these arguments on an engine (HOST or DEVICE), and returns the object on its last
# line.
Measure = Callable[[str, list[str]], dict]


@dataclass(frozen=True)
class TuneSpec:
    operations: list[str]
    sizes: list[int]
    runs: int = 3
    seconds: float = 0.3  # seconds to measure one size in one run

    def check(self) -> None:
        for value, name, low, high in ((self.runs, "--runs", 1, 100), (self.seconds, "--seconds", 0.001, 60)):
            if not low <= value <= high:
                raise OffpathError(
                    Code.OPTION, f"{name} {value:g} is out of range", f"use {low:g} to {high:g}"
                )


def in_lab(cluster: Cluster) -> Measure:
    program = str(cluster.artifacts.program(PROGRAM))
    engines = {HOST: mpi.HOST, DEVICE: Engine(DEVICE, "the device", offload=True, environment=EVERYTHING)}

    def measure(engine: str, arguments: list[str]) -> dict:
        result = cluster.run(engines[engine], [program, *arguments, "--shared-clock"], capture=True)
        for complaint in result.complaints:
            console.warn(Code.JOB_FAILED, f"{engine}: {complaint}")
        return _said(engine, result.exit_code, result.stdout, result.stderr)

    return measure


def with_launcher(launcher: list[str], program: Path) -> Measure:
    """Measures on real nodes. `launcher` is the command line of mpirun or srun without the program."""

    def measure(engine: str, arguments: list[str]) -> dict:
        environment = dict(os.environ)
        line = [*launcher, str(program), *arguments]
        if engine == HOST:
            environment["OFFPATH"] = "off"
        else:
            environment |= EVERYTHING
            if Path(launcher[0]).name in ("mpirun", "mpiexec", "orterun"):
                exports = [word for name, value in EVERYTHING.items() for word in ("-x", f"{name}={value}")]
                line = [launcher[0], *exports, *line[1:]]
            line = [sys.executable, "-m", "offpath", "run", "--verbose", "0", "--", *line]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return _said(engine, done.returncode, done.stdout, done.stderr)

    return measure


def _said(engine: str, code: int, stdout: str, stderr: str) -> dict:
    said = metrics.last_json_object(stdout)
    if code != 0 or said is None:
        tail = last_words(stdout, stderr)
        raise OffpathError(
            Code.JOB_FAILED,
            f"measuring on the {engine} failed with code {code}\n{tail}".rstrip(),
            code=code or 1,
        )
    if not said["verified"]:
        raise OffpathError(Code.WRONG_RESULTS, f"the {engine} gave wrong data", code=1)
    return said


def calibrate(spec: TuneSpec, measure: Measure) -> list[dict]:
    """The rows of the table, as medians over the runs."""
    found = []
    with console.progress() as progress:
        task = progress.add_task("", total=len(spec.operations) * spec.runs * 2)
        for operation in spec.operations:
            taken: dict[str, list[dict]] = {HOST: [], DEVICE: []}
            for run in range(spec.runs):
                for engine, runs in taken.items():
                    progress.update(task, description=f"{operation}, run {run + 1} of {spec.runs}: {engine}")
                    arguments = [
                        "calibrate",
                        "--op",
                        operation,
                        "--sizes",
                        ",".join(map(str, spec.sizes)),
                        "--seconds",
                        str(spec.seconds),
                    ]
                    if taken[HOST]:
                        arguments += [
                            "--compute-s",
                            ",".join(f"{max(one['pure_s'], 1e-6):.9f}" for one in _medians(taken[HOST])),
                        ]
                    runs.append(measure(engine, [*arguments, "--json", "-"]))
                    progress.advance(task)
            found += rows(operation, taken)
    return found


def rows(operation: str, taken: dict[str, list[dict]]) -> list[dict]:
    first = taken[HOST][0]
    if first["ranks"] < 2:
        raise OffpathError(
            Code.NOTHING_TO_DO, "a job with one rank does not communicate", "start two ranks or more"
        )
    factor = first["ranks"] if operation in _WHOLE_RESULT else 1
    shape = {"op": operation, "ranks": first["ranks"], "nodes": first["nodes"]}
    engines = {engine: _medians(runs) for engine, runs in taken.items()}
    return [
        shape
        | {"bytes": size["bytes"] * factor}
        | {engine: {key: of[i][key] for key in ("pure_s", "overlap")} for engine, of in engines.items()}
        for i, size in enumerate(first["rows"])
    ]


def _medians(runs: list[dict]) -> list[dict]:
    return [
        {key: statistics.median(run["rows"][i][key] for run in runs) for key in ("pure_s", "overlap")}
        for i in range(len(runs[0]["rows"]))
    ]


def show(found: list[dict], where: str) -> None:
    table = Table(title=f"tuning: {where}", title_justify="left")
    columns: tuple[tuple[str, JustifyMethod], ...] = (
        ("operation", "left"),
        ("bytes", "right"),
        ("host", "right"),
        ("hidden", "right"),
        ("device", "right"),
        ("hidden", "right"),
        ("choice", "left"),
    )
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=True)
    previous = None
    for row in found:
        if previous not in (None, row["op"]):
            table.add_section()
        previous = row["op"]
        cells = [
            units.format_seconds(row[e]["pure_s"]) if kind == "pure" else f"{100 * row[e]['overlap']:.0f} %"
            for e in (HOST, DEVICE)
            for kind in ("pure", "hidden")
        ]
        table.add_row(
            row["op"], units.format_size(row["bytes"]), *cells, "device" if device_pays(row) else "host"
        )
    console.out.print(table)
    console.out.print(
        "hidden: by a computation as long as the host's operation; choice: where nothing else is known"
        " (docs/tuning.md)"
    )


def describe_launcher(launcher: list[str]) -> str:
    return shlex.join(launcher)
