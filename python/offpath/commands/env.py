"""`offpath env`: shell lines that load the front end without the offpath command."""

import shlex
from typing import Annotated

import typer

from offpath import preload
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.mpi_library import KINDS


def env(
    mpi: Annotated[
        str,
        typer.Option(
            "--mpi", metavar="openmpi|mpich|abi", help="The MPI library of the programs.", show_default=False
        ),
    ],
) -> None:
    """Prints shell lines after which MPI programs are offloaded without the offpath command.

    LD_PRELOAD loads the front end, the one library that is needed; with OFFPATH_AUTOSTART the first rank of
    each node starts a device daemon where none answers.

    Example: eval "$(offpath env --mpi openmpi)"; mpirun -n 4 ./my_program
    """
    if mpi not in KINDS:
        raise OffpathError(Code.OPTION, f"--mpi {mpi!r} is not known", f"use {' or '.join(KINDS)}")
    needed = preload.variables(find_artifacts().front_end(mpi), {})
    separators = {"LD_PRELOAD": " ", "LD_LIBRARY_PATH": ":"}
    lines = [
        f'export {name}={shlex.quote(value)}"${{{name}:+{separators[name]}${name}}}"'
        for name, value in needed.items()
    ]
    lines.append('export OFFPATH_AUTOSTART="${OFFPATH_AUTOSTART:-1}"')
    if mpi == "openmpi":
        exports = " ".join(f"-x {name}" for name in (*needed, "OFFPATH_AUTOSTART"))
        lines.append(f"# Ranks on other nodes get them with: mpirun {exports} ...")
    print("\n".join(lines))
