"""`offpath study minimd-roofline`: minimd's loops over pairs, compared with the most that one core can do.

`minimd-roofline` counts the operations and bytes of each loop from the lists of a melted system. It times
each loop alone, and measures the core's multiply-adds and bandwidths with vectors of the same width. This
module runs it for all precisions and potentials, and draws the results.
"""

import json as jsonlib
import os
import subprocess
from pathlib import Path

from rich.table import Table

from offpath import console, stats
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.minimd.case import cells_of

PROGRAM = "minimd-roofline"
PRECISIONS = ("double", "single")
_LJ = ("lj", "1.0 1.0", "0.005", "1.44", "0.8442", "2.5 0.30")
_EAM = ("metal", "1.0 1.0", "0.001", "600", "0.07041125", "4.95 1.00")


def input_text(potential: str, cells: int, steps: int) -> str:
    """The input file of one of miniMD's own systems."""
    units, parameters, dt, temperature, density, cutoff = _LJ if potential == "lj" else _EAM
    return "\n".join(
        [
            "roofline",
            "",
            units,
            "none",
            potential,
            parameters,
            f"{cells} {cells} {cells}",
            str(steps),
            dt,
            temperature,
            density,
            "20",
            cutoff,
            "0",
            "",
        ]
    )


def measure(artifacts: Artifacts, atoms: int, steps: int, runs: int, cpu: int, folder: Path) -> dict:
    """The content of the JSON file. For each loop the fastest run counts, because the peaks are also those of
    an undisturbed core."""
    program = artifacts.program(PROGRAM)
    rows: list[dict] = []
    peaks: list[dict] = []
    for precision in PRECISIONS:
        for potential in ("lj", "eam"):
            file = folder / f"{potential}.in"
            file.write_text(input_text(potential, cells_of(atoms), steps))
            found = [
                _run([str(program), "-i", str(file), "--precision", precision, "--skin-check", "off"], cpu)
                for _ in range(runs)
            ]
            for loops in zip(*(each["loops"] for each in found), strict=True):
                rows.append(
                    {"precision": precision, "potential": potential, "atoms": atoms}
                    | min(loops, key=lambda loop: loop["ns_per_atom"])
                )
            peaks.extend({"precision": precision} | each["peaks"] for each in found)
    best = [
        _best(precision, [each for each in peaks if each["precision"] == precision])
        for precision in PRECISIONS
    ]
    for row in rows:
        peak = next(each for each in best if each["precision"] == row["precision"])
        row |= limits(row, peak)
    return {
        "study": "minimd-roofline",
        "environment": stats.environment(),
        "runs": runs,
        "peaks": best,
        "rows": rows,
    }


def limits(row: dict, peak: dict) -> dict:
    """The roofline's limits for a loop: by its operations, by what its loads and stores move in the smallest
    arrays, and by what must come from memory."""
    by_moved = row["flops_per_moved_byte"] * peak["memory"][0]["bytes_per_s"]
    by_least = row["flops_per_least_byte"] * peak["memory"][-1]["bytes_per_s"]
    limit = min(peak["flops_per_s"], by_moved, by_least)
    return {
        "limit_flops_per_s": limit,
        "limited_by": {peak["flops_per_s"]: "operations", by_moved: "loads and stores", by_least: "memory"}[
            limit
        ],
        "percent_of_limit": 100 * row["flops_per_s"] / limit,
        "percent_of_lanes_in_range": 100 * row["pairs_per_atom"] / row["tested_pairs_per_atom"],
    }


def _best(precision: str, peaks: list[dict]) -> dict:
    memory = [
        max(level, key=lambda each: each["bytes_per_s"])
        for level in zip(*(each["memory"] for each in peaks), strict=True)
    ]
    return {
        "precision": precision,
        "flops_per_s": max(each["flops_per_s"] for each in peaks),
        "memory": memory,
    }


def _run(line: list[str], cpu: int) -> dict:
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        env=os.environ
        | {"OFFPATH": "off", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    )
    if done.returncode != 0:
        raise OffpathError(Code.JOB_FAILED, f"{PROGRAM} failed: {done.stderr.strip()}", code=1)
    return jsonlib.loads(done.stdout.splitlines()[-1])


def show(found: dict) -> None:
    table = Table(title="minimd-roofline: loops over pairs on one core", title_justify="left")
    for name in (
        "precision",
        "loop",
        "lanes",
        "ns/atom",
        "pairs/atom",
        "% of lanes",
        "flops/atom",
        "flops/byte",
        "Gflop/s",
        "limit",
        "by",
        "%",
    ):
        table.add_column(name, justify="left" if name in ("precision", "loop", "by") else "right")
    for row in found["rows"]:
        table.add_row(
            row["precision"],
            row["loop"],
            str(row["lanes"]),
            f"{row['ns_per_atom']:.1f}",
            f"{row['pairs_per_atom']:.1f}",
            f"{row['percent_of_lanes_in_range']:.0f}",
            f"{row['flops_per_atom']:.0f}",
            f"{row['flops_per_moved_byte']:.2f}",
            f"{row['flops_per_s'] / 1e9:.1f}",
            f"{row['limit_flops_per_s'] / 1e9:.1f}",
            row["limited_by"],
            f"{row['percent_of_limit']:.0f}",
        )
    console.out.print(table)
    for peak in found["peaks"]:
        rates = ", ".join(f"{each['arrays']} {each['bytes_per_s'] / 1e9:.0f}" for each in peak["memory"])
        console.out.print(
            f"{peak['precision']}: {peak['flops_per_s'] / 1e9:.1f} Gflop/s of multiply-adds; GB/s in arrays"
            f" of {rates}",
            soft_wrap=True,
        )


def draw(found: dict, path: Path) -> None:
    from offpath.minimd import plot_roofline  # matplotlib is slow to load

    plot_roofline.draw(found, path)
