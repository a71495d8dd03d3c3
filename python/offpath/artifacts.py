"""Finds what the build made: offpathd, the front end's library, the programs."""

import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from offpath.errors import OffpathError

SOURCE_ROOT = Path(__file__).resolve().parents[2]
# Set by what starts this command for this command alone, with one entry in front of PYTHONPATH.
COMMAND_BUILD = "OFFPATH_COMMAND_BUILD"

_OPENMP_PLUGINS = "lib/openmp"
_command_build: str | None = None


@dataclass(frozen=True)
class Artifacts:
    """A build directory. The files in it are looked up when asked for, so that host-only work needs no
    build."""

    root: Path

    @property
    def daemon(self) -> Path:
        return self._need("bin/offpathd", "the device daemon")

    @property
    def mpi_preload(self) -> Path:
        return self.front_end("openmpi")

    def front_end(self, mpi: str) -> Path:
        """The library to load before programs of that MPI."""
        if mpi == "mpich":
            return self._need("lib/liboffpath-mpi-mpich.so", "the front end for MPICH")
        if mpi == "abi":
            hint = (
                "it is built only where CMake is told of an MPI with that ABI: -DOFFPATH_MPI_ABI_ROOT=PREFIX;"
                " --mpi none runs the program without it"
            )
            return self._need("lib/liboffpath-mpi-abi.so", "the front end for the MPI ABI", hint)
        return self._need("lib/liboffpath-mpi.so", "the MPI front end")

    @property
    def openmp_plugins(self) -> Path:
        """The directory of the plug-ins for LLVM's libomptarget."""
        return self._need(_OPENMP_PLUGINS, "the plug-in for OpenMP target regions")

    @property
    def has_openmp_plugins(self) -> bool:
        return (self.root / _OPENMP_PLUGINS).is_dir()

    def program(self, name: str) -> Path:
        return self._need(f"bin/{name}", f"the program {name}")

    @property
    def aarch64_daemon(self) -> list[str]:
        """The command that runs the aarch64 device daemon on this machine."""
        return aarch64_command("offpathd")

    def device(self, dpu: str) -> list[str]:
        """The command that runs the daemon of a device of this kind."""
        return self.aarch64_daemon if dpu == "aarch64" else [str(self.daemon)]

    def _need(self, relative: str, what: str, hint: str | None = None) -> Path:
        path = self.root / relative
        if not path.exists():
            raise OffpathError(
                f"{what} is not built: {path} is missing",
                hint
                or "run `make build` in the source directory, or name another build directory with"
                " OFFPATH_BUILD=DIR",
            )
        return path


def aarch64_command(program: str) -> list[str]:
    """`program` (a name, or a path) of the aarch64 build under qemu, with the libraries of its own root. The
    build makes the runner."""
    build = Path(os.environ.get("OFFPATH_BUILD_AARCH64") or SOURCE_ROOT / "build-aarch64").resolve()
    runner, path = build / "bin/run", build / "bin" / program
    for needed in (path, runner):
        if not needed.exists():
            raise OffpathError(
                f"the aarch64 build of {program} is not there: {needed} is missing", "run make aarch64"
            )
    return [str(runner), str(path)]


def take_over(environment: MutableMapping[str, str] = os.environ) -> None:
    """Takes what `for_command` added out of the environment, so that programs started from here see only what
    their user set."""
    global _command_build
    if COMMAND_BUILD not in environment:
        return
    _command_build = environment.pop(COMMAND_BUILD)
    _, _, of_the_user = environment.pop("PYTHONPATH", "").partition(os.pathsep)
    if of_the_user:
        environment["PYTHONPATH"] = of_the_user


def for_command(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which another process of this command is started: it finds the same package and the
    same build."""
    paths = os.pathsep.join(filter(None, [str(SOURCE_ROOT / "python"), environment.get("PYTHONPATH")]))
    return dict(environment) | {"PYTHONPATH": paths, COMMAND_BUILD: str(find_artifacts().root)}


def find_artifacts() -> Artifacts:
    """The build whose `bin/offpath` was started, else the one that OFFPATH_BUILD names, else build/ of the
    source tree."""
    return Artifacts(
        Path(_command_build or os.environ.get("OFFPATH_BUILD") or SOURCE_ROOT / "build").resolve()
    )
