"""Programs that are made with two MPI libraries: beside PROGRAM, made with Open MPI, PROGRAM-mpich in the
same directory.

MPICH makes all of its progress in a thread of its own if it is asked to, which Open MPI cannot. Engines with
`mpich` set run the twin.
"""

import shutil
from pathlib import Path

from offpath import mpi_library
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.mpi import Engine

SUFFIX = "-mpich"


def command(engine: Engine, program: list[str]) -> list[str]:
    """What this engine runs for `program`."""
    return [program[0] + SUFFIX, *program[1:]] if engine.mpich else program


def missing(program: list[str]) -> str | None:
    """Why `program` cannot run on MPICH as well, or None where it can."""
    twin = Path(program[0] + SUFFIX)
    if not twin.exists():
        return f"there is no {twin.name} beside {program[0]}"
    return None if shutil.which("mpiexec.mpich") else "mpiexec.mpich is not installed"


def rivals(program: list[str]) -> list[str]:
    """The strongest rivals of `program`, by the library that it is made with."""
    if mpi_library.of_program(program) == "mpich":
        return mpi.RIVALS_OF_MPICH
    return mpi.RIVALS


def check(engines: list[Engine], program: list[str]) -> None:
    """Refuses engines that the user named and that need a twin where there is none."""
    why = missing(program)
    for engine in engines:
        if engine.mpich and why:
            raise OffpathError(
                f"{engine.name} cannot run: {why}",
                f"build the program with MPICH as {Path(program[0]).name}{SUFFIX}, or leave"
                f" {engine.name} out",
            )
