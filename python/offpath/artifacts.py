"""Finds what the build has made: offpathd, the front ends' libraries, the programs."""

import os
import shutil
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError

SOURCE_ROOT = Path(__file__).resolve().parents[2]
# The process that starts this command sets this variable, and puts one entry at the front of PYTHONPATH. Both
# are for this command only.
COMMAND_BUILD = "OFFPATH_COMMAND_BUILD"
# Where the Debian packages install.
INSTALLED = Path("/usr/lib/offpath")

_OPENMP_PLUGINS = "lib/openmp"
_command_build: str | None = None


@dataclass(frozen=True)
class Artifacts:
    """A build directory, or the prefix of an installation, which has the same layout. Its files are looked up
    when they are needed, so commands that use only the host work without a build."""

    root: Path

    @property
    def daemon(self) -> Path:
        return self._need("bin/offpathd", "the device daemon")

    @property
    def mpi_preload(self) -> Path:
        return self.front_end("openmpi")

    def front_end(self, mpi: str) -> Path:
        """The library to load before programs that use the MPI `mpi`."""
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
                Code.NOT_INSTALLED,
                f"{what} is not built: {path} is missing",
                hint
                or "run `make build` in the source directory, or install offpath's packages, or name another"
                " build directory or prefix with OFFPATH_BUILD=DIR",
            )
        return path


def aarch64_command(program: str) -> list[str]:
    """The command that runs `program` (a name or a path) of the aarch64 build under qemu, with the libraries
    of the aarch64 root. The build makes the runner."""
    build = Path(os.environ.get("OFFPATH_BUILD_AARCH64") or SOURCE_ROOT / "build-aarch64").resolve()
    runner, path = build / "bin/run", build / "bin" / program
    for needed in (path, runner):
        if not needed.exists():
            raise OffpathError(
                Code.NOT_INSTALLED,
                f"the aarch64 build of {program} is not there: {needed} is missing",
                "run make aarch64",
            )
    return [str(runner), str(path)]


def take_over(environment: MutableMapping[str, str] = os.environ) -> None:
    """Removes what `for_command` added to the environment, so that programs started by this command see only
    what their user set."""
    global _command_build
    if COMMAND_BUILD not in environment:
        return
    _command_build = environment.pop(COMMAND_BUILD)
    _, _, of_the_user = environment.pop("PYTHONPATH", "").partition(os.pathsep)
    if of_the_user:
        environment["PYTHONPATH"] = of_the_user


def for_command(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for starting another process of this command. That process finds the same package and
    the same build."""
    paths = os.pathsep.join(filter(None, [str(SOURCE_ROOT / "python"), environment.get("PYTHONPATH")]))
    return dict(environment) | {"PYTHONPATH": paths, COMMAND_BUILD: str(find_artifacts().root)}


def find_artifacts() -> Artifacts:
    """The build whose `bin/offpath` was started; else the one that OFFPATH_BUILD names; else build/ in the
    source tree. A command that is not in a source tree uses the installation whose offpathd is in PATH."""
    named = _command_build or os.environ.get("OFFPATH_BUILD")
    if named:
        return Artifacts(Path(named).resolve())
    if not (SOURCE_ROOT / "CMakeLists.txt").exists():
        installed = shutil.which("offpathd")
        return Artifacts(Path(installed).resolve().parents[1] if installed else INSTALLED)
    return Artifacts((SOURCE_ROOT / "build").resolve())
