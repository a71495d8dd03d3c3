"""Compares the simulator with the lab, configuration by configuration, on a calibrated platform."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from offpath import calibrate, console, drawn_configurations, lab_times, stats, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab_times import Point, Shape, points
from offpath.last_words import last_words
from offpath.validation_summary import error_of, summary

# A set is shapes of the lab with the points that are measured in each, or programs with their arguments,
# which run without offload and with it. None is one of calibrate.py's.
Set = list[tuple[Shape, list[Point]]]


@dataclass(frozen=True)
class Program:
    nodes: int
    link: str
    line: str


ENGINES = ("host", "offpath")


def _read(group: str) -> dict[str, Set]:
    """The sets of a group in configurations.json. There, `points` has sizes by operations, as words."""
    with (Path(__file__).parent / "configurations.json").open() as file:
        sets = json.load(file)[group]
    return {name: _set(lab) for name, lab in sets.items() if "points" in lab}


def _set(lab: Mapping) -> Set:
    return [
        (
            Shape(lab["nodes"], lab["link"], engine, lab.get("dpu", "local"), lab.get("ranks_per_node", 1)),
            [point for ops, sizes in lab["points"].items() for point in points(ops, sizes)],
        )
        for engine in lab.get("engines", ENGINES)
    ]


def _read_programs(group: str) -> dict[str, list[Program]]:
    with (Path(__file__).parent / "configurations.json").open() as file:
        sets = json.load(file)[group]
    return {
        name: [Program(**one) for one in lab["programs"]] for name, lab in sets.items() if "programs" in lab
    }


# Configurations that were looked at while the model was made. Its parts and algorithms were chosen with them.
KNOWN = _read("known")
# Configurations that were fixed before any of them ran. The rule: every size is three quarters of a power of
# two, so it lies between two sizes of the other configurations; and every shape has another number of nodes,
# of ranks a node, or another link than the known ones, or operations that those have not.
BLIND = _read("blind")
# Another such group, with programs. Its sizes are five eighths of powers of two. It was fixed after the
# others had been looked at, and before any of it ran.
FRESH = _read("fresh")
# One more, with other programs. Its sizes are seven eighths of powers of two. It was fixed after all others
# had been looked at, and before any of it ran.
LAST = _read("last")
# And one more, by the same rule; sizes are eleven sixteenths of powers of two.
SEALED = _read("sealed")
_PROGRAMS_BY_GROUP = {name: _read_programs(name) for name in ("fresh", "last", "sealed")}
PROGRAMS = {name: its for programs in _PROGRAMS_BY_GROUP.values() for name, its in programs.items()}
SETS = KNOWN | BLIND | FRESH | LAST | SEALED
GROUPS: dict[str, Mapping] = {
    "known": KNOWN,
    "blind": BLIND,
    "fresh": FRESH | _PROGRAMS_BY_GROUP["fresh"],
    "last": LAST | _PROGRAMS_BY_GROUP["last"],
    "sealed": SEALED | _PROGRAMS_BY_GROUP["sealed"],
}


def drawn(seed: int) -> Set:
    """The set that the seed draws. It has no size of the other sets, nor of the calibration."""
    return [pair for lab in drawn_configurations.draw(seed) for pair in _set(lab)]


def _labs_of(name: str) -> Set:
    seed = drawn_configurations.seed_of(name)
    return SETS.get(name, []) if seed is None else drawn(seed)


def _groups_of(names: list[str]) -> dict[str, Collection[str]]:
    """The groups, and each drawn set as one."""
    return {**GROUPS, **{name: {name} for name in names if drawn_configurations.seed_of(name) is not None}}


def choose(text: str) -> list[str]:
    """The names of sets that a list names: sets, `known` or `blind` for the sets of a group, `drawn:SEED`, or
    `all` for those that were chosen."""
    if text == "all":
        return [*SETS, *PROGRAMS]
    named = units.split_list(text, "sets")
    chosen = [name for name in named if drawn_configurations.seed_of(name) is None]
    units.check_known(chosen, "set", [*SETS, *PROGRAMS, *GROUPS, f"{drawn_configurations.PREFIX}SEED"])
    return list(dict.fromkeys(name for one in named for name in GROUPS.get(one, {one: None})))


def compare(
    figures: Mapping, names: list[str], artifacts: Artifacts, seconds: float, calibrates: bool = False
) -> tuple[dict, Mapping]:
    """The comparison, and the platform that it used. With `calibrates`, that is `figures` with what the
    calibration's operations give, which are measured in the same rounds."""
    rows = []
    labs = [(name, shape, wanted) for name in names for shape, wanted in _labs_of(name)]
    first = calibrate.LABS if calibrates else []
    times = lab_times.measure_in_rounds(
        [*first, *((shape, wanted) for _, shape, wanted in labs)], artifacts, seconds
    )
    kept = {}
    if calibrates:
        direct, fitted = calibrate.micro(artifacts), calibrate.of_rows(times[: len(first)])
        kept = {"calibration": calibrate.kept(direct, fitted)}
        figures, distances = calibrate.platform(figures, direct, fitted, artifacts)
        calibrate.show(figures, distances)
        times = times[len(first) :]
    for (name, shape, wanted), measured in zip(labs, times, strict=True):
        simulated = lab_times.simulate(figures, shape, wanted, artifacts)
        rows += [
            _row(name, shape, point, real, said)
            for point, real, said in zip(wanted, measured, simulated, strict=True)
        ]
    for name in names:
        for program in PROGRAMS.get(name, []):
            console.note(f"{name}: {program.line}")
            rows += run_program(figures, name, program, artifacts)
    found = {"platform": figures["name"], "environment": stats.environment(), "rows": rows} | kept
    return found | summary(rows, _groups_of(names)), figures


def again(figures: Mapping, found: Mapping, names: list[str], artifacts: Artifacts) -> dict:
    """Simulates the configurations of an earlier comparison again, beside its measured times."""
    measured = {_key(row): row for row in found["rows"]}
    rows = []
    for name in names:
        # What is simulated of a program depends on its profile, which the file does not have.
        rows += [row for row in found["rows"] if row["set"] == name and name in PROGRAMS]
        for shape, wanted in _labs_of(name):
            kept = [point for point in wanted if (name, str(shape), str(point)) in measured]
            if not kept:
                continue
            for point, said in zip(kept, lab_times.simulate(figures, shape, kept, artifacts), strict=True):
                row = measured[name, str(shape), str(point)]
                rows.append(
                    row
                    | {"simulated_s": said["time_s"], "error": error_of(said["time_s"], row["measured_s"])}
                )
    if not rows:
        raise OffpathError(
            Code.OPTION, "--measured: none of the chosen configurations is there", "see --sets"
        )
    return {"platform": figures["name"], "environment": found.get("environment"), "rows": rows} | summary(
        rows, _groups_of(names)
    )


def read(files: list[Path]) -> dict:
    """What earlier comparisons found, together."""
    rows = []
    for file in files:
        try:
            rows += json.loads(file.read_text())["rows"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OffpathError(
                Code.INPUT_FILE, f"{file}: not written by `offpath sim --validate`: {error!r}"
            ) from error
    return {"rows": rows}


def run_program(figures: Mapping, name: str, program: Program, artifacts: Artifacts) -> list[dict]:
    """Two rows, without offload and with it. The simulator replays the profile of a run without offload,
    which took `profiled_s`."""
    words = program.line.split()
    with tempfile.TemporaryDirectory(prefix="offpath-validate-") as folder:
        platform, found = Path(folder) / "platform.json", Path(folder) / "found.json"
        platform.write_text(json.dumps(figures))
        command = [
            sys.executable, "-m", "offpath", "lab", "advise", f"--nodes={program.nodes}",
            f"--link={program.link}", "--runs=3", f"--platform={platform}", f"--json={found}", "--",
            str(artifacts.program(words[0])), *words[1:],
        ]  # fmt: skip
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            tail = last_words(done.stdout, done.stderr, 8)
            raise OffpathError(Code.JOB_FAILED, f"{program.line} failed with code {done.returncode}\n{tail}")
        said = json.loads(found.read_text())
    rows = []
    for engine in ENGINES:
        shape = Shape(program.nodes, program.link, engine)
        measured, simulated = said["verified"][f"{engine}_run_s"], said[f"{engine}_s"]
        rows.append(
            {
                "set": name,
                "lab": str(shape),
                "engine": engine,
                "dpu": "local",
                "nodes": program.nodes,
                "link": program.link,
                "op": program.line,
                "bytes": 0,
                "measured_s": measured,
                "count": said["verified"]["runs"],
                "profiled_s": said["measured_s"],
                "simulated_s": simulated,
                "error": error_of(simulated, measured),
            }
        )
    return rows


def _key(row: Mapping) -> tuple[str, str, str]:
    return row["set"], row["lab"], f"{row['op']} {units.format_size(row['bytes'])}"


def _row(name: str, shape: Shape, point: Point, measured: Mapping, simulated: Mapping) -> dict:
    if not measured["verified"]:
        raise OffpathError(Code.WRONG_RESULTS, f"{point} brought wrong bytes in the lab ({shape})")
    return {
        "set": name,
        "lab": str(shape),
        "engine": shape.engine,
        "dpu": shape.dpu,
        "nodes": shape.nodes,
        "link": shape.link,
        "op": point.op,
        "bytes": point.size,
        "measured_s": measured["pure_s"],
        "low_s": measured["low_s"],
        "high_s": measured["high_s"],
        "rounds_s": measured["rounds_s"],
        "count": measured["count"],
        "simulated_s": simulated["time_s"],
        "error": error_of(simulated["time_s"], measured["pure_s"]),
    }
