"""Advice for a program on an emulated cluster: profiles from there, the prediction for the one in the middle,
and runs in turn that check it. All times are from the end of MPI_Init to MPI_Finalize, of the rank that takes
longest."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from offpath import advise, lab_times, outputs, preload, profiles
from offpath.advise import Advice
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster, LabSpec
from offpath.lab.mpi import Engine
from offpath.lab_times import Shape
from offpath.last_words import last_words
from offpath.profiles import Profile

RUN_TIME = "liboffpath-run-time.so"


@dataclass(frozen=True)
class Rounds:
    """What the rounds of a program found: the profiled run whose time is the median, the times of all such
    runs, and what the runs without offload and with it say of the gain."""

    profile: Profile
    profiled_s: list[float]
    verified: dict[str, float]


def measure_in_rounds(
    cluster: Cluster, program: list[str], runs: int, scratch: Path, kept: Path | None = None
) -> Rounds:
    """Runs the program in turn with the profiler, without offload, and with it, `runs` times; with `runs` 0
    only with the profiler, once. One run may be much slower or faster than the next, so a single profile says
    little. `scratch` gets all profiles, and `kept` a copy of the chosen one."""
    profiles_found: list[Profile] = []
    times: dict[str, list[float]] = {mpi.HOST.name: [], mpi.OFFPATH.name: []}
    for run in range(max(runs, 1)):
        profiles_found.append(record(cluster, program, scratch / f"profile{run}"))
        for engine in (mpi.HOST, mpi.OFFPATH) if runs else ():
            times[engine.name].append(run_time(cluster, engine, program, scratch / f"{engine.name}{run}"))
    chosen = middle_profile(profiles_found)
    if kept is not None:
        shutil.copytree(chosen.folder, kept, dirs_exist_ok=True)
        chosen = profiles.read(kept)
    verified = advise.measured_gain(times["host"], times["offpath"], "run_s") if runs else {}
    return Rounds(chosen, [one.measured_s for one in profiles_found], verified)


def middle_profile(found: list[Profile]) -> Profile:
    """The profile whose run took the median time; of an even number, the faster of the two in the middle."""
    return sorted(found, key=lambda one: one.measured_s)[(len(found) - 1) // 2]


def record(cluster: Cluster, program: list[str], folder: Path) -> Profile:
    """Runs the program once on the host's MPI, with the profiler."""
    outputs.make_folder(folder, "profile")
    library = cluster.artifacts.root / "lib" / profiles.LIBRARIES["openmpi"]
    _run(cluster, _with(mpi.HOST, library, cluster, OFFPATH_PROFILE=str(folder)), program)
    return profiles.read(folder)


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
        tail = "\n".join([last_words(result.stdout, result.stderr, 8), *result.complaints])
        raise OffpathError(
            Code.JOB_FAILED,
            f"{engine.label}: the program failed with code {result.exit_code}\n{tail}",
            code=result.exit_code,
        )
