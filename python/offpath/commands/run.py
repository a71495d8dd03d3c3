"""`offpath run`: an MPI job as the user starts it, with its communication offloaded."""

import os
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from offpath import console, device_ranks, devices, launch, units
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import job_options
from offpath.errors import OffpathError
from offpath.remote_daemons import StartOptions


def run(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND [ARGS]...",
            help="mpirun or srun and its arguments, after --.",
            show_default=False,
        ),
    ],
    device_cpus: Annotated[
        str | None,
        typer.Option(
            "--device-cpus",
            metavar="LIST",
            help=(
                "Cores of each node that serve as its device, such as 15 or 14-15. Default: the last core"
                " allowed."
            ),
        ),
    ] = None,
    proxies: Annotated[
        int | None, typer.Option("--proxies", help="Proxies (workers) of each device.")
    ] = None,
    spin_us: Annotated[
        int | None, typer.Option("--spin-us", help="How long an idle proxy looks for work before it sleeps.")
    ] = None,
    mpi: job_options.Mpi = None,
    verbose: Annotated[
        int | None,
        typer.Option("--verbose", "-v", help="0: silent. 1: one line at the end. 2: every decision."),
    ] = None,
    keep_logs: Annotated[
        bool,
        typer.Option(
            "--keep-logs",
            help="Keep the log of this node's device, in a directory whose name is printed at the end.",
        ),
    ] = False,
    trace: job_options.TraceFolder = None,
    remote: Annotated[
        str | None,
        typer.Option(
            "--devices",
            metavar="FILE|LIST",
            rich_help_panel="Devices with their own operating system",
            show_default=False,
            help=(
                "ADDR[:PORT] for all nodes, NODE=ADDR[:PORT],NODE=..., or a file with lines NODE ADDR[:PORT]."
                " Default: OFFPATH_DEVICES."
            ),
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            rich_help_panel="Devices with their own operating system",
            show_default=False,
            help=(
                "The daemons run already, and this is their key. Without it they are started for the job,"
                " with a key of its own."
            ),
        ),
    ] = None,
    host_devices: Annotated[
        str | None,
        typer.Option(
            "--host-devices",
            metavar="LIST",
            rich_help_panel="Devices with their own operating system",
            show_default=False,
            help="UCX network devices of the hosts' end of the link to their devices.",
        ),
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="CMD",
            help="Starts a daemon: CMD HOST COMMAND, as ssh does.",
            rich_help_panel="Devices with their own operating system",
        ),
    ] = "ssh",
    device_daemon: Annotated[
        str,
        typer.Option(
            "--device-daemon",
            metavar="PATH",
            help="offpathd on the devices.",
            rich_help_panel="Devices with their own operating system",
        ),
    ] = "offpathd",
    device_args: Annotated[
        str,
        typer.Option(
            "--device-args",
            metavar="ARGS",
            rich_help_panel="Devices with their own operating system",
            help=(
                "More arguments of daemons that are started, such as '--net-devices p0 --host-devices"
                " tmfifo_net0'."
            ),
        ),
    ] = "",
    dpu_ranks: job_options.DpuRanks = False,
    hosts: Annotated[
        Path | None,
        typer.Option(
            "--hosts",
            metavar="FILE",
            rich_help_panel="Devices as ranks",
            show_default=False,
            help=(
                "Lines NAME or NAME slots=N. Default: mpirun's --hostfile. The devices, of --devices: ADDR in"
                " the same order, or NODE ADDR, slots=N after either."
            ),
        ),
    ] = None,
    device_program: job_options.DeviceProgram = None,
    show_command: Annotated[
        bool,
        typer.Option(
            "--show-command",
            help="Print the command line of the job with device ranks, and do not run it.",
            rich_help_panel="Devices as ranks",
        ),
    ] = False,
) -> None:
    """Runs COMMAND, an mpirun or srun as you write it today, with the ranks' communication offloaded.

    The program is not changed or linked again. On each node a device daemon is started on the device cores,
    by the first rank there, and ends with the job. With --devices the nodes have devices with operating
    systems of their own, which are used instead. The exit code is COMMAND's.

    With --dpu-ranks nothing is offloaded: devices are ranks of the program's own MPI job, which
    include/offpath/device_ranks.h splits.

    Example: offpath run -- mpirun -n 4 ./my_program
    """
    if dpu_ranks:
        if trace:
            raise OffpathError(
                Code.OPTION, "--trace and --dpu-ranks cannot be combined", "there is no device to trace"
            )
        raise typer.Exit(_run_dpu_ranks(command, hosts, remote, device_program, agent, show_command))
    if hosts or device_program or show_command:
        raise OffpathError(
            Code.OPTION,
            "--hosts, --device-program and --show-command are for jobs with device ranks",
            "add --dpu-ranks",
        )
    if verbose is not None and verbose not in (0, 1, 2):
        raise OffpathError(Code.OPTION, f"--verbose {verbose} is out of range", "use 0, 1 or 2")
    remote = remote or os.environ.get("OFFPATH_DEVICES")
    if remote:
        key_file = key_file or (
            Path(os.environ["OFFPATH_KEY_FILE"]) if os.environ.get("OFFPATH_KEY_FILE") else None
        )
        if device_cpus:
            console.warn(
                Code.OPTION,
                "--device-cpus is for devices on the nodes; for others use --device-args '--cpus LIST'",
            )
        start = StartOptions(agent, device_daemon, device_args, proxies, spin_us)
        if key_file and start != StartOptions():
            console.warn(
                Code.OPTION,
                "the devices run already: what says how to start them (--agent, --device-..., --proxies,"
                " --spin-us) has no effect",
            )
        chosen = launch.LaunchOptions(
            (),
            verbose=verbose,
            remote=devices.parse(remote),
            key_file=devices.check_key_file(key_file) if key_file else None,
            host_devices=host_devices,
            start=start,
            mpi=mpi,
            keep_logs=keep_logs,
            trace=trace,
        )
        raise typer.Exit(launch.run(job_options.check_launcher(command), find_artifacts(), chosen))
    if key_file:
        raise OffpathError(
            Code.OPTION,
            "--key-file is for devices with operating systems of their own, and none are named",
            "use --devices",
        )
    allowed = os.sched_getaffinity(0)
    cpus = tuple(units.parse_cpus(device_cpus)) if device_cpus else launch.default_device_cpus(allowed)
    missing = set(cpus) - allowed
    if device_cpus and missing:
        console.warn(
            Code.SHARED_CORES,
            f"device core {units.format_cpus(missing)} is not one that this command may use here"
            f" ({units.format_cpus(allowed)})",
        )
    ranks = _ranks(command)
    others = len(allowed - set(cpus))
    if ranks is not None and ranks > others and launch.is_local(command):
        console.warn(
            Code.SHARED_CORES,
            f"{ranks} host ranks on {others} other core{'s' if others != 1 else ''}: some will share core"
            f" {units.format_cpus(cpus)} with the device",
        )
    chosen = launch.LaunchOptions(cpus, proxies, spin_us, verbose, mpi=mpi, keep_logs=keep_logs, trace=trace)
    raise typer.Exit(launch.run(job_options.check_launcher(command), find_artifacts(), chosen))


def _run_dpu_ranks(
    command: list[str],
    hosts: Path | None,
    devices_named: str | None,
    device_program: str | None,
    agent: str,
    show_command: bool,
) -> int:
    named = devices_named or os.environ.get("OFFPATH_DEVICES")
    if not named:
        raise OffpathError(
            Code.DEVICES,
            "the devices are not known",
            "name them with --devices FILE, one line a node, or NODE=ADDR,NODE=...",
        )
    machines = device_ranks.read_machines(hosts, devices=False) if hosts else None
    line = device_ranks.build(
        job_options.check_launcher(command),
        machines,
        device_ranks.read_devices(named),
        [device_program] if device_program else None,
    )
    if show_command:
        console.out.print(shlex.join(line), soft_wrap=True, markup=False)
        return 0
    environment = dict(os.environ) | {"OFFPATH": "off"}
    if agent != "ssh":
        environment["OMPI_MCA_plm_rsh_agent"] = agent
    return launch.wait_for(subprocess.Popen(line, env=environment))


def _ranks(command: list[str]) -> int | None:
    """The number of ranks in the launcher's arguments, if they contain it."""
    for flag, value in pairwise(command):
        if flag in ("-n", "-np", "--n", "--np", "-c", "--ntasks") and value.isdigit():
            return int(value)
    return None
