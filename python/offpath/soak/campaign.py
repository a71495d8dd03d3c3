"""Runs a soak: one program after the other, each with a fault, in an emulated cluster."""

import contextlib
import itertools
import re
import shutil
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from offpath import compare, console, logs, metrics
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import launcher
from offpath.lab.cluster import DPUS, Cluster, LabSpec, open_cluster
from offpath.lab.launcher import Launched
from offpath.soak import leftovers, outcome, plan, stacks, summary
from offpath.soak.devices import SoakDevices
from offpath.soak.faults import Fault
from offpath.soak.growth import Life
from offpath.soak.programs import SoakProgram

# A run is hung when it is not over this long after its fault, and after the time that it takes without one.
PATIENCE_S = 10.0
# Runs share the machine with others, so their normal time varies.
_SLOWER = 2.0
_REFERENCE_LIMIT_S = 120.0
# A run that takes too long goes on for so long, in which a debugger looks at it.
_STACKS_SECONDS = 5.0
# After a cut, a launcher's processes notice the end of their job when TCP tries again.
_STRAY_SECONDS = 15.0
_REFERENCE_SEED = 1


@dataclass(frozen=True)
class SoakSpec:
    seconds: float
    seed: int
    faults: list[str]  # empty: no run has one
    devices: list[str]  # where devices run; drawn for each stretch of runs, or the first without faults
    runs: int | None = None  # at most this many; None: until the time is over

    def check(self) -> None:
        if not 0 < self.seconds <= 7 * 24 * 3600:
            raise OffpathError(
                Code.OPTION, f"--minutes {self.seconds / 60:g} is out of range", "use up to 10080"
            )
        if self.runs is not None and not 1 <= self.runs <= 10**6:
            raise OffpathError(Code.OPTION, f"--runs {self.runs} is out of range", "use 1 to 1000000")
        for kind in self.devices:
            if kind not in DPUS:
                raise OffpathError(
                    Code.OPTION, f"--devices {kind!r} is not known", "use some of " + ", ".join(DPUS)
                )
        for name in self.faults:
            if name not in plan.FAULTS:
                raise OffpathError(
                    Code.OPTION,
                    f"fault {name!r} is not known",
                    f"use some of {', '.join(plan.FAULTS)}, or {plan.NONE} alone",
                )


@dataclass
class Reference:
    """A program without faults: what it prints, and how long it takes with offload."""

    record: dict
    normal_s: float
    slowest_s: float  # where a fault makes it run without a device


@dataclass
class Row:
    run: int
    began_s: float  # since the soak began
    program: str
    mpi: str  # openmpi, mpich or shmem
    devices: str  # where they run: local, remote or aarch64
    fault: str
    victim: str
    at: float  # the moment, as plan.Choice has it
    lasts_s: float | None
    at_s: float | None  # None: the run ended before the fault
    outcome: str
    seconds: float
    normal_s: float
    recovery_s: float | None  # what the fault cost a run that finished right
    message: str
    left_behind: list[str] = field(default_factory=list)
    daemons_lost: list[str] = field(default_factory=list)  # that no fault has ended


class Campaign:
    _cluster: Cluster  # of the present stretch

    def __init__(self, lab: LabSpec, artifacts: Artifacts, programs: list[SoakProgram], spec: SoakSpec):
        self._lab, self._artifacts, self._spec = lab, artifacts, spec
        self._programs = {program.name: program for program in programs}
        self._references: dict[tuple[str, str], Reference] = {}  # by program and devices
        self._evidence: Path | None = None
        self.rows: list[Row] = []

    def run(self) -> dict:
        """Runs until the time is over, and returns the report."""
        began = time.monotonic()
        lives: list[Life] = []
        for stretch in itertools.count():
            kind = plan.devices(self._spec.seed, stretch, self._spec.devices)
            if not self._spec.faults:
                kind = self._spec.devices[0]
            with open_cluster(replace(self._lab, dpu=kind), self._artifacts) as self._cluster:
                console.note(self._cluster.describe())
                lives += self._stretch(began)
            if self._is_over(began):
                break
        return summary.report(self._spec.seed, [asdict(row) for row in self.rows], lives)

    def _is_over(self, began: float) -> bool:
        return time.monotonic() - began >= self._spec.seconds or len(self.rows) == self._spec.runs

    def _stretch(self, began: float) -> list[Life]:
        """Runs in one cluster. Without faults, its daemons serve all runs."""
        until = len(self.rows) + plan.RUNS_OF_A_CLUSTER if self._spec.faults else None
        with SoakDevices(self._cluster, began) as devices:
            before = leftovers.now(self._cluster, devices.session)
            while not self._is_over(began) and len(self.rows) != until:
                self._one(devices, before)
            return devices.lives

    def _one(self, devices: SoakDevices, before: set[str]) -> None:
        spec = self._cluster.spec
        choice = plan.choose(
            self._spec.seed,
            len(self.rows),
            list(self._programs),
            self._spec.faults,
            spec.nodes,
            spec.nodes * spec.ranks_per_node,
        )
        reference = self._reference(self._programs[choice.program], devices)
        at_s = choice.moment_s(reference.normal_s)
        fault = Fault(choice, at_s, self._cluster, devices)
        limit = at_s + PATIENCE_S + _SLOWER * reference.slowest_s + (choice.lasts_s or 0.0)
        began_s = devices.seconds()
        launched, seconds, stack_text = self._job(choice, devices, limit, fault)
        row = self._row(choice, began_s, reference, launched, seconds, fault)
        self._clean_up(choice, devices, before, row)
        self.rows.append(row)
        if not summary.is_good(asdict(row)):
            self._keep(row, launched, stack_text, devices)
        devices.revive()
        devices.sample(row.run)
        console.note(summary.line(asdict(row)))

    def _reference(self, program: SoakProgram, devices: SoakDevices) -> Reference:
        """What the program prints without offload, and how long it takes with it. Measured before its first
        run. Raises OffpathError if it fails without a fault."""
        key = program.name, self._cluster.spec.dpu
        if key in self._references:
            return self._references[key]
        record: dict = {}
        slowest = 0.0
        for offload in (False, True):
            if not (offload or program.has_host_run):
                continue
            launched, seconds, _ = self._launch(
                program, devices, _REFERENCE_SEED, offload, _REFERENCE_LIMIT_S
            )
            if launched.exit_code != 0:
                raise OffpathError(
                    Code.JOB_FAILED,
                    f"{program.name} failed {'with' if offload else 'without'} offload before any fault, with"
                    f" code {launched.exit_code}\n{launched.stderr.strip()}\n{launched.stdout.strip()}",
                )
            found = _record(program, launched, "offpath" if offload else "host", 0)
            if record and not program.verifies and (wrong := compare.differences([record, found])):
                raise OffpathError(
                    Code.WRONG_RESULTS, f"{program.name} gave wrong results before any fault: {wrong[0]}"
                )
            record = record or found
            slowest = max(slowest, seconds)
        self._cluster.end_strays(devices.pids())
        self._references[key] = Reference(record, seconds, slowest)
        return self._references[key]

    def _job(
        self, choice: plan.Choice, devices: SoakDevices, limit: float, fault: Fault
    ) -> tuple[Launched, float, str]:
        try:
            fault.start()
            return self._launch(self._programs[choice.program], devices, choice.program_seed, True, limit)
        finally:
            fault.end()

    def _launch(
        self, program: SoakProgram, devices: SoakDevices, seed: int, offload: bool, limit: float
    ) -> tuple[Launched, float, str]:
        """Runs the program once. Returns also the stacks of all processes if it took too long."""
        job = self._cluster.room / "soak-job"
        job.mkdir(mode=0o700)
        try:
            command, environment = self._cluster.command_line(
                program.engine(offload), program.command(self._artifacts, seed), job, devices.attach()
            )
            taken: list[str] = []
            watch = threading.Timer(limit, lambda: taken.append(stacks.of_all(devices.pids())))
            watch.start()
            started = time.monotonic()
            try:
                launched = launcher.run(
                    command, environment, self._cluster.room, limit + _STACKS_SECONDS, None
                )
            finally:
                seconds = time.monotonic() - started
                watch.cancel()
                watch.join()
            # A debugger can end a wait that would have lasted, so nothing counts that comes then.
            if taken:
                launched.exit_code = launcher.TIMED_OUT
            return launched, seconds, "".join(taken)
        finally:
            shutil.rmtree(job, ignore_errors=True)

    def _row(
        self,
        choice: plan.Choice,
        began_s: float,
        reference: Reference,
        launched: Launched,
        seconds: float,
        fault: Fault,
    ) -> Row:
        differences: list[str] = []
        program = self._programs[choice.program]
        if launched.exit_code == 0 and not program.verifies:
            found = _record(program, launched, "offpath", len(self.rows))
            differences = compare.differences([reference.record, found])
        ended = outcome.Ended(
            launched.exit_code,
            launched.exit_code == launcher.TIMED_OUT,
            launched.stderr,
            differences,
            launched.stdout,
        )
        struck = fault.struck_s is not None
        how, message = outcome.judge(ended, choice.fault if struck else plan.NONE)
        right = how == outcome.RIGHT and struck
        return Row(
            len(self.rows),
            began_s,
            choice.program,
            program.library,
            self._cluster.spec.dpu,
            choice.fault,
            choice.victim_name(),
            choice.at,
            choice.lasts_s,
            fault.struck_s,
            how,
            seconds,
            reference.normal_s,
            max(0.0, seconds - reference.normal_s) if right else None,
            message,
        )

    def _clean_up(self, choice: plan.Choice, devices: SoakDevices, before: set[str], row: Row) -> None:
        """Ends and removes what the run has left, and notes it in the row."""
        # A rank may end a daemon that stays stopped.
        ends = choice.fault in plan.KILLS or (choice.fault == plan.STOP and choice.lasts_s is None)
        expected = {choice.victim} if ends and row.at_s is not None else set()
        row.daemons_lost = [devices.last_words(node) for node in devices.dead() if node not in expected]
        devices.reap()
        strays = self._cluster.end_strays(devices.pids(), _STRAY_SECONDS)
        if row.outcome != outcome.HUNG:
            row.left_behind += strays
        left = leftovers.now(self._cluster, devices.session) - before
        row.left_behind += sorted(left)
        # Nobody else's files: in its namespaces the lab has a /dev/shm of its own.
        mine = leftovers.SHARED_MEMORY.iterdir() if self._cluster.namespaced else ()
        for path in mine:
            if path != self._cluster.room:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _keep(self, row: Row, launched: Launched, stack_text: str, devices: SoakDevices) -> None:
        """Keeps what explains a bad run: its output, the daemons' logs, and stacks."""
        self._evidence = self._evidence or logs.folder()
        into = self._evidence / f"run{row.run}"
        into.mkdir()
        (into / "stdout").write_text(launched.stdout)
        (into / "stderr").write_text(launched.stderr)
        if stack_text:
            (into / "stacks").write_text(stack_text)
        for log in devices.logs():
            if log.exists():
                shutil.copyfile(log, into / log.name)
        console.warn(Code.JOB_FAILED, f"output, logs and stacks of run {row.run} are in {into}")


def _record(program: SoakProgram, launched: Launched, engine: str, run: int) -> dict:
    """A record as `offpath lab compare` makes one."""
    return {
        "engine": engine,
        "run": run,
        "failed": False,
        "results": metrics.results(metrics.last_json_object(launched.stdout)),
        "output": [re.sub(program.ignored, "", line) for line in metrics.plain_output(launched.stdout)],
    }
