"""`offpath control`: switches offloading in running jobs, and restarts daemons."""

import socket
from pathlib import Path
from typing import Annotated

import typer

from offpath import console, successors, units
from offpath import control as controls
from offpath.codes import Code
from offpath.errors import OffpathError


def control(
    state: Annotated[
        str,
        typer.Argument(
            metavar="on|off|ops|restart|drain",
            help=(
                "on, off, ops: what is offloaded from now on: all that the job was started with, nothing, or"
                " some. restart: a successor takes each daemon's place. drain: daemons take no more clients."
                " Both keep their sessions, and end with the last."
            ),
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
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help=(
                "restart, drain: the daemon of this session directory, instead of those of `offpath run` and"
                " of OFFPATH_DIR."
            ),
            show_default=False,
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node", metavar="NAME", help="restart, drain: the node, which is this one.", show_default=False
        ),
    ] = None,
    daemon: Annotated[
        str | None,
        typer.Option(
            "--daemon",
            metavar="PROGRAM",
            help="restart: the offpathd to start. Default: the same program.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Switches offloading in jobs that run, and restarts daemons without disturbing jobs.

    All ranks of a job follow at the same call, soon after their next blocking collectives.

    Example: offpath control off
    """
    if state in ("restart", "drain"):
        return _restart(state, directory, node, daemon)
    if directory or node or daemon:
        raise OffpathError(Code.OPTION, "--dir, --node and --daemon belong to restart and drain")
    text = controls.text_of(state, ops)
    files = [file] if file else [job.file for job in controls.running()]
    if not files:
        raise OffpathError(
            Code.DAEMON,
            "no job of `offpath run` is running on this node",
            "name the control file of another one: --file FILE",
        )
    for each in files:
        controls.tell(each, text)
    whom = str(file) if file else units.count(len(files), "job")
    console.note(f"told {whom}: {text}")


def _restart(state: str, directory: Path | None, node: str | None, program: str | None) -> None:
    here = socket.gethostname()
    if node not in (None, here, "localhost"):
        raise OffpathError(
            Code.OPTION, f"this is node {here}, not {node}", f"run it on {node}, for example with ssh"
        )
    if program and state == "drain":
        raise OffpathError(Code.OPTION, "--daemon belongs to restart")
    found = successors.serving([directory.absolute()] if directory else None)
    if not found:
        raise OffpathError(
            Code.DAEMON, "no daemon serves on this node", "name its session directory: --dir DIR"
        )
    for each in found:
        if state == "drain":
            successors.drain(each)
            console.note(f"pid {each.pid} of {each.directory} takes no more clients")
        else:
            started = successors.restart(each, program)
            console.note(f"pid {started.pid} serves {each.directory}; pid {each.pid} ends with its sessions")
