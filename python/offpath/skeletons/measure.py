"""Measures the kernels of skeletons: runs each program with one rank, and divides the times that it reports
by the work."""

import json
import math
import statistics
import subprocess
from collections.abc import Callable

from offpath import console, stats
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError

RUNS = 5
_FFT, _CELLS, _ORDER, _NB, _ATOMS, _STEPS = 128, 160, 3072, 128, 32000, 100


def _fft3d(said: dict) -> dict[str, float]:
    # Four variables, each transformed along three axes and back.
    return {"fft3d.point_s": said["compute_s"] / (4 * 6 * _FFT**3 * math.log2(_FFT))}


def _halo(said: dict) -> dict[str, float]:
    faces = 6 * _CELLS**2
    return {
        "halo.cell_s": said["interior_s"] / said["steps"] / (_CELLS**3 - faces),
        "halo.face_s": (said["boundary_s"] + said["exchange_s"]) / said["steps"] / faces,
    }


def _ring_hpl(said: dict) -> dict[str, float]:
    update = panel = 0.0
    for rows in range(_ORDER, 0, -_NB):
        update += (rows - _NB) * (_NB**2 + 2.0 * (rows - _NB) * _NB)
        panel += _NB**2 * (rows - _NB / 3)
    return {"ring-hpl.flop_s": said["update_s"] / update, "ring-hpl.panel_flop_s": said["panel_s"] / panel}


def _bspmm(said: dict) -> dict[str, float]:
    return {"bspmm.flop_s": (said["compute_s"] + said["copy_s"]) / said["flops"]}


def _minimd(said: dict) -> dict[str, float]:
    rebuilds = _STEPS // 20
    # One rank copies its own ghosts, once in each direction; a rank of several packs and unpacks as many.
    side = (_ATOMS / 0.8442) ** (1 / 3)
    ghosts = 0.8442 * ((side + 2.8) ** 3 - side**3)
    return {
        "minimd.force_s": said["force_s"] / (_ATOMS * _STEPS),
        "minimd.integrate_s": said["other_s"] / (_ATOMS * _STEPS),
        "minimd.neighbour_s": said["neigh_s"] / (_ATOMS * rebuilds),
        "minimd.ghost_s": said["comm_s"] / (4 * ghosts * _STEPS),
    }


_PROGRAMS: list[tuple[str, str, Callable[[dict], dict[str, float]]]] = [
    ("fft3d", f"--n {_FFT} --no-verify --iterations 2", _fft3d),
    ("halo", f"--dims 3 --size {_CELLS} --periodic --steps 20", _halo),
    ("ring-hpl", f"--n {_ORDER} --nb {_NB}", _ring_hpl),
    ("bspmm-host", "--variant mpi-rma --mesh 12 --no-verify", _bspmm),
    ("minimd", f"-s 20 -n {_STEPS}", _minimd),
]


def kernels(artifacts: Artifacts) -> dict:
    """The content of a kernels file: medians of some runs, each with its range."""
    found: dict[str, list[float]] = {}
    for program, words, parts in _PROGRAMS:
        console.note(f"{program} {words}")
        for _ in range(RUNS):
            for name, seconds in parts(_run(artifacts, program, words)).items():
                found.setdefault(name, []).append(seconds)
    content: dict = {
        name: {
            "value": statistics.median(values),
            "source": f"measured by offpath calibrate --kernels, {RUNS} runs of one rank",
            "range": [min(values), max(values)],
        }
        for name, values in found.items()
    }
    return content | {"environment": stats.environment()}


def _run(artifacts: Artifacts, program: str, words: str) -> dict:
    command = [str(artifacts.program(program)), *words.split(), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip()
        raise OffpathError(Code.JOB_FAILED, f"{program} failed with code {done.returncode}\n{tail}")
    return json.loads(done.stdout.strip().splitlines()[-1])
