"""`offpath control`: switches offloading in running jobs."""

from pathlib import Path
from typing import Annotated

import typer

from offpath import console
from offpath import control as controls
from offpath.errors import OffpathError


def control(
    state: Annotated[
        str,
        typer.Argument(
            metavar="on|off|ops",
            help="What is offloaded from now on: all that the job was started with, nothing, or some.",
        ),
    ],
    ops: Annotated[
        str | None,
        typer.Argument(
            metavar="[LIST]",
            help="After ops: operations as in OFFPATH_OPS, such as ibcast,ialltoall.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help=(
                "The control file of a job (its OFFPATH_CONTROL), instead of all jobs of `offpath run` on"
                " this node."
            ),
            show_default=False,
        ),
    ] = None,
) -> None:
    """Switches offloading in jobs that run.

    All ranks of a job follow at the same call, soon after their next blocking collectives.

    Example: offpath control off
    """
    text = controls.text_of(state, ops)
    files = [file] if file else [job.file for job in controls.running()]
    if not files:
        raise OffpathError(
            "no job of `offpath run` is running on this node",
            "name the control file of another one: --file FILE",
        )
    for each in files:
        controls.tell(each, text)
        console.note(f"wrote to {each}: {text}")
