"""`offpath run`: an MPI job as the user starts it, with its communication offloaded."""

import os
from typing import Annotated

import typer

from offpath import console, launch, units
from offpath.artifacts import find_artifacts
from offpath.commands.options import resolve_program
from offpath.errors import OffpathError


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND [ARGS]...", help="mpirun or srun and its arguments, after --.", show_default=False)],
    device_cpus: Annotated[
        str | None,
        typer.Option("--device-cpus", metavar="LIST", help="Cores of each node that serve as its device, such as 15 or 14-15. Default: the last core allowed."),
    ] = None,
    proxies: Annotated[int | None, typer.Option("--proxies", help="Proxies (workers) of each device.")] = None,
    spin_us: Annotated[int | None, typer.Option("--spin-us", help="How long an idle proxy looks for work before it sleeps.")] = None,
    verbose: Annotated[int | None, typer.Option("--verbose", "-v", help="0: silent. 1: one line at the end. 2: every decision.")] = None,
) -> None:
    """Runs COMMAND, an mpirun or srun as you write it today, with the ranks' communication offloaded.

    The program is not changed or linked again. On each node a device daemon is started on the device cores, by the first rank there,
    and ends with the job. The exit code is COMMAND's.

    Example: offpath run -- mpirun -n 4 ./my_program
    """
    allowed = os.sched_getaffinity(0)
    cpus = tuple(units.parse_cpus(device_cpus)) if device_cpus else launch.default_device_cpus(allowed)
    missing = set(cpus) - allowed
    if device_cpus and missing:
        console.warn(f"device core {units.format_cpus(missing)} is not one that this command may use here ({units.format_cpus(allowed)})")
    if verbose is not None and verbose not in (0, 1, 2):
        raise OffpathError(f"--verbose {verbose} is out of range", "use 0, 1 or 2")
    ranks = _ranks(command)
    hosts = len(allowed - set(cpus))
    if ranks is not None and ranks > hosts and _local(command):
        console.warn(f"{ranks} host ranks on {hosts} other core{'s' if hosts != 1 else ''}: some will share core {units.format_cpus(cpus)} with the device")
    options = launch.LaunchOptions(cpus, proxies, spin_us, verbose)
    raise typer.Exit(launch.run(resolve_program(command), find_artifacts(), options))


def _ranks(command: list[str]) -> int | None:
    """The number of ranks in the launcher's arguments, if it is said there."""
    for flag, value in zip(command, command[1:]):
        if flag in ("-n", "-np", "--n", "--np", "-c", "--ntasks") and value.isdigit():
            return int(value)
    return None


def _local(command: list[str]) -> bool:
    """Whether the launcher was not told of other hosts."""
    return not any(word.lstrip("-") in ("host", "H", "hostfile", "machinefile", "N", "nodes") for word in command if word.startswith("-"))
