"""Options that several commands share, and the entry into the sandbox."""

import functools
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from offpath import console, mpi_library, outputs, program_path, sim, system_tools, units, variable_checks
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import NamespacesUnavailable, OffpathError
from offpath.lab import device_ranks, sandbox
from offpath.lab.cluster import Cluster, LabSpec, open_cluster
from offpath.lab.network import Link
from offpath.lab.turns import DEFAULT_US

Platform = Annotated[
    str,
    typer.Option(
        "--platform",
        "-p",
        metavar="NAME|FILE",
        help="Figures of the machine: a file, or one of " + ", ".join(sim.platform_names()) + ".",
        autocompletion=sim.platform_names,
    ),
]
NodeCounts = Annotated[str, typer.Option("--nodes", "-N", metavar="LIST", help="Numbers of nodes.")]
Nodes = Annotated[
    int, typer.Option("--nodes", "-N", help="Number of emulated nodes.", rich_help_panel="Cluster")
]
RanksPerNode = Annotated[
    int, typer.Option("--ranks-per-node", "-r", help="MPI ranks on each node.", rich_help_panel="Cluster")
]
LinkRate = Annotated[
    str,
    typer.Option(
        "--link",
        metavar="RATE",
        help="Rate of each node's link, each way: 1gbit, 2.5gbit, 500mbit, or unlimited.",
        rich_help_panel="Cluster",
    ),
]
Latency = Annotated[
    str,
    typer.Option(
        "--latency",
        metavar="TIME",
        help="Latency added one way, such as 50us (needs the kernel's netem).",
        rich_help_panel="Cluster",
    ),
]
Burst = Annotated[
    str | None,
    typer.Option(
        "--burst",
        metavar="BYTES",
        help="What a link lets pass at once after a pause (default: 2 ms of its rate).",
        rich_help_panel="Cluster",
    ),
]
Placement = Annotated[
    str,
    typer.Option(
        "--placement",
        metavar="split|shared",
        help="split: devices on cores of their own. shared: everything runs everywhere.",
        rich_help_panel="Cluster",
    ),
]
Turns = Annotated[
    str,
    typer.Option(
        "--turns",
        metavar="TIME|kernel",
        rich_help_panel="Cluster",
        help=(
            "How long a process runs before the next one on its core does. kernel: as long as Linux lets it,"
            " some milliseconds."
        ),
    ),
]
Dpu = Annotated[
    str,
    typer.Option(
        "--dpu",
        metavar="local|remote|aarch64",
        rich_help_panel="Device",
        help=(
            "local: the device is cores of the node. remote: it has an operating system and a network port of"
            " its own. aarch64: that, under qemu."
        ),
    ),
]
Pcie = Annotated[
    str | None,
    typer.Option(
        "--pcie",
        metavar="RATE",
        help=(
            "Rate of the link between host and device, each way, with --dpu remote or aarch64 (default: 4 x"
            " --link)."
        ),
        rich_help_panel="Device",
        show_default=False,
    ),
]
DevicesPerNode = Annotated[
    int,
    typer.Option("--devices-per-node", help="Device ranks on each node.", rich_help_panel="Devices as ranks"),
]
Proxies = Annotated[
    int | None, typer.Option("--proxies", help="Proxies (workers) of each device.", rich_help_panel="Device")
]
Quota = Annotated[
    str | None,
    typer.Option(
        "--device-quota",
        metavar="FRACTION",
        help="Slow each device down to this share of one core, such as 0.5 or 50%.",
        rich_help_panel="Device",
    ),
]
SpinUs = Annotated[
    int | None,
    typer.Option(
        "--spin-us", help="How long an idle proxy looks for work before it sleeps.", rich_help_panel="Device"
    ),
]
LogLevel = Annotated[
    str,
    typer.Option(
        "--log-level", help="What the devices log: debug, info, warn or error.", rich_help_panel="Device"
    ),
]
KeepLogs = Annotated[
    bool,
    typer.Option(
        "--keep-logs",
        help="Keep the devices' logs, in a directory whose name is printed at the end.",
        rich_help_panel="Device",
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME=VALUE",
        help="Variable for ranks and devices; may be given again.",
        rich_help_panel="Program",
    ),
]
Mca = Annotated[
    list[str] | None,
    typer.Option(
        "--mca",
        metavar="NAME=VALUE",
        help="Open MPI parameter over the lab's own; may be given again.",
        rich_help_panel="Program",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="End a run that takes longer (exit code 124).",
        rich_help_panel="Program",
    ),
]
NoNamespaces = Annotated[
    bool,
    typer.Option(
        "--no-namespaces",
        help="One-node mode: no emulated network; needs --nodes 1.",
        rich_help_panel="Cluster",
    ),
]
Program = Annotated[
    list[str],
    typer.Argument(
        metavar="PROGRAM [ARGS]...", help="The MPI program and its arguments, after --.", show_default=False
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Write everything measured to FILE.", rich_help_panel="Results"
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE", help="Draw a picture: FILE.png, .svg or .pdf.", rich_help_panel="Results"
    ),
]


def cluster_options(
    nodes: int | None, link: str, dpu: str = "local", placement: str = "split", ranks_per_node: int = 1
):
    """A decorator that adds the options of an emulated cluster, with these defaults, to a command. The
    command receives them as `lab`, a LabSpec, and `no_namespaces`.

    If `nodes` is None, the command has an option --nodes of its own and sets `lab.nodes`.
    """
    defaults = {
        "nodes": (Nodes, nodes),
        "ranks_per_node": (RanksPerNode, ranks_per_node),
        "link": (LinkRate, link),
        "latency": (Latency, "0us"),
        "burst": (Burst, None),
        "placement": (Placement, placement),
        "turns": (Turns, f"{DEFAULT_US}us"),
        "dpu": (Dpu, dpu),
        "pcie": (Pcie, None),
        "proxies": (Proxies, None),
        "device_quota": (Quota, None),
        "spin_us": (SpinUs, None),
        "log_level": (LogLevel, "warn"),
        "env": (Env, None),
        "mca": (Mca, None),
        "timeout": (Timeout, None),
        "keep_logs": (KeepLogs, False),
    }

    if nodes is None:
        del defaults["nodes"]

    def decorate(command):
        own = [
            p.replace(kind=p.KEYWORD_ONLY)
            for p in inspect.signature(command).parameters.values()
            if p.name not in ("lab", "no_namespaces")
        ]
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in defaults.items()
        ]
        shared.append(
            inspect.Parameter(
                "no_namespaces", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=NoNamespaces
            )
        )

        @functools.wraps(command)
        def run(**values):
            chosen = {name: values.pop(name) for name in defaults}
            return command(lab=lab_spec(**({"nodes": 1} | chosen)), **values)

        decorated: Any = run
        del decorated.__wrapped__
        decorated.__signature__ = inspect.Signature(own + shared)
        decorated.__annotations__ = {p.name: p.annotation for p in own + shared}
        return decorated

    return decorate


def lab_spec(
    nodes: int,
    ranks_per_node: int,
    link: str,
    latency: str,
    placement: str,
    dpu: str,
    pcie: str | None,
    proxies: int | None,
    device_quota: str | None,
    spin_us: int | None,
    log_level: str,
    env: list[str] | None,
    mca: list[str] | None,
    timeout: float | None,
    keep_logs: bool = False,
    turns: str = f"{DEFAULT_US}us",
    burst: str | None = None,
) -> LabSpec:
    network = Link(
        units.parse_rate(link),
        units.parse_duration(latency),
        units.parse_size(burst) if burst is not None else None,
    )
    spec = LabSpec(
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        link=network,
        placement=placement,
        turns_us=turns_us(turns),
        dpu=dpu,
        pcie=pcie_link(network, pcie),
        device_quota=units.parse_fraction(device_quota) if device_quota else None,
        proxies=proxies,
        spin_us=spin_us,
        environment=units.parse_assignments(env or [], "--env"),
        mca=units.parse_assignments(mca or [], "--mca"),
        log_level=log_level,
        timeout=timeout,
        keep_logs=keep_logs,
    )
    spec.check()
    if pcie is not None and not spec.remote and not sandbox.inside():
        console.note("--pcie has no effect: with --dpu local there is no link between host and device")
    if placement not in ("split", "shared"):
        raise OffpathError(
            Code.OPTION,
            f"placement {placement!r} is not known",
            "use split (devices on cores of their own) or shared",
        )
    if timeout is not None and timeout <= 0:
        raise OffpathError(
            Code.OPTION, f"--timeout {timeout:g} is out of range", "use a positive number of seconds"
        )
    return spec


def turns_us(text: str) -> int | None:
    return None if text == "kernel" else round(units.parse_duration(text) * 1e6)


def pcie_link(network: Link, rate: str | None) -> Link:
    """The host-device link. Its default rate is four times the network's, as for cards of 100 Gbit/s on 16
    lanes of PCIe 4."""
    if rate is not None:
        return Link(units.parse_rate(rate))
    return Link(None if network.rate is None else 4 * network.rate)


def device_rank_layout(
    lab: LabSpec,
    program: list[str],
    offload: str | None,
    dpu_ranks: bool,
    device_program: str | None,
    devices_per_node: int,
) -> device_ranks.Layout | None:
    """Which ranks run where with --dpu-ranks. None without that option."""
    if not dpu_ranks:
        if device_program is not None or devices_per_node != 1:
            raise OffpathError(
                Code.OPTION,
                "--device-program and --devices-per-node are for jobs with device ranks",
                "add --dpu-ranks",
            )
        return None
    if offload == "on":
        raise OffpathError(
            Code.OPTION,
            "--offload on and --dpu-ranks cannot be combined",
            "the device either serves its hosts' MPI or is a rank itself",
        )
    if lab.device_quota is not None and not lab.remote:
        raise OffpathError(
            Code.OPTION,
            "--device-quota cannot slow down device ranks that share their node's system",
            "use --dpu remote",
        )
    if not 1 <= devices_per_node <= 1024:
        raise OffpathError(
            Code.OPTION, f"--devices-per-node {devices_per_node} is out of range", "use 1 to 1024"
        )
    groups = device_ranks.everywhere(lab.nodes, lab.ranks_per_node, devices_per_node)
    return device_ranks.Layout(groups, device_ranks.device_command(lab.dpu, program, device_program))


def lab_program(program: list[str]) -> list[str]:
    """The program that a lab starts on every rank, with its full path. Explains the mistake if a launcher is
    in front of it."""
    if launcher := mpi_library.launcher_of(program):
        raise OffpathError(
            Code.OPTION,
            f"the lab starts {launcher} itself: with {launcher} in the command line, every rank would start a"
            " job of its own",
            f"leave {launcher} and its options out: offpath lab run --nodes 2 --ranks-per-node 1 --"
            " ./program",
        )
    return program_path.resolve(program)


def check_outputs(json: Path | None, plot: Path | None) -> None:
    """Refuses output files that cannot be written, before anything is measured."""
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise OffpathError(
            Code.OUTPUT_FILE,
            f"--plot {plot}: the kind of picture is not known",
            "end the name in .png, .svg or .pdf",
        )
    if json is not None and plot is not None and json.resolve() == plot.resolve():
        raise OffpathError(
            Code.OUTPUT_FILE, f"--json and --plot name the same file, {json}", "give each a file of its own"
        )
    for path in filter(None, (json, plot)):
        outputs.check(path)


def need_tools(namespaces: bool) -> None:
    for tool in ["mpirun", "taskset", *(["ip", "tc", "unshare", "nsenter"] if namespaces else [])]:
        if system_tools.find(tool) is None:
            raise OffpathError(
                Code.NOT_INSTALLED,
                f"the program {tool} is missing",
                "run scripts/setup.sh, which installs what is needed",
            )


def enter_lab(spec: LabSpec, no_namespaces: bool) -> None:
    """Returns inside the sandbox, or in one-node mode. The process that the user started does not return from
    this function, but exits."""
    if sandbox.inside():
        return
    variable_checks.check(dict(os.environ) | spec.environment)
    need_tools(namespaces=not no_namespaces)
    if no_namespaces and spec.remote:
        raise OffpathError(
            Code.NO_LAB,
            f"--dpu {spec.dpu} needs namespaces: the device is a machine of its own",
            "use --dpu local, or leave --no-namespaces out",
        )
    if not no_namespaces:
        outputs.refuse_below(Path("/dev/shm"), "a lab has a /dev/shm of its own")
    if no_namespaces:
        if spec.nodes != 1:
            raise OffpathError(
                Code.NO_LAB,
                "without namespaces there is one node only",
                "use --nodes 1, or leave --no-namespaces out",
            )
        return
    try:
        raise typer.Exit(sandbox.run_inside(sys.argv[1:]))
    except NamespacesUnavailable as error:
        if spec.nodes != 1 or spec.remote:
            raise
        console.warn(Code.NO_LAB, f"{error}; going on in one-node mode")


@contextmanager
def described_cluster(spec: LabSpec, no_namespaces: bool, artifacts: Artifacts) -> Iterator[Cluster]:
    """Enters the lab, makes the cluster and tells the user about it."""
    enter_lab(spec, no_namespaces)
    with open_cluster(spec, artifacts) as cluster:
        console.note(cluster.describe())
        yield cluster
