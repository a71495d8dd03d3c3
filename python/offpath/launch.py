"""Starts a job on real nodes, with its communication offloaded. The job itself is unchanged; only its
environment differs.

Local attach: the first rank on each node starts the node's offpathd, which ends when no rank is left. Remote
attach: the user names the devices. Their daemons are running already, or this module starts them and ends
them with the job. The launcher hands the ranks their variables. So the library is preloaded only into the
ranks, and not into mpirun or a script around it.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from offpath import console, control, devices, logs, mpi_library, openmp, preload, tuning_table
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import owner, placement, rooms
from offpath.lab.clean import daemons_of
from offpath.remote_daemons import RemoteDaemons, StartOptions
from offpath.tracing import record
from offpath.units import format_cpus

_LIST_DELIMITER = ";"
_OPEN_MPI_LAUNCHERS = ("mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi")
_STOP_SECONDS = 3.0
_NOT_ATTACHED = "not-attached"  # a file that the front end makes in the session (runtime/runtime.cpp)
_SI_KERNEL = 0x80  # si_code of a signal that a terminal sent
_LAUNCHER_ENDS_S = 1.0  # seconds that a launcher gets to end after an interrupt of its own


@dataclass(frozen=True)
class LaunchOptions:
    device_cpus: tuple[int, ...]
    proxies: int | None = None
    spin_us: int | None = None
    verbose: int | None = None
    remote: list[devices.RemoteDevice] = field(default_factory=list)  # for remote attach: the devices
    key_file: Path | None = (
        None  # of daemons that are running already; None: this job starts them, with a new key
    )
    host_devices: str | None = None  # UCX's network devices at the hosts' end of the link
    start: StartOptions = field(default_factory=StartOptions)
    mpi: str | None = None  # the program's MPI library; None: detect it
    keep_logs: bool = False
    trace: Path | None = None  # the directory of its trace


def default_device_cpus(allowed: set[int]) -> tuple[int, ...]:
    """The last physical core that this process may use. Launchers fill cores from the first one on."""
    return placement.physical_cores(allowed)[-1]


def rank_variables(
    artifacts: Artifacts,
    session: Path,
    options: LaunchOptions,
    inherited: dict[str, str],
    mpi: str = "openmpi",
) -> dict[str, str]:
    """The variables that every rank must see."""
    if mpi != mpi_library.NONE:
        variables = preload.variables(artifacts.front_end(mpi), inherited)
    else:
        variables = {"LD_PRELOAD": inherited["LD_PRELOAD"]} if inherited.get("LD_PRELOAD") else {}
    variables["OFFPATH"] = inherited.get("OFFPATH", "on")
    given: dict[str, object] = {}
    if options.remote:
        variables |= {
            "OFFPATH_DEVICES": devices.setting(options.remote),
            "OFFPATH_KEY_FILE": str(options.key_file or session / "key"),
        }
        given["OFFPATH_HOST_DEVICES"] = options.host_devices or inherited.get("OFFPATH_HOST_DEVICES")
    else:
        variables |= {
            "OFFPATH_DIR": str(session),
            "OFFPATH_AUTOSTART": "1",
            "OFFPATH_DAEMON": str(artifacts.daemon),
            "OFFPATH_DEVICE_CPUS": format_cpus(options.device_cpus),
        }
        given |= {"OFFPATH_PROXIES": options.proxies, "OFFPATH_SPIN_US": options.spin_us}
    given |= {
        "OFFPATH_VERBOSE": options.verbose,
        "OFFPATH_ENCRYPT": inherited.get("OFFPATH_ENCRYPT"),
        "OFFPATH_TUNING": inherited.get("OFFPATH_TUNING", _tuning_table()),
        "OFFPATH_SIGNATURES": inherited.get("OFFPATH_SIGNATURES", "on"),
    }
    given["OFFPATH_CONTROL"] = inherited.get("OFFPATH_CONTROL", session / control.NAME)
    return variables | {name: str(value) for name, value in given.items() if value is not None}


def _tuning_table() -> Path | None:
    path = tuning_table.default_table()
    return path if os.path.exists(path) else None  # not there, or not ours to see


def prepare(
    command: list[str], variables: dict[str, str], inherited: dict[str, str], mpi: str = "openmpi"
) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of the launcher. It hands the variables to the ranks. The library
    is not preloaded into the launcher itself."""
    launcher = Path(command[0]).name
    if launcher != "srun" and (mpi == "mpich" or (mpi == "abi" and _is_hydra_or_hides_it(command))):
        return _prepare_hydra(command, variables, inherited)
    separators = "," if launcher == "srun" else _LIST_DELIMITER
    for name, value in variables.items():
        if separators in value and (launcher != "srun" or name == "LD_PRELOAD"):
            raise OffpathError(
                Code.MPI_LIBRARY,
                f"{name}={value} cannot be handed to the ranks: it contains {separators!r}",
                "use a path without it",
            )
    environment = dict(inherited) | {name: value for name, value in variables.items() if name != "LD_PRELOAD"}
    if launcher == "srun" and "LD_PRELOAD" not in variables:
        return command, environment
    if launcher == "srun":
        environment["SLURM_EXPORT_ENV"] = (
            f"{inherited.get('SLURM_EXPORT_ENV', 'ALL')},LD_PRELOAD={variables['LD_PRELOAD']}"
        )
        return command, environment
    if launcher in _OPEN_MPI_LAUNCHERS and "-x" in command:
        # Open MPI takes either -x or the list below, but not both.
        exports = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        return [command[0], *exports, *command[1:]], environment
    listed = [inherited["OMPI_MCA_mca_base_env_list"]] if inherited.get("OMPI_MCA_mca_base_env_list") else []
    listed += [f"{name}={value}" for name, value in variables.items()]
    environment["OMPI_MCA_mca_base_env_list"] = _LIST_DELIMITER.join(listed)
    environment["OMPI_MCA_mca_base_env_list_delimiter"] = _LIST_DELIMITER
    return command, environment


def _is_hydra_or_hides_it(command: list[str]) -> bool:
    return mpi_library.launcher_of(command) is None or mpi_library.launcher_kind(command[0]) == "mpich"


def _prepare_hydra(
    command: list[str], variables: dict[str, str], inherited: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Prepares Hydra, which gives the ranks its own environment. If a script starts Hydra, the script gets
    the preloaded library, too."""
    if not mpi_library.launcher_of(command):
        return command, dict(inherited) | variables
    environment = dict(inherited) | {name: value for name, value in variables.items() if name != "LD_PRELOAD"}
    return [command[0], "-genv", "LD_PRELOAD", variables["LD_PRELOAD"], *command[1:]], environment


def run(command: list[str], artifacts: Artifacts, options: LaunchOptions) -> int:
    """Runs `command` to its end and returns its exit code. Afterwards the session directory and its daemons
    are gone."""
    session = Path(tempfile.mkdtemp(prefix=control.PREFIX, dir=rooms.root()))
    try:
        with contextlib.ExitStack() as stack:
            (session / "owner").write_text(owner.mark())
            inherited = dict(os.environ)
            regions = openmp.has_regions(command)
            mpi = mpi_library.of_job(command, options.mpi, needed=not regions)
            if mpi == "mpich":
                mpi_library.check_front_end(command, artifacts.front_end(mpi))
            variables = rank_variables(artifacts, session, options, inherited, mpi)
            variables |= openmp.variables(artifacts, variables, inherited, needed=regions)
            if options.trace is not None:
                folder = record.prepare(options.trace)
                variables |= record.variables(artifacts, mpi, folder, variables)
                stack.callback(record.finish, folder)
            command, environment = prepare(mpi_library.start_with(command, mpi), variables, inherited, mpi)
            if options.remote and options.key_file is None:
                stack.enter_context(RemoteDaemons(options.remote, options.start, session / "key"))
            try:
                process = subprocess.Popen(command, env=environment)
            except OSError as error:
                raise OffpathError(
                    Code.NOT_INSTALLED, f"{command[0]!r} cannot be run: {error.strerror}"
                ) from error
            signals: list[int] = []
            code = wait_for(process, signals)
            if not options.remote and not signals:
                _tell(session, code, command, mpi)
            return code
    finally:
        _end(session, options.keep_logs)


def is_local(command: list[str]) -> bool:
    """Whether the command line names no other hosts for the launcher."""
    return not any(
        word.lstrip("-") in ("host", "H", "hostfile", "machinefile", "N", "nodes")
        for word in command
        if word.startswith("-")
    )


def _tell(session: Path, code: int, command: list[str], mpi: str) -> None:
    """Reports what the ranks cannot report themselves: the log of the device if the job failed, or that no
    rank asked for a device. Says nothing if a rank has said why."""
    if (session / "told").exists():
        return
    log, *_ = [*session.glob("*.log"), None]
    if (session / _NOT_ATTACHED).exists():  # the ranks have said why, and may have named the log
        if log is not None and (lines := logs.last_lines(log)):
            console.warn(
                Code.DAEMON, f"no device worked; the last log lines of the device on this node:{lines}"
            )
        return
    if log is None:
        if code == 0 and mpi != mpi_library.NONE and is_local(command) and os.environ.get("OFFPATH") != "off":
            console.note(
                "there was nothing to do: no rank asked for a device, as in jobs of one rank and in programs"
                " without MPI"
            )
    elif code != 0 and (lines := logs.last_lines(log)):
        console.warn(
            Code.JOB_FAILED, f"the job failed; the last log lines of the device on this node:{lines}"
        )


def wait_for(process: subprocess.Popen, signals: list[int] | None = None) -> int:
    """Waits until the launcher has ended, and returns its exit code. Ctrl-C in a terminal reaches the
    launcher directly. Signals that were sent only to this process are passed on. `signals` gets those that
    ended the job."""
    old = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    for number in (signal.SIGTERM, signal.SIGHUP):
        old[number] = signal.signal(number, lambda n, _: process.send_signal(n))
    awaited = {*old, signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    interrupt_at = None
    try:
        while process.poll() is None:
            got = signal.sigtimedwait(awaited, 0.2)
            if got is not None and got.si_signo != signal.SIGCHLD and signals is not None:
                signals.append(got.si_signo)
            if got is not None and got.si_signo in (signal.SIGTERM, signal.SIGHUP):
                process.send_signal(got.si_signo)
            if got is not None and got.si_signo == signal.SIGINT and got.si_code != _SI_KERNEL:
                interrupt_at = (
                    time.monotonic() + _LAUNCHER_ENDS_S
                )  # the sender may have signalled the whole group, including the launcher
            if interrupt_at is not None and time.monotonic() >= interrupt_at:
                interrupt_at = None
                process.send_signal(signal.SIGINT)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in old.items():
            signal.signal(number, handler)
    code = process.returncode
    return code if code >= 0 else 128 - code


def _end(session: Path, keep_logs: bool) -> None:
    _end_daemons(session)
    if keep_logs:
        logs.keep(session, into := logs.folder())
        console.note(f"the logs of this node's device are in {into}")
    shutil.rmtree(session, ignore_errors=True)


def _end_daemons(session: Path) -> None:
    with contextlib.ExitStack() as stack:
        running = []  # descriptors of processes, readable when they have ended
        for pid in daemons_of(session):
            with contextlib.suppress(OSError):
                running.append(os.pidfd_open(pid))
                stack.callback(os.close, running[-1])
                signal.pidfd_send_signal(running[-1], signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while running and (left := deadline - time.monotonic()) > 0:
            ended, _, _ = select.select(running, [], [], left)
            running = [process for process in running if process not in ended]
        for process in running:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                console.warn(Code.DAEMON, "a device did not stop in time and was killed")
