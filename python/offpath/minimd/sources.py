"""The sources of a Case's outcome: the lab, or a simulator for runs that are not possible here.

A simulator is a function that takes a Case and returns an Outcome. With `--source MODULE:FUNCTION
--source-nodes 8,16` it supplies the runs on 8 and 16 nodes. Its rows stand beside the measured ones. Their
"source" is "MODULE:FUNCTION" instead of "lab".
"""

import importlib
import math
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from offpath import osu
from offpath.codes import Code
from offpath.device_ranks import DEVICE, HOST
from offpath.errors import OffpathError
from offpath.lab import device_ranks, mpi, placement
from offpath.lab.cluster import Cluster, measured
from offpath.minimd.case import (
    ALL,
    BALANCED,
    BLOCKING,
    DEVICES,
    HALO,
    HOSTS,
    OFFLOADED,
    OVERLAPPED,
    PAPER,
    POLLED,
    RUNTIME_BALANCED,
    RUNTIME_PAPER,
    SPLIT,
    THREADED,
    TOGETHER,
    TUNNEL,
    USES_DEVICES,
    Case,
    Cores,
    Outcome,
)

PROGRAM = "minimd"
TIMES = ("total_s", "force_s", "neigh_s", "comm_s", "other_s")
_FLAGS = {
    HOSTS: ["--where", "hosts"],
    DEVICES: ["--where", "devices"],
    ALL: ["--where", "all"],
    PAPER: ["--offpath", "paper"],
    BALANCED: ["--offpath", "balanced"],
    RUNTIME_PAPER: ["--offpath", "paper", "--device-kind", "runtime"],
    RUNTIME_BALANCED: ["--offpath", "balanced", "--device-kind", "runtime"],
    TUNNEL: ["--tunnel"],
    SPLIT: ["--split-boundary"],
    OFFLOADED: [],
    BLOCKING: ["--halo", "blocking"],
    OVERLAPPED: [],
    POLLED: ["--halo", "polled"],
    THREADED: [],
    HALO: ["--halo", "offloaded"],
    TOGETHER: [],
}
# The engines of schemes that need no device, or only the runtime's. The jobs of all other schemes have a
# device rank on each node. Hosts of several nodes may share a core. Hosts that wait for the runtime therefore
# sleep at once, just as mpi_yield_when_idle makes them yield in MPI.
_RUNTIME = replace(mpi.OFFPATH, front_end=False, environment={"OFFPATH_CLIENT_SPIN_US": "0"})
_ENGINES = {
    OFFLOADED: mpi.OFFPATH,
    BLOCKING: mpi.HOST,
    OVERLAPPED: mpi.HOST,
    POLLED: mpi.HOST,
    THREADED: mpi.ENGINES["host+thread"],
    HALO: _RUNTIME,
    RUNTIME_PAPER: _RUNTIME,
    RUNTIME_BALANCED: _RUNTIME,
    TOGETHER: mpi.HOST,
}


class Source(Protocol):
    @property
    def name(self) -> str: ...

    def run(self, case: Case) -> Outcome: ...


@dataclass(frozen=True)
class Supplied:
    """A simulator's function."""

    name: str
    function: Callable[[Case], Outcome]

    def run(self, case: Case) -> Outcome:
        try:
            outcome = self.function(case)
        except Exception as error:  # a simulator may raise anything
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise OffpathError(
                Code.JOB_FAILED,
                f"{self.name} failed for {case.name}: {type(error).__name__}: {error}",
                f"it was raised at {where.filename}:{where.lineno}",
            ) from error
        if not isinstance(outcome, Outcome):
            raise OffpathError(
                Code.WRONG_RESULTS,
                f"{self.name} returned {type(outcome).__name__} for {case.name}",
                "it must return an offpath.minimd.case.Outcome",
            )
        for time in TIMES:
            if not math.isfinite(getattr(outcome, time)):
                raise OffpathError(
                    Code.WRONG_RESULTS,
                    f"{self.name} returned {time} = {getattr(outcome, time)} for {case.name}",
                    "times are numbers of seconds",
                )
        return outcome


def load(text: str) -> Supplied:
    """The function that MODULE:FUNCTION names."""
    module, colon, function = text.partition(":")
    if not (module and colon and function):
        raise OffpathError(Code.OPTION, f"--source {text!r} is not understood", "write MODULE:FUNCTION")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise OffpathError(
            Code.OPTION, f"--source {text}: {error}", "PYTHONPATH must lead to the module"
        ) from error
    if not callable(found):
        raise OffpathError(Code.OPTION, f"--source {text} is not a function")
    return Supplied(text, found)


def input_file(case: Case) -> str:
    """The text of miniMD's input file, for settings that have no flag."""
    n = case.cells
    return "\n".join(
        [
            "Lennard-Jones",
            "",
            "lj",
            "none",
            "lj",
            "1.0 1.0",
            f"{n} {n} {n}",
            str(case.steps),
            "0.005",
            "1.44",
            "0.8442",
            str(case.interval),
            f"2.5 {case.skin:g}",
            str(case.thermo_every),
            "",
        ]
    )


def flags(case: Case) -> list[str]:
    words = [
        *_FLAGS[case.scheme],
        "-t",
        str(case.threads),
        "--precision",
        case.precision,
        "--skin-check",
        "off",
    ]
    if case.scheme in USES_DEVICES:
        words += [
            "--device-threads",
            str(case.device_threads),
            "--device-slowness",
            str(case.device_slowness),
        ]
    if case.intensity != 1:
        words += ["--intensity", str(case.intensity)]
    return words


@dataclass
class LabSource:
    """Runs on the first nodes of a cluster that is up. A job with device ranks has one device rank on each
    node. It waits if the scheme has no work for it."""

    cluster: Cluster
    name: str = "lab"
    _inputs: int = field(default=0, init=False)

    def run(self, case: Case) -> Outcome:
        cluster = (
            self.cluster.first(1, case.nodes * case.ranks_per_node)
            if case.scheme == TOGETHER
            else self.cluster.first(case.nodes)
        )
        file = self._write_input(case)
        line = [str(cluster.artifacts.program(PROGRAM)), "-i", str(file), *flags(case), "--json", "-"]
        if case.scheme in _ENGINES:
            result = cluster.run(_ENGINES[case.scheme], line, capture=True)
        else:
            groups = device_ranks.everywhere(case.nodes, case.ranks_per_node, 1)
            if case.wide:
                groups = self._spread(groups, DEVICE if case.scheme == DEVICES else HOST)
            layout = device_ranks.Layout(groups, device_ranks.device_command(cluster.spec.dpu, line, None))
            result = cluster.run(mpi.HOST, line, capture=True, layout=layout)
        file.unlink()
        said = measured(result, case.name, verifies=False)
        if said["atoms"] != case.atoms or said["steps"] != case.steps:
            raise OffpathError(
                Code.WRONG_RESULTS,
                f"{case.name}: minimd ran {said['atoms']} atoms for {said['steps']} steps",
                code=1,
            )
        if case.scheme == HALO and said["halo"] != "offloaded":
            raise OffpathError(
                Code.WRONG_RESULTS,
                f"{case.name}: the devices did not move the ghosts\n{result.stderr}".rstrip(),
                code=1,
            )
        crossed = (
            sum(node.sent + node.received for node in result.pcie_bytes) if cluster.spec.remote else None
        )
        on_core = said["on_core_s"]
        return Outcome(
            **{key: said[key] for key in TIMES},
            thermo=said["thermo"],
            computing_s=said["computing_s"],
            on_core=(on_core["force"], on_core["neigh"], on_core["comm"]),
            device_bytes=crossed,
        )

    def cores(self, nodes: int) -> Cores:
        """The cores of the first `nodes` nodes."""
        places = self.cluster.placements[:nodes]
        return Cores(
            len({cpu for place in places for cpu in place.host}),
            len({cpu for place in places for cpu in place.device}),
        )

    def device_rate(self) -> float:
        """Bytes per second of long messages from a host to its own device."""
        program = str(self.cluster.artifacts.program(osu.PROGRAM))
        line = [
            program,
            "--test",
            "bw",
            "--sizes",
            str(2**20),
            "--window",
            "4",
            "--seconds",
            "0.3",
            "--json",
            "-",
        ]
        cluster = self.cluster.first(1)
        layout = device_ranks.Layout(
            osu.places("bw", osu.HOST_DPU, 1, 1), device_ranks.device_command(cluster.spec.dpu, line, None)
        )
        said = measured(
            cluster.run(mpi.HOST, line, capture=True, layout=layout), "bandwidth between host and device"
        )
        return said["rows"][0]["value"] * 1e6

    def _spread(self, groups: list[device_ranks.Group], kind: str) -> list[device_ranks.Group]:
        """Distributes the ranks of `kind` over all cores, with the same number of cores for each node. The
        other ranks only wait, and keep their cores."""
        cores = placement.physical_cores(os.sched_getaffinity(0))
        nodes = 1 + max(group.node for group in groups)
        share = max(1, len(cores) // nodes)
        return [
            (
                replace(
                    group,
                    cpus=tuple(
                        cpu for at in range(share) for cpu in cores[(group.node * share + at) % len(cores)]
                    ),
                )
                if group.kind == kind
                else group
            )
            for group in groups
        ]

    def _write_input(self, case: Case) -> Path:
        path = self.cluster.room / f"minimd{self._inputs}.in"
        self._inputs += 1
        path.write_text(input_file(case))
        return path
