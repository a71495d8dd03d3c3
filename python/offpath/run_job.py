"""A job of `offpath run`, whatever has read its command line. It loads nothing of typer or rich, which need
longer than the rest of a job's start."""

import os
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

from offpath import console, devices, launch, program_path, units, variable_checks
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.remote_daemons import StartOptions


def run(
    command: list[str],
    device_cpus: str | None = None,
    proxies: int | None = None,
    spin_us: int | None = None,
    mpi: str | None = None,
    verbose: int | None = None,
    keep_logs: bool = False,
    trace: Path | None = None,
    remote: str | None = None,
    key_file: Path | None = None,
    host_devices: str | None = None,
    agent: str = "ssh",
    device_daemon: str = "offpathd",
    device_args: str = "",
    dpu_ranks: bool = False,
    hosts: Path | None = None,
    device_program: str | None = None,
    show_command: bool = False,
) -> int:
    """Runs `command`, a launcher and its arguments, with its communication offloaded, and returns its exit
    code. The options are those of the command line (commands/run.py). Raises OffpathError if they contradict
    each other, or a program is not there."""
    variable_checks.check()
    if dpu_ranks:
        if trace:
            raise OffpathError(
                Code.OPTION, "--trace and --dpu-ranks cannot be combined", "there is no device to trace"
            )
        return _run_dpu_ranks(command, hosts, remote, device_program, agent, show_command)
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
        return launch.run(check_launcher(command), find_artifacts(), chosen)
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
    return launch.run(check_launcher(command), find_artifacts(), chosen)


def check_launcher(command: list[str]) -> list[str]:
    """The command as typed. Checks that its program exists.

    A launcher keeps its name without a directory. Open MPI puts the directory by which it was called at the
    front of PATH on every node. Ranks would then find another `python3` than the one in the user's PATH.
    """
    program_path.resolve(command)
    return command


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
    from offpath import device_ranks

    machines = device_ranks.read_machines(hosts, devices=False) if hosts else None
    line = device_ranks.build(
        check_launcher(command),
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
