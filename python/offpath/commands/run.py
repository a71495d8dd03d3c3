"""`offpath run`: an MPI job as the user starts it, with its communication offloaded."""

from pathlib import Path
from typing import Annotated

import typer

from offpath import run_job
from offpath.commands import job_options


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
        int | None,
        typer.Option("--proxies", min=1, max=256, help="Proxies (workers) of each device."),
    ] = None,
    spin_us: Annotated[
        int | None,
        typer.Option(
            "--spin-us",
            min=0,
            max=1_000_000,
            help="Microseconds that an idle proxy looks for work before it sleeps.",
        ),
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
    raise typer.Exit(
        run_job.run(
            command,
            device_cpus,
            proxies,
            spin_us,
            mpi,
            verbose,
            keep_logs,
            trace,
            remote,
            key_file,
            host_devices,
            agent,
            device_daemon,
            device_args,
            dpu_ranks,
            hosts,
            device_program,
            show_command,
        )
    )
