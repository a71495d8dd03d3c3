"""Figures 14 and 15: the paper's model of the off-path algorithm (Eq. 3) beside what is measured.

    t_off = t_total - {t_force + t_neigh + t_comm - max(t_neigh + t_comm, t_force_dev + t_comm_dev)} * steps /
    interval

All times but t_total are those of one step that rebuilds: t_total, t_force, t_neigh of runs on hosts only;
t_comm of such a run with interval 1, where nothing else is communicated; t_force_dev and t_comm_dev of runs
on devices only with interval 1. The extended model puts the transfers between host and device into the
device's branch of the maximum.

The paper's ranks have a core each. Where several take turns on one, a rank's clock counts the others' turns,
in communication that of their neighbours and forces too, which the algorithm moves elsewhere. So the times
are then those of the core: of all its ranks together, as long as each is on it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from offpath.minimd.case import DEVICES, HOSTS, PAPER, Case, Cores, Outcome
from offpath.minimd.measure import Results
from offpath.minimd.spec import Spec
from offpath.minimd.timing import gain

# For each atom, of the pair lists and of what says where atoms and ghosts went. Counted on host-device links:
# 2 hosts with 16000 atoms each.
LIST_INTEGERS = 10


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one step that rebuilds."""

    force: float
    neigh: float
    comm: float


@dataclass(frozen=True)
class Transfers:
    """Seconds that a host and its device need for one step's positions, forces and lists."""

    positions: float = 0.0
    forces: float = 0.0
    lists: float = 0.0

    @property
    def total(self) -> float:
        return self.positions + self.forces + self.lists


def eq3(
    total_s: float, host: StepTimes, device: StepTimes, rebuilds: float, transfers_s: float = 0.0
) -> float:
    """Seconds of the off-path algorithm; with `transfers_s` of the device in each step that rebuilds, the
    extended model."""
    overlapped = max(host.neigh + host.comm, device.force + device.comm + transfers_s)
    return total_s - (host.force + host.neigh + host.comm - overlapped) * rebuilds


def transfer_bytes(atoms: float, real: int) -> tuple[float, float, float]:
    """Positions, forces and lists of so many atoms."""
    return 3 * real * atoms, 3 * real * atoms, 4 * LIST_INTEGERS * atoms


def transfers(case: Case, bytes_per_s: float | None) -> Transfers:
    """Of one host. Lists have the ordinary steps to arrive in, if there are any."""
    if not bytes_per_s:
        return Transfers()
    atoms = case.atoms / (case.nodes * case.ranks_per_node)
    positions, forces, lists = transfer_bytes(atoms, 8 if case.precision == "double" else 4)
    return Transfers(
        positions / bytes_per_s, forces / bytes_per_s, lists / bytes_per_s if case.interval == 1 else 0.0
    )


# A setting is one Case of the off-path algorithm; the runs that the model needs follow from it.


def _host(case: Case) -> Case:
    return case.of(HOSTS)


def _host_every_step(case: Case) -> Case:
    return replace(case.of(HOSTS), interval=1)


def _device(case: Case) -> Case:
    """The device simulates on its own: its threads are the run's."""
    return replace(case.of(DEVICES), interval=1, threads=case.device_threads)


def model_cases(spec: Spec) -> list[Case]:
    return [
        one for case in _settings(spec) for one in (_host(case), _host_every_step(case), _device(case), case)
    ]


def times(outcome: Outcome, ranks_per_core: float) -> StepTimes:
    """Of a whole run: a rank's, or those of all ranks of a core."""
    if ranks_per_core <= 1 or outcome.on_core is None:
        return StepTimes(outcome.force_s, outcome.neigh_s, outcome.comm_s)
    return StepTimes(*(ranks_per_core * seconds for seconds in outcome.on_core))


def predict(
    case: Case, run: Callable[[Case], Outcome], bytes_per_s: float | None, cores: Cores
) -> dict[str, float | None]:
    """The model's seconds for a setting, and what it is made of, from runs of one turn."""
    hosts_per_core = case.nodes * case.ranks_per_node / cores.hosts
    devices_per_core = case.nodes / cores.devices
    base, every, alone = run(_host(case)), run(_host_every_step(case)), run(_device(case))
    of_base, of_every, of_alone = (
        times(base, hosts_per_core),
        times(every, hosts_per_core),
        times(alone, devices_per_core),
    )
    host_step = StepTimes(
        of_base.force / case.steps, of_base.neigh / case.rebuilds, of_every.comm / case.steps
    )
    device_step = StepTimes(
        of_alone.force / case.steps, of_alone.neigh / case.steps, of_alone.comm / case.steps
    )
    moved_s = transfers(case, bytes_per_s).total * max(1.0, hosts_per_core)
    rebuilds = case.steps / case.interval
    predicted = eq3(base.total_s, host_step, device_step, rebuilds)
    extended = eq3(base.total_s, host_step, device_step, rebuilds, moved_s) if bytes_per_s else None
    measured = run(case).total_s
    return {
        "base_total_s": base.total_s,
        "ranks_per_core": hosts_per_core,
        "devices_per_core": devices_per_core,
        "t_force_s": host_step.force,
        "t_neigh_s": host_step.neigh,
        "t_comm_s": host_step.comm,
        "t_force_device_s": device_step.force,
        "t_comm_device_s": device_step.comm,
        "t_transfers_s": moved_s if bytes_per_s else None,
        "transfer_bytes_per_s": bytes_per_s,
        "predicted_s": predicted,
        "extended_s": extended,
        "measured_to_predicted": measured / predicted,
        "measured_to_extended": measured / extended if extended else None,
        "improvement_percent": gain(base.total_s, measured),
        "predicted_improvement_percent": gain(base.total_s, predicted),
    }


def model_rows(
    spec: Spec, results: Results, bytes_per_s: float | None, cores: Callable[[int], Cores]
) -> list[dict]:
    """Medians over the turns. `cores`: of so many nodes."""
    return [_model_row(case, results, bytes_per_s, cores(case.nodes)) for case in _settings(spec)]


def _model_row(case: Case, results: Results, bytes_per_s: float | None, cores: Cores) -> dict:
    def of_turns(key: str) -> float | None:
        return results.over_turns(lambda run: predict(case, run, bytes_per_s, cores)[key])

    keys = predict(case, lambda one: results[one], bytes_per_s, cores)
    return (
        results.row(case)
        | {key: of_turns(key) for key in keys}
        | {"device_bytes": results[case].device_bytes}
    )


def _settings(spec: Spec) -> list[Case]:
    return [
        spec.case(
            PAPER,
            atoms,
            nodes,
            interval=interval,
            threads=threads,
            device_threads=device_threads,
            device_slowness=slowness,
        )
        for nodes in spec.every_nodes
        for atoms in spec.atoms
        for interval in spec.intervals
        for slowness in spec.device_slowness
        for device_threads in spec.device_threads
        for threads in spec.threads
    ]
