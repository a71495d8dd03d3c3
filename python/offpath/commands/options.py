"""Options that several commands share, and the way from a command line into the sandbox."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from offpath import console, units
from offpath.errors import NamespacesUnavailable, OffpathError
from offpath.lab import sandbox
from offpath.lab.cluster import LabSpec
from offpath.lab.network import Link

Nodes = Annotated[int, typer.Option("--nodes", "-N", help="Number of emulated nodes.", rich_help_panel="Cluster")]
RanksPerNode = Annotated[int, typer.Option("--ranks-per-node", "-r", help="MPI ranks on each node.", rich_help_panel="Cluster")]
LinkRate = Annotated[
    str, typer.Option("--link", metavar="RATE", help="Rate of each node's link, each way: 1gbit, 2.5gbit, 500mbit, or unlimited.", rich_help_panel="Cluster")
]
Latency = Annotated[
    str, typer.Option("--latency", metavar="TIME", help="Latency added one way, such as 50us (needs the kernel's netem).", rich_help_panel="Cluster")
]
Placement = Annotated[
    str, typer.Option("--placement", metavar="split|shared", help="split: devices on cores of their own. shared: everything runs everywhere.", rich_help_panel="Cluster")
]
Proxies = Annotated[int | None, typer.Option("--proxies", help="Proxies (workers) of each device.", rich_help_panel="Device")]
Quota = Annotated[
    str | None,
    typer.Option("--device-quota", metavar="FRACTION", help="Slow each device down to this share of one core, such as 0.5 or 50%.", rich_help_panel="Device"),
]
SpinUs = Annotated[int | None, typer.Option("--spin-us", help="How long an idle proxy looks for work before it sleeps.", rich_help_panel="Device")]
LogLevel = Annotated[str, typer.Option("--log-level", help="What the devices log: debug, info, warn or error.", rich_help_panel="Device")]
Env = Annotated[
    list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="Variable for ranks and devices; may be given again.", rich_help_panel="Program")
]
Mca = Annotated[
    list[str] | None, typer.Option("--mca", metavar="NAME=VALUE", help="Open MPI parameter over the lab's own; may be given again.", rich_help_panel="Program")
]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="End a run that takes longer (exit code 124).", rich_help_panel="Program")]
NoNamespaces = Annotated[bool, typer.Option("--no-namespaces", help="One-node mode: no emulated network; needs --nodes 1.", rich_help_panel="Cluster")]
Program = Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...", help="The MPI program and its arguments, after --.", show_default=False)]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write everything measured to FILE.", rich_help_panel="Results")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw a picture: FILE.png, .svg or .pdf.", rich_help_panel="Results")]


def lab_spec(
    nodes: int, ranks_per_node: int, link: str, latency: str, placement: str, proxies: int | None, quota: str | None,
    spin_us: int | None, env: list[str] | None, mca: list[str] | None, timeout: float | None, log_level: str,
) -> LabSpec:
    spec = LabSpec(
        nodes=nodes, ranks_per_node=ranks_per_node, link=Link(units.parse_rate(link), units.parse_duration(latency)), placement=placement,
        device_quota=units.parse_fraction(quota) if quota else None, proxies=proxies, spin_us=spin_us,
        environment=units.parse_assignments(env or [], "--env"), mca=units.parse_assignments(mca or [], "--mca"),
        log_level=log_level, timeout=timeout,
    )
    spec.check()
    if placement not in ("split", "shared"):
        raise OffpathError(f"placement {placement!r} is not known", "use split (devices on cores of their own) or shared")
    if timeout is not None and timeout <= 0:
        raise OffpathError(f"--timeout {timeout:g} is out of range", "use a positive number of seconds")
    return spec


def resolve_program(program: list[str]) -> list[str]:
    """The program by its full path, checked, since nodes have no useful error for one that is missing."""
    found = shutil.which(program[0])
    if found is None:
        name = program[0]
        raise OffpathError(
            f"program {name!r} is not there" if not Path(name).exists() else f"program {name!r} is not executable",
            "give the path of an executable file, such as ./my_program, or a name that PATH knows",
        )
    return [str(Path(found).absolute()), *program[1:]]


def check_outputs(json: Path | None, plot: Path | None) -> None:
    """Refuses output files that could not be written before anything is measured."""
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise OffpathError(f"--plot {plot}: the kind of picture is not known", "end the name in .png, .svg or .pdf")
    for path in filter(None, (json, plot)):
        if path.is_dir():
            raise OffpathError(f"{path} is a directory", "name a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OffpathError(f"{path.parent} cannot be made: {error.strerror}") from error


def need_tools(namespaces: bool) -> None:
    for tool in ["mpirun", "taskset", *(["ip", "tc", "unshare", "nsenter"] if namespaces else [])]:
        if shutil.which(tool) is None:
            raise OffpathError(f"the program {tool} is missing", "run scripts/setup.sh, which installs what is needed")


def enter_lab(spec: LabSpec, no_namespaces: bool) -> None:
    """Returns inside the sandbox, or in one-node mode. The process that the user started does not return: it exits here."""
    if sandbox.inside():
        return
    need_tools(namespaces=not no_namespaces)
    if no_namespaces:
        if spec.nodes != 1:
            raise OffpathError("without namespaces there is one node only", "use --nodes 1, or leave --no-namespaces out")
        return
    try:
        raise typer.Exit(sandbox.run_inside(sys.argv[1:]))
    except NamespacesUnavailable as error:
        if spec.nodes != 1:
            raise
        console.warn(f"{error}; going on in one-node mode")
