"""Figures 14 and 15: the paper's model of the off-path algorithm (Eq. 3), compared with measurements.

    t_off = t_total - {t_force + t_neigh + t_comm - max(t_neigh + t_comm, t_force_dev + t_comm_dev)}
                      * steps / interval

All times but t_total are those of one step with a rebuild. t_total, t_force and t_neigh come from runs on
hosts only. t_comm comes from such a run with interval 1, which communicates nothing else. t_force_dev and
t_comm_dev come from runs on devices only, with interval 1. The extended model adds the transfers between host
and device to the device's branch of the maximum.

The paper's ranks have a core each. If several ranks share a core, a rank's clock also counts the turns of the
others, even in communication, and their forces, which the algorithm moves elsewhere. In that case the times
are those of the core: the sums over all its ranks of the time that each is on it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from offpath.minimd.case import DEVICES, HOSTS, PAPER, Case, Cores, Outcome
from offpath.minimd.measure import Results
from offpath.minimd.spec import Spec
from offpath.minimd.timing import gain
from offpath.models.off_path import StepTimes, eq3, transfer_bytes


@dataclass(frozen=True)
class Transfers:
    """Seconds that a host and its device need for one step's positions, forces and lists."""

    positions: float = 0.0
    forces: float = 0.0
    lists: float = 0.0

    @property
    def total(self) -> float:
        return self.positions + self.forces + self.lists


def transfers(case: Case, bytes_per_s: float | None) -> Transfers:
    """The transfers of one host. If there are ordinary steps, the lists arrive during these."""
    if not bytes_per_s:
        return Transfers()
    atoms = case.atoms / (case.nodes * case.ranks_per_node)
    positions, forces, lists = transfer_bytes(atoms, 8 if case.precision == "double" else 4)
    return Transfers(
        positions / bytes_per_s, forces / bytes_per_s, lists / bytes_per_s if case.interval == 1 else 0.0
    )


# A setting is one Case of the off-path algorithm. It determines the runs that the model needs.


def _host(case: Case) -> Case:
    return case.of(HOSTS)


def _host_every_step(case: Case) -> Case:
    return replace(case.of(HOSTS), interval=1)


def _device(case: Case) -> Case:
    """The run in which the device simulates on its own. The run's threads are the device's."""
    return replace(case.of(DEVICES), interval=1, threads=case.device_threads)


def model_cases(spec: Spec) -> list[Case]:
    return [
        one for case in _settings(spec) for one in (_host(case), _host_every_step(case), _device(case), case)
    ]


def times(outcome: Outcome, ranks_per_core: float) -> StepTimes:
    """The times of a whole run: of one rank, or of all ranks of a core."""
    if ranks_per_core <= 1 or outcome.on_core is None:
        return StepTimes(outcome.force_s, outcome.neigh_s, outcome.comm_s)
    return StepTimes(*(ranks_per_core * seconds for seconds in outcome.on_core))


def predict(
    case: Case, run: Callable[[Case], Outcome], bytes_per_s: float | None, cores: Cores
) -> dict[str, float | None]:
    """The model's seconds for a setting and their components, from the runs of one turn."""
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
    """Medians over the turns. `cores` returns the cores of that many nodes."""
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
