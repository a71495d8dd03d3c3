"""Options of the commands that start a job as its user would, and the check of its command line. They load
nothing of the lab, so that jobs start quickly."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from offpath.codes import Code
from offpath.errors import OffpathError

DpuRanks = Annotated[
    bool,
    typer.Option(
        "--dpu-ranks",
        help="Devices are MPI ranks too, in one job with the hosts: docs/device-ranks.md.",
        rich_help_panel="Devices as ranks",
    ),
]
DeviceProgram = Annotated[
    str | None,
    typer.Option(
        "--device-program",
        metavar="PROGRAM",
        help="What device ranks run (default: the hosts' program, or its aarch64 build).",
        show_default=False,
        rich_help_panel="Devices as ranks",
    ),
]
Mpi = Annotated[
    str | None,
    typer.Option(
        "--mpi",
        metavar="openmpi|mpich|abi|none",
        help="The program's MPI library. Default: found out from the program.",
        show_default=False,
    ),
]
TraceFolder = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="DIR",
        help="Write what ranks and devices do, and when, into this directory.",
        show_default=False,
        rich_help_panel="Results",
    ),
]


def resolve_program(program: list[str]) -> list[str]:
    """The program with its full path. Checks that it exists, because a node reports a missing program without
    a useful message."""
    found = shutil.which(program[0])
    if found is None:
        name = program[0]
        raise OffpathError(
            Code.NOT_INSTALLED,
            f"program {name!r} is not {'executable' if Path(name).exists() else 'there'}",
            "give the path of an executable file, such as ./my_program, or a name that PATH knows",
        )
    return [str(Path(found).absolute()), *program[1:]]


def check_launcher(command: list[str]) -> list[str]:
    """The command as typed. Checks that its program exists.

    A launcher keeps its name without a directory. Open MPI puts the directory by which it was called at the
    front of PATH on every node. Ranks would then find another `python3` than the one in the user's PATH.
    """
    resolve_program(command)
    return command
