"""Advice for a program on an emulated cluster: a profile from there, the prediction for it, and runs in turn
that check it. All times are from the end of MPI_Init to MPI_Finalize, of the rank that takes longest."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from offpath import advise, lab_times, preload, profiles
from offpath.advise import Advice
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster, LabSpec
from offpath.lab.mpi import Engine
from offpath.lab_times import Shape
from offpath.profiles import Profile

RUN_TIME = "liboffpath-run-time.so"


def record(cluster: Cluster, program: list[str], folder: Path) -> Profile:
    """Runs the program once on the host's MPI, with the profiler."""
    folder.mkdir(parents=True, exist_ok=True)
    library = cluster.artifacts.root / "lib" / profiles.LIBRARIES["openmpi"]
    _run(cluster, _with(mpi.HOST, library, cluster, OFFPATH_PROFILE=str(folder)), program)
    return profiles.read(folder)


def verify(cluster: Cluster, program: list[str], runs: int, scratch: Path) -> dict[str, float]:
    """Runs the program in turn without offload and with it."""
    times: dict[str, list[float]] = {mpi.HOST.name: [], mpi.OFFPATH.name: []}
    for run in range(runs):
        for engine in (mpi.HOST, mpi.OFFPATH):
            times[engine.name].append(run_time(cluster, engine, program, scratch / f"{engine.name}{run}"))
    return advise.measured_gain(times["host"], times["offpath"], "run_s") if runs else {}


def run_time(cluster: Cluster, engine: Engine, program: list[str], folder: Path) -> float:
    """Seconds of one run. `folder` is made for it."""
    folder.mkdir(parents=True)
    library = cluster.artifacts.root / "lib" / RUN_TIME
    _run(cluster, _with(engine, library, cluster, OFFPATH_RUN_TIME=str(folder)), program)
    found = [float(file.read_text()) for file in folder.iterdir()]
    if not found:
        raise OffpathError(
            Code.MPI_LIBRARY,
            "the program does not call MPI_Init and MPI_Finalize of C, so it cannot be timed",
        )
    return max(found)


def predict(lab: LabSpec, figures: Mapping, profile: Profile, scratch: Path, artifacts: Artifacts) -> Advice:
    """The advice for a profile of this lab, on a platform with its links and its attachment."""
    rate = lab.link.rate
    shape = Shape(lab.nodes, f"{rate}bit" if rate else "unlimited", "offpath", lab.dpu, lab.ranks_per_node)
    file = scratch / f"{figures['name']}.json"
    file.write_text(json.dumps(lab_times.platform_in_lab(figures, shape)))
    return advise.advise_on(profile, file, lab.nodes, artifacts, here=True)


def simulated_s(
    profile: Profile, figures: Mapping, shape: Shape, scratch: Path, artifacts: Artifacts
) -> float:
    """How long the replay of a profile takes with the engine of `shape`."""
    file = scratch / f"{figures['name']}.json"
    file.write_text(json.dumps(lab_times.platform_in_lab(figures, shape)))
    found = advise.replay(profile.folder, file, shape.nodes, shape.ranks_per_node, shape.engine, artifacts)
    return found["time_s"]


def _with(engine: Engine, library: Path, cluster: Cluster, **variables: str) -> Engine:
    if not library.exists():
        raise OffpathError(Code.NOT_INSTALLED, f"{library} is missing", "run `make build`")
    loaded = preload.variables(library, cluster.spec.environment)
    return replace(engine, environment=engine.environment | variables | loaded)


def _run(cluster: Cluster, engine: Engine, program: list[str]) -> None:
    result = cluster.run(engine, program, capture=True)
    if result.exit_code != 0:
        tail = "\n".join([*(result.stderr or result.stdout).strip().splitlines()[-8:], *result.complaints])
        raise OffpathError(
            Code.JOB_FAILED,
            f"{engine.label}: the program failed with code {result.exit_code}\n{tail}",
            code=result.exit_code,
        )
