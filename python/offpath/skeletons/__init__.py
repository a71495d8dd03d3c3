"""Skeletons of programs: their calls of MPI and the time that they compute, for any number of ranks, without
the programs. docs/simulation.md describes them."""

import argparse
import dataclasses
import shlex
import statistics
import tempfile
from pathlib import Path
from types import ModuleType

from offpath import sim, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.skeletons import bspmm, fft3d, halo, minimd, profile_writer, ring_hpl
from offpath.skeletons import kernels as kernel_files
from offpath.skeletons.kernels import Kernels
from offpath.skeletons.machine import Machine

_PROGRAMS = {"bspmm": bspmm, "fft3d": fft3d, "halo": halo, "minimd": minimd, "ring-hpl": ring_hpl}
NAMES = tuple(_PROGRAMS)
MOST_RANKS = 4096  # each rank's file lists all ranks


def parse(line: str) -> tuple[ModuleType, argparse.Namespace]:
    """The program of a command line, and its options."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise OffpathError(Code.OPTION, f"--skeleton {line!r} is not understood: {error}") from error
    if not words:
        raise OffpathError(Code.OPTION, "no skeleton is named", "name one of " + ", ".join(NAMES))
    units.check_known([words[0]], "skeleton", NAMES)
    program = _PROGRAMS[words[0]]
    return program, program.parse(words[1:])


def write(line: str, machine: Machine, kernels: Kernels, folder: Path) -> list[float]:
    """Writes the profile of a command line, such as `fft3d --n 512`, with as many ranks as the machine has.
    Returns the seconds that each rank computes."""
    program, options = parse(line)
    if machine.ranks > MOST_RANKS:
        raise OffpathError(
            Code.OPTION, f"a skeleton of {machine.ranks} ranks is too large", f"use up to {MOST_RANKS}"
        )
    ranks = [program.write_rank(options, machine, rank, kernels) for rank in range(machine.ranks)]
    profile_writer.write(folder, line, ranks)
    return [rank.computes_s() for rank in ranks]


def simulate(
    line: str, spec: sim.SimSpec, artifacts: Artifacts, kernels: Path | None, folder: Path | None
) -> dict:
    """Simulates a skeleton. Returns what a replayed program gives, with its command line, and `compute_s`,
    the median of the ranks' computation. `kernels`: a file; `folder` keeps the profile."""
    figures = sim.read_figures(spec.platform)
    machine = Machine(
        spec.nodes,
        spec.ranks_per_node,
        *(
            spec.changes.get(name) or _rate(figures, name, spec.platform)
            for name in ("link_Bps", "inside_Bps")
        ),
    )
    with tempfile.TemporaryDirectory(prefix="offpath-skeleton-") as temporary:
        profile = folder or Path(temporary)
        computed = write(line, machine, kernel_files.read(kernels), profile)
        found = sim.simulate(dataclasses.replace(spec, program=profile), artifacts)
    del found["measured_s"], found["lost_calls"]
    return found | {"program": line, "compute_s": statistics.median(computed)}


def _rate(figures: dict, name: str, platform: str) -> float:
    figure = figures.get(name)
    value = figure.get("value") if isinstance(figure, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise OffpathError(
            Code.INPUT_FILE, f"{platform}: {name}: {value!r} is not accepted", "give a number above 0"
        )
    return value
