"""`offpath bench programs`: whole programs with the default settings, without and with offload in turn.

Each round runs a program four times: without offload, with it as a first run, with it as a later run, which
has an earlier run's signature, and without it again. The two runs without it tell how much equal runs differ.
"""

import itertools
import math
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rich.table import Table

from offpath import console, metrics, reports, stats, timing_lines, units
from offpath.artifacts import Artifacts, for_command
from offpath.codes import Code
from offpath.compare import main_time
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster
from offpath.lab.mpi import Engine
from offpath.last_words import last_words

LISTED = Path(__file__).parent / "programs.json"
KINDS = ("off", "first", "later", "off again")
TOLERANCE = 0.02  # a smaller difference is none
CHANCE = 0.05
FASTER, SAME, UNCLEAR, SLOWER = "faster", "within 2 %", "not told apart", "slower"


@dataclass(frozen=True)
class Program:
    name: str
    about: str
    command: list[str]
    files: dict[str, list[str]] = field(default_factory=dict)  # lines of files in the working directory


@dataclass(frozen=True)
class Ran:
    exit_code: int
    wall_s: float
    stdout: str
    stderr: str


Runner = Callable[[str, list[str], Path], Ran]  # kind, program, directory of the kind's signatures


def read(path: Path, only: list[str], artifacts: Artifacts) -> list[Program]:
    """The programs of a list, or those named. An optional program that is not installed is left out, unless
    it is named."""
    listed = reports.read(path)
    if not isinstance(listed, dict) or not all(_is_program(entry) for entry in listed.values()):
        raise OffpathError(
            Code.INPUT_FILE, f"{path} is no list of programs", f"{LISTED} is one; docs/tuning.md describes it"
        )
    for name in only:
        if name not in listed:
            raise OffpathError(Code.OPTION, f"program {name!r} is not listed", "use " + ", ".join(listed))
    found = []
    for name in only or listed:
        entry = listed[name]
        first, *arguments = shlex.split(entry["command"])
        if "/" not in first and (artifacts.root / "bin" / first).exists():
            first = str(artifacts.program(first))
        elif (installed := shutil.which(first)) is not None:
            first = os.path.abspath(installed)  # programs run in directories of their own
        elif entry.get("optional") and not only:
            console.note(f"{name}: left out, since {first} is not installed")
            continue
        else:
            raise OffpathError(Code.NOT_INSTALLED, f"{name}: {first} is neither built nor in PATH")
        found.append(Program(name, entry.get("about", ""), [first, *arguments], entry.get("files", {})))
    return found


def _is_program(entry) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        return False
    files = entry.get("files", {})
    return (
        bool(entry["command"].strip())
        and isinstance(files, dict)
        and all(
            isinstance(lines, list) and all(isinstance(line, str) for line in lines)
            for lines in files.values()
        )
    )


def in_lab(cluster: Cluster) -> Runner:
    def run(kind: str, program: list[str], signatures: Path) -> Ran:
        engine: Engine = mpi.HOST
        if kind in ("first", "later"):
            engine = replace(mpi.OFFPATH, environment={"OFFPATH_SIGNATURES": str(signatures)})
        result = cluster.run(engine, program, capture=True)
        return Ran(result.exit_code, result.wall_s, result.stdout, result.stderr)

    return run


def on_this_machine(ranks: int, timeout_s: float) -> Runner:
    """mpirun as a user types it, alone and under `offpath run`, whose own start counts too."""

    def run(kind: str, program: list[str], signatures: Path) -> Ran:
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *program]
        environment = dict(os.environ)
        if kind in ("first", "later"):
            command = [sys.executable, "-m", "offpath", "run", "--", *command]
            environment = for_command(environment) | {"OFFPATH_SIGNATURES": str(signatures)}
        started = time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=environment, timeout=timeout_s
            )
        except subprocess.TimeoutExpired as expired:
            raise OffpathError(
                Code.JOB_FAILED, f"{program[0]} took more than {timeout_s:g} s ({kind})"
            ) from expired
        return Ran(done.returncode, time.monotonic() - started, done.stdout, done.stderr)

    return run


def measure(programs: list[Program], run: Runner, runs: int) -> list[dict]:
    rows = []
    with console.progress() as progress:
        task = progress.add_task("", total=len(programs) * (2 + runs * len(KINDS)))

        def advance(text: str) -> None:
            progress.update(task, description=text)
            progress.advance(task)

        for program in programs:
            with tempfile.TemporaryDirectory(prefix="offpath-programs-") as folder:
                rows.append(_measure(program, run, runs, Path(folder), advance))
    return rows


def _measure(program: Program, run: Runner, runs: int, folder: Path, advance: Callable[[str], None]) -> dict:
    for name, lines in program.files.items():
        (folder / name).write_text("\n".join([*lines, ""]))
    learned = folder / "signatures"
    taken: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    failures: list[str] = []
    # Two runs that are not counted: they warm caches, and leave the signature for the later runs.
    turns = [(kind, 0) for kind in ("off", "later")]
    for index in range(1, runs + 1):
        turns += [(kind, index) for kind in (KINDS if index % 2 else KINDS[::-1])]
    before = Path.cwd()
    os.chdir(folder)
    try:
        for kind, index in turns:
            signatures = folder / f"none{index}" if kind == "first" else learned
            signatures.mkdir(exist_ok=True)
            ran = run(kind, program.command, signatures)
            advance(f"{program.name}: {kind}")
            if ran.exit_code != 0:
                tail = last_words(ran.stdout, ran.stderr, 8)
                failures.append(f"{kind}, run {index}: code {ran.exit_code}\n{tail}")
                break
            if index > 0:
                taken[kind].append(_times(ran))
    finally:
        os.chdir(before)
    row: dict = {
        "program": program.name,
        "about": program.about,
        "command": program.command,
        "failures": failures,
    }
    if not failures:
        own = main_time(
            {
                name: {"off": asdict(stats.summarize([each[name] for each in taken["off"] if name in each]))}
                for name in taken["off"][0]
            }
        )
        row["time"] = own
        row["whole"] = summarize(taken, metrics.WALL)
        row["own"] = summarize(taken, own)
    return row


def _times(ran: Ran) -> dict[str, float]:
    said = metrics.last_json_object(ran.stdout)
    return (
        {metrics.WALL: ran.wall_s}
        | timing_lines.seconds(metrics.plain_output(ran.stdout))
        | metrics.measurements(said)
    )


def summarize(taken: dict[str, list[dict[str, float]]], time_name: str) -> dict:
    """For one kind of time: the medians, and what offload changes in first and in later runs."""
    values = {kind: [one[time_name] for one in taken[kind]] for kind in KINDS}
    pairs = list(zip(values["off"], values["off again"], strict=True))
    return {
        "off_s": statistics.median([*values["off"], *values["off again"]]),
        "noise": statistics.median(max(a, b) / min(a, b) - 1 for a, b in pairs),
        **{kind: compared(pairs, values[kind]) for kind in ("first", "later")},
        "runs": values,
    }


def compared(pairs: list[tuple[float, float]], ons: list[float]) -> dict:
    """Times with offload relative to the two times without it of the same round. `chance` says how often
    equal programs differ as much."""
    ratios = [on / math.sqrt(a * b) for on, (a, b) in zip(ons, pairs, strict=True)]
    ratio, chance = statistics.median(ratios), chance_of_equals(pairs, ons)
    return {
        "median_s": statistics.median(ons),
        "ratio": ratio,
        "low": min(ratios),
        "high": max(ratios),
        "chance": chance,
        "verdict": verdict(ratio, chance),
    }


def chance_of_equals(pairs: list[tuple[float, float]], ons: list[float]) -> float:
    """If offload made no difference, any of the three times of a round could as well be the one with offload.
    This is the share of such exchanges whose distance is at least as large as what was measured."""
    distances = []  # of each time of a round from the other two, as logarithms
    for on, (a, b) in zip(ons, pairs, strict=True):
        logs = [math.log(value) for value in (on, a, b)]
        distances.append([1.5 * each - 0.5 * sum(logs) for each in logs])
    measured = abs(sum(of_round[0] for of_round in distances))
    most = 20_000
    exchanges: Iterable = itertools.product(*distances)
    if 3 ** len(distances) > most:
        draw_one = random.Random(1)
        exchanges = ([draw_one.choice(of_round) for of_round in distances] for _ in range(most))
    found = [abs(sum(exchange)) >= measured * (1 - 1e-9) for exchange in exchanges]
    return sum(found) / len(found)


def verdict(ratio: float, chance: float) -> str:
    if abs(ratio - 1) <= TOLERANCE:
        return SAME
    if chance > CHANCE:
        return UNCLEAR
    return FASTER if ratio < 1 else SLOWER


def report(rows: list[dict], lab: dict, runs: int) -> dict:
    return {
        "benchmark": "programs",
        "lab": lab,
        "environment": stats.environment(),
        "runs": runs,
        "tolerance": TOLERANCE,
        "rows": rows,
    }


def show(found: dict) -> None:
    for part, title in (("own", "the program's own time"), ("whole", "from the start of mpirun to its end")):
        table = Table(
            title=f"{title}: {found['lab']['description']}; {found['runs']} rounds", title_justify="left"
        )
        table.add_column("program", no_wrap=True)
        for name in ("off", "noise", "first run", "later run", "range"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        for row in found["rows"]:
            if row["failures"]:
                table.add_row(row["program"], *["-"] * 5, "failed")
                continue
            entry = row[part]
            first, later = entry["first"], entry["later"]
            table.add_row(
                row["program"],
                units.format_seconds(entry["off_s"]),
                f"{100 * entry['noise']:.1f} %",
                f"{first['ratio']:.3f}" + (" (slower)" if first["verdict"] == SLOWER else ""),
                f"{later['ratio']:.3f}",
                f"{later['low']:.2f}-{later['high']:.2f}",
                later["verdict"],
            )
        console.out.print(table)
    console.out.print(
        "ratios: time with offload relative to the runs without it before and after; noise: how much those"
        " two differ; verdict: of later runs",
        soft_wrap=True,
    )
    for row in found["rows"]:
        for failure in row["failures"]:
            console.warn(Code.JOB_FAILED, f"{row['program']}, {failure}")
    good = [row for row in found["rows"] if not row["failures"]]
    slower = [row["program"] for row in good if row["own"]["later"]["verdict"] == SLOWER]
    console.out.print(
        f"{len(good)} programs, {len(slower)} of them slower than without offload by more than 2 %"
        + (f": {', '.join(slower)}" if slower else "")
    )


def draw(found: dict, path: Path) -> None:
    from offpath import programs_plot  # matplotlib is slow to load

    programs_plot.draw(found, path)
