"""An emulated cluster that is up: nodes, links and placement. It runs jobs one after the other."""

import contextlib
import copy
import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from offpath import console, logs, metrics, mpi_library, openmp
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import (
    device_ranks,
    launcher,
    mpi,
    network,
    owner,
    placement,
    rooms,
    sandbox,
    strays,
    traffic,
    turns,
)
from offpath.lab.cgroup import DeviceQuota
from offpath.lab.device import Device, DeviceOptions, RemoteAttach, first_complaint
from offpath.lab.mpi import Engine
from offpath.lab.network import Link
from offpath.lab.node import Node, make_node, run_ip, run_tool
from offpath.last_words import last_words

DPUS = ("local", "remote", "aarch64")
# A run of MPICH that does not end (launcher.py) is started again when it takes MPICH_PATIENCE times as long
# as the longest run before it, and at least MPICH_PATIENCE_S.
MPICH_TRIES = 3
MPICH_PATIENCE = 10
MPICH_PATIENCE_S = 30.0


@dataclass(frozen=True)
class LabSpec:
    nodes: int = 2
    ranks_per_node: int = 1
    link: Link = field(default_factory=lambda: Link(None))
    placement: str = "split"
    turns_us: int | None = turns.DEFAULT_US  # turns of processes that share a core; None: the kernel's own
    # Where devices run: on the node, on a machine of their own, or on one with another instruction set.
    dpu: str = "local"
    # The host-device link of devices with machines of their own.
    pcie: Link = field(default_factory=lambda: Link(None))
    device_quota: float | None = None
    proxies: int | None = None
    spin_us: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    mca: dict[str, str] = field(default_factory=dict)
    log_level: str = "warn"
    timeout: float | None = None
    keep_logs: bool = False

    def check(self) -> None:
        network.check_nodes(self.nodes)
        network.check_burst(self.link)
        turns.check(self.turns_us)
        for value, name, low, high in (
            (self.ranks_per_node, "--ranks-per-node", 1, 1024),
            (self.proxies, "--proxies", 1, 256),
            (self.spin_us, "--spin-us", 0, 10**7),
        ):
            if value is not None and not low <= value <= high:
                raise OffpathError(Code.OPTION, f"{name} {value} is out of range", f"use {low} to {high}")
        if self.dpu not in DPUS:
            raise OffpathError(Code.OPTION, f"--dpu {self.dpu!r} is not known", "use " + ", ".join(DPUS))

    @property
    def remote(self) -> bool:
        """Whether devices have machines of their own."""
        return self.dpu != "local"


@dataclass(frozen=True)
class JobResult:
    exit_code: int
    wall_s: float
    stdout: str  # empty if it went directly to the terminal
    stderr: str
    wire_bytes: list[traffic.NodeTraffic]
    pcie_bytes: list[traffic.NodeTraffic]  # empty unless devices have machines of their own
    device_cpu_s: float | None
    complaints: list[str]


class Cluster:
    """A context manager, to be used inside the sandbox, or outside of it for the one-node mode (`namespaced`
    False)."""

    def __init__(self, spec: LabSpec, artifacts: Artifacts, namespaced: bool):
        spec.check()
        if not namespaced and spec.nodes != 1:
            raise OffpathError(Code.NO_LAB, "without namespaces there is one node only", "use --nodes 1")
        if not namespaced and spec.remote:
            raise OffpathError(
                Code.NO_LAB,
                f"without namespaces there is no machine for a device of its own (--dpu {spec.dpu})",
                "use --dpu local",
            )
        self.spec, self.artifacts, self.namespaced = spec, artifacts, namespaced
        self.placements = placement.place(spec.nodes, spec.ranks_per_node, spec.placement)
        self.nodes: list[Node] = []
        self._every_node = self.nodes  # includes nodes that a part of the cluster does not use
        self._quotas: list[DeviceQuota | None] = []
        self._cleanup = contextlib.ExitStack()
        self._turns: turns.Turns | None = None
        self._jobs = 0
        self._longest_s = 0.0  # of the runs that succeeded
        self._logs: Path | None = None  # directory of kept logs
        self._counting = threading.Lock()

    def __enter__(self) -> "Cluster":
        with contextlib.ExitStack() as undo:
            self.room = self._make_room(undo)
            if self.namespaced:
                self._make_network(undo)
            else:
                self.nodes.append(Node(os.uname().nodename, self.placements[0]))
            for machine in [machine for node in self.nodes for machine in (node, node.dpu) if machine]:
                (self.room / machine.name).mkdir(mode=0o700)
            self._quotas = [None] * len(self.nodes)
            if self.spec.device_quota is not None:
                for i, node in enumerate(self.nodes):
                    quota = DeviceQuota(sandbox.owner_mark(), node.name, self.spec.device_quota)
                    undo.callback(quota.remove)
                    self._quotas[i] = quota
            self._take_turns(undo)
            if self.spec.keep_logs:
                self._logs = logs.folder()
                undo.callback(lambda: console.note(f"the devices' logs are in {self._logs}"))
            self._cleanup = undo.pop_all()
        return self

    def _take_turns(self, undo: contextlib.ExitStack) -> None:
        cores = turns.shared_cores(self.placements, self.spec.ranks_per_node)
        if self.spec.turns_us is not None and cores:
            self._turns = turns.Turns(self.spec.turns_us, cores)
            undo.callback(self._turns.end)

    def __exit__(self, *_) -> None:
        self._cleanup.close()

    def describe(self) -> str:
        spec = self.spec
        ranks = f"{spec.ranks_per_node} rank{'s' if spec.ranks_per_node > 1 else ''}"
        nodes = f"{spec.nodes} node{'s' if spec.nodes > 1 else ''} x {ranks}"
        link = f", {spec.link.describe()}" if self.namespaced and spec.nodes > 1 else ""
        kind = {
            "local": "",
            "remote": ", devices on machines of their own",
            "aarch64": ", aarch64 devices (emulated) on machines of their own",
        }[spec.dpu]
        pcie = f", host-device {spec.pcie.describe()}" if spec.remote else ""
        quota = f", each device limited to {spec.device_quota:g} of a core" if spec.device_quota else ""
        turn = (
            f", in turns of {self._turns.microseconds / 1000:g} ms"
            if self._turns and self._turns.are_short
            else ""
        )
        return f"{nodes}{link}{kind}{pcie}; {placement.describe(self.placements)}{turn}{quota}"

    def first(self, nodes: int, ranks_per_node: int | None = None) -> "Cluster":
        """The same cluster with only its first nodes in use, and optionally another number of ranks on each.
        It runs jobs, one at a time, and ends with this cluster."""
        if not 1 <= nodes <= len(self.nodes):
            raise OffpathError(Code.OPTION, f"there are not {nodes} nodes in a cluster of {len(self.nodes)}")
        part = copy.copy(self)
        part.spec = replace(self.spec, nodes=nodes, ranks_per_node=ranks_per_node or self.spec.ranks_per_node)
        part.placements, part.nodes, part._quotas = (
            self.placements[:nodes],
            self.nodes[:nodes],
            self._quotas[:nodes],
        )
        return part

    def run(
        self,
        engine: Engine,
        program: list[str],
        capture: bool = False,
        layout: device_ranks.Layout | None = None,
    ) -> JobResult:
        """Runs `program` under mpirun on all nodes, or where `layout` says. Only the run is timed, not the
        start of the devices. A captured run of MPICH without offload is started again if it does not end."""
        limit = self._patience(engine) if capture else None
        for tries_left in reversed(range(MPICH_TRIES if limit else 1)):
            result = self._run_in_a_room(engine, program, capture, layout, limit=limit)
            if result.exit_code == 0:
                self._longest_s = max(self._longest_s, result.wall_s)
            if result.exit_code != launcher.TIMED_OUT or not tries_left:
                break
            console.note(f"{engine.label} did not end within {limit:.0f} s; it is started again")
        return result

    def _patience(self, engine: Engine) -> float | None:
        """Seconds after which a run of this engine is ended and started again. None: never."""
        if not engine.mpich or engine.offload or self.spec.timeout is not None or not self._longest_s:
            return None
        return max(MPICH_PATIENCE_S, MPICH_PATIENCE * self._longest_s)

    def run_together(self, jobs: list[tuple[Engine, list[str]]]) -> list[JobResult]:
        """Runs several jobs at the same time, and captures their output. The links' traffic and the wall
        time, which they share, are reported for each job as if they were its own."""
        with ThreadPoolExecutor(len(jobs)) as pool:
            running = [
                pool.submit(self._run_in_a_room, engine, program, True, None, ends_strays=False)
                for engine, program in jobs
            ]
        if self.namespaced and (complaints := self.end_strays(set())):
            running[0].result().complaints.extend(complaints)
        return [job.result() for job in running]

    def _run_in_a_room(
        self,
        engine: Engine,
        program: list[str],
        capture: bool,
        layout: device_ranks.Layout | None,
        ends_strays: bool = True,
        limit: float | None = None,
    ) -> JobResult:
        with self._counting:
            job = self.room / f"job{self._jobs}"
            self._jobs += 1
        job.mkdir(mode=0o700)
        try:
            return self._run(engine, program, capture, job, layout, ends_strays, limit)
        finally:
            if self._logs is not None:
                logs.keep(job / "session", self._logs / job.name)
            shutil.rmtree(job, ignore_errors=True)

    def _run(
        self,
        engine: Engine,
        program: list[str],
        capture: bool,
        job: Path,
        layout: device_ranks.Layout | None,
        ends_strays: bool,
        limit: float | None,
    ) -> JobResult:
        session = job / "session"
        session.mkdir(mode=0o700)
        remote = (
            RemoteAttach(len(self.nodes), session)
            if engine.offload and self.spec.remote and not engine.local
            else None
        )
        attach = remote.variables() if remote else {"OFFPATH_DIR": str(session)}
        command, environment = self.command_line(engine, program, job, attach, layout)

        with contextlib.ExitStack() as stack:
            devices = self.start_devices(session, remote) if engine.offload else []
            for device in devices:
                stack.callback(device.stop)
            before = self._traffic()
            started = time.monotonic()
            launched = launcher.run(
                command, environment, self.room if capture else None, self.spec.timeout, limit
            )
            wall = time.monotonic() - started - launched.hung_s
            after = self._traffic()
            ended = list(filter(None, (device.ended() for device in devices)))
            complaints = launched.complaints + ended
            if launched.exit_code != 0 and not any("\n" in words for words in ended):
                complaints += filter(None, [first_complaint(devices)])
            cpu = [device.cpu_seconds() for device in devices]
            if self.namespaced and ends_strays:
                complaints += self.end_strays({device.process.pid for device in devices})
        wire, pcie = (traffic.difference(*pair) for pair in zip(before, after, strict=True))
        if dropped := sum(node.dropped for node in wire + pcie):
            complaints.append(
                f"the links dropped {dropped} packets: their queues are not meant to overflow, and times"
                " suffer"
            )
        known = [seconds for seconds in cpu if seconds is not None]
        device_cpu = sum(known) if known and len(known) == len(cpu) else None
        return JobResult(
            launched.exit_code, wall, launched.stdout, launched.stderr, wire, pcie, device_cpu, complaints
        )

    def command_line(
        self,
        engine: Engine,
        program: list[str],
        job: Path,
        attach: dict[str, str],
        layout: device_ranks.Layout | None = None,
    ) -> tuple[list[str], dict[str, str]]:
        """The launcher's command line and environment. `job`: a directory for its files. `attach` tells the
        ranks how to find their device."""
        environment = self.environment()
        library = mpi_library.of_program(program) if layout is None else "openmpi"
        front_end = self.artifacts.front_end(library) if engine.offload and engine.front_end else None
        ranks = mpi.rank_environment(engine, attach, front_end, self.spec.environment)
        if engine.offload:
            ranks |= openmp.variables(self.artifacts, ranks, os.environ, needed=openmp.has_regions(program))
        (job / "hostfile").write_text(mpi.hostfile(self.nodes, self.spec.ranks_per_node))
        limits = {
            node.dpu.name: quota.path
            for node, quota in zip(self.nodes, self._quotas, strict=True)
            if layout and quota and node.dpu
        }
        (job / "agent").write_text(mpi.agent_script(self.nodes, engine, self.room, limits))
        (job / "agent").chmod(0o700)
        mca = mpi.mca_settings(self.namespaced, engine, self.spec.mca)
        if library == "mpich":
            command = mpi.mpiexec_command(self.nodes, self.spec.ranks_per_node, program, job, ranks)
        elif layout is None:
            command = mpi.mpirun_command(self.nodes, self.spec.ranks_per_node, program, job, mca, ranks)
        else:
            device_ranks.route_over_pcie(self.nodes)
            command = device_ranks.command(self.nodes, layout, program, ranks)
            environment |= device_ranks.settings(mca, job / "agent" if self.namespaced else None)
        # mpirun itself does not run on the device cores.
        cpus = self.placements[0].host[:1] if self.namespaced else mpi.rank_cpus(self.nodes[0], engine)
        return ["taskset", "-c", ",".join(map(str, cpus)), *command], environment

    def environment(self) -> dict[str, str]:
        """The environment of what runs on the nodes."""
        environment = dict(os.environ) | {"TMPDIR": str(self.room), "PMIX_SYSTEM_TMPDIR": str(self.room)}
        environment.pop(sandbox.INSIDE, None)
        return environment

    def device_environment(self) -> dict[str, str]:
        # UCX installs hooks for memory that is registered with a network card, which takes 0.4 s. The nodes
        # of a lab have no such card.
        hooks = {"UCX_MEM_MMAP_HOOK_MODE": "none"} if self.namespaced else {}
        # The daemon would set it itself, and begin anew.
        steady = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        return hooks | steady | self.environment() | self.spec.environment

    def _traffic(self) -> tuple[list[traffic.NodeTraffic], list[traffic.NodeTraffic]]:
        """Traffic through the network, and through the host-device links."""
        return (traffic.read(self.nodes), traffic.read_pcie(self.nodes)) if self.namespaced else ([], [])

    def start_devices(self, session: Path, remote: RemoteAttach | None) -> list[Device]:
        """Starts the devices of all nodes, and returns when they are ready. The caller stops them."""
        devices: list[Device] = []
        try:
            devices += [self.start_device(node, session, remote) for node in self.nodes]
            for device in devices:
                device.wait_ready()
        except BaseException:
            for device in devices:
                device.stop()
            raise
        return devices

    def start_device(
        self, node: Node, session: Path, remote: RemoteAttach | None, replace: bool = False
    ) -> Device:
        """Starts the device of one node. It may not be ready yet. `replace`: it takes the place of another
        one."""
        daemon = self.artifacts.device(self.spec.dpu if remote is not None else "local")
        daemon = [*daemon, "--replace"] if replace else daemon
        options = DeviceOptions(daemon, self.spec.proxies, self.spec.spin_us, self.spec.log_level)
        quota = self._quotas[node.index] if self._quotas else None
        return Device(
            options, node, session, self.device_environment(), quota, remote.key if remote else None
        )

    def end_strays(self, devices: set[int], seconds: float = strays.STRAY_SECONDS) -> list[str]:
        """Ends what a job has left running besides these devices, if it does not end by itself within this
        time. Returns the complaints."""
        keep = devices | {holder.pid for node in self._every_node for holder in node.holders()}
        return strays.end(keep | (self._turns.processes() if self._turns else set()), seconds)

    def _make_room(self, undo: contextlib.ExitStack) -> Path:
        """Makes the lab's own directory. Inside the sandbox it is in a private /dev/shm, which ends with the
        namespaces."""
        if self.namespaced:
            run_tool(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm"])
            room = Path("/dev/shm/offpath-lab")
            room.mkdir(mode=0o700)
            return room
        room = Path(tempfile.mkdtemp(prefix="offpath-lab-", dir=rooms.root()))
        undo.callback(shutil.rmtree, room, ignore_errors=True)
        (room / "owner").write_text(owner.mark())
        return room

    def _make_network(self, undo: contextlib.ExitStack) -> None:
        hosts = self.room / "hosts"
        hosts.write_text(network.hosts_file(self.spec.nodes, with_devices=self.spec.remote))
        run_tool(["mount", "--bind", str(hosts), "/etc/hosts"])
        run_tool(["hostname", "head"])
        addresses = network.network_addresses(self.spec.nodes, with_devices=self.spec.remote)
        run_ip(
            network.switch_commands()
            + network.neighbour_commands(network.INTERFACE, network.HEAD_ADDRESS, addresses)
        )
        undo.callback(self._end_nodes)
        for i, place in enumerate(self.placements):
            self.nodes.append(
                make_node(
                    i,
                    place,
                    str(hosts),
                    self.spec.link,
                    self.spec.pcie if self.spec.remote else None,
                    addresses,
                )
            )

    def _end_nodes(self) -> None:
        for holder in [holder for node in self.nodes for holder in node.holders()]:
            holder.kill()
            holder.wait()


def open_cluster(spec: LabSpec, artifacts: Artifacts) -> Cluster:
    """The cluster for this process: in namespaces inside the sandbox, else in one-node mode."""
    return Cluster(spec, artifacts, sandbox.inside())


def measured(result: JobResult, what: str, verifies: bool = True) -> dict:
    """What a measuring program reported about itself. Raises OffpathError if something went wrong.
    `verifies`: the program also reports whether its data were right."""
    said = metrics.last_json_object(result.stdout)
    if result.exit_code != 0 or said is None:
        tail = "\n".join([last_words(result.stdout, result.stderr), *result.complaints])
        raise OffpathError(
            Code.JOB_FAILED,
            f"{what} failed with code {result.exit_code}\n{tail}".rstrip(),
            code=result.exit_code or 1,
        )
    if verifies and not said.get("verified"):
        raise OffpathError(Code.WRONG_RESULTS, f"{what} gave wrong data", code=1)
    for complaint in result.complaints:
        console.warn(Code.JOB_FAILED, f"{what}: {complaint}")
    return said


def report(result: JobResult) -> None:
    for complaint in result.complaints:
        console.warn(Code.JOB_FAILED, complaint)
