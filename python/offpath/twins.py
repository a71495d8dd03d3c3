"""Programs that are built with two MPI libraries: PROGRAM with Open MPI, and PROGRAM-mpich with MPICH, in the
same directory.

MPICH can make all of its progress in a thread of its own. Open MPI cannot. Engines with `mpich` set run
PROGRAM-mpich.
"""

import shutil
from pathlib import Path

from offpath import mpi_library
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.mpi import Engine

SUFFIX = "-mpich"


def command(engine: Engine, program: list[str]) -> list[str]:
    """The command that this engine runs for `program`."""
    return [program[0] + SUFFIX, *program[1:]] if engine.mpich else program


def missing(program: list[str]) -> str | None:
    """Why `program` cannot also run on MPICH. None if it can."""
    twin = Path(program[0] + SUFFIX)
    if not twin.exists():
        return f"there is no {twin.name} beside {program[0]}"
    return None if shutil.which("mpiexec.mpich") else "mpiexec.mpich is not installed"


def rivals(program: list[str]) -> list[str]:
    """The strongest rivals of `program`. They depend on the library that it is built with."""
    if mpi_library.of_program(program) == "mpich":
        return mpi.RIVALS_OF_MPICH
    return mpi.RIVALS


def check(engines: list[Engine], program: list[str]) -> None:
    """Refuses engines that the user named and that need PROGRAM-mpich if it does not exist."""
    why = missing(program)
    for engine in engines:
        if engine.mpich and why:
            raise OffpathError(
                Code.NOT_INSTALLED,
                f"{engine.name} cannot run: {why}",
                f"build the program with MPICH as {Path(program[0]).name}{SUFFIX}, or leave"
                f" {engine.name} out",
            )
