"""Options of the commands that start a job as its user would."""

from pathlib import Path
from typing import Annotated

import typer

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
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a page with plots.", rich_help_panel="Results"),
]
