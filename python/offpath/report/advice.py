"""What to change: the reasons why a run was not faster, as far as its trace shows them."""

from dataclasses import dataclass, field

from offpath import units
from offpath.report.measures import COMPUTATION, FunctionTime, Overlap, Wire, inside_and_outside
from offpath.report.stayed import Stayed
from offpath.tracing.slices import Trace

_LITTLE = 0.02  # shares of the time that are not worth a change
_WAITING = ("MPI_Send", "MPI_Recv", "MPI_Sendrecv", "MPI_Sendrecv_replace")


@dataclass(frozen=True)
class Findings:
    trace: Trace
    functions: dict[str, FunctionTime]
    overlaps: list[Overlap]
    wires: list[Wire]
    stayed: list[Stayed]
    hints: list[str] = field(default_factory=list)  # of the run's summary
    before: dict[str, FunctionTime] | None = None  # of the run to compare with

    @property
    def seconds(self) -> float:
        """Of a rank, in calls and between them."""
        return sum(inside_and_outside(self.functions))


def changes(found: Findings) -> list[str]:
    """Sentences for the user, rule by rule. Code is between backquotes."""
    rules = (
        _no_calls,
        _slower,
        _waits_at_once,
        _blocking,
        _messages,
        _not_offloaded,
        _limited_by_wire,
        _imbalance,
        _busy,
        _dropped,
    )
    return [text for rule in rules for text in rule(found)]


def _no_calls(found: Findings) -> list[str]:
    if found.functions:
        return []
    return [
        "This trace has no calls of MPI, so computation is not known. Calls are traced with Open MPI and"
        " MPICH."
    ]


def _slower(found: Findings) -> list[str]:
    if not found.before or not found.functions or not found.trace.devices:
        return []
    lines = []
    (inside, outside), (inside_before, outside_before) = map(
        inside_and_outside, (found.functions, found.before)
    )
    if outside > 1.1 * outside_before > 0:
        lines.append(
            f"The ranks compute {100 * (outside / outside_before - 1):.0f} % longer than before. A device"
            " that shares cores with ranks takes them from the computation: leave a core free, or choose one"
            " with `--device-cpus`."
        )
    if inside + outside > 1.05 * (inside_before + outside_before):
        lines.append(
            "This run is slower than the one before. `offpath advise` predicts which operations gain, and"
            " `OFFPATH_OPS` limits offload to them."
        )
    return lines


def _waits_at_once(found: Findings) -> list[str]:
    ranks = max(1, len(found.trace.ranks))
    lines = []
    for one in sorted(found.overlaps, key=lambda each: each.computed - each.seconds):
        waited = (one.seconds - one.computed) / ranks
        if one.share >= 0.6 or waited < _LITTLE * found.seconds or not one.bytes:
            continue
        lines.append(
            f"Start `{one.name}` of {units.format_bytes(one.bytes)} or more earlier, or wait for it later:"
            f" its rank computed during only {100 * one.share:.0f} % of the time that it was at the device."
            " Several operations outstanding at a time also help, because the next one moves while the"
            " program uses the result of this one."
        )
    return lines[:3]


def _blocking(found: Findings) -> list[str]:
    lines = []
    for name in dict.fromkeys(row.call for row in found.stayed if row.reason == "blocking"):
        share = found.functions[name].seconds / found.seconds if name in found.functions else 0.0
        if share >= _LITTLE and name != "MPI_Barrier":
            lines.append(
                f"`{name}` takes {100 * share:.0f} % of the time and stays on the host, because it is"
                f" blocking: use `MPI_I{name[4:].lower()}` and compute before the wait."
            )
    return lines


def _messages(found: Findings) -> list[str]:
    share = sum(found.functions[name].seconds for name in _WAITING if name in found.functions) / max(
        found.seconds, 1e-9
    )
    if share < 0.05:
        return []
    names = " and ".join(f"`{name}`" for name in _WAITING if name in found.functions)
    return [
        f"{names} take {100 * share:.0f} % of the time, in which the rank only waits: use `MPI_Irecv` and"
        " `MPI_Isend`, and compute before the wait."
    ]


def _not_offloaded(found: Findings) -> list[str]:
    if not found.trace.devices:
        return ["This run had no device. `offpath run --trace DIR` without `OFFPATH=off` shows one."]
    lines = [
        f"{row.count} calls of `{row.call}` of up to {units.format_bytes(row.bytes[1])} stayed on the host"
        " because they are below the switch-over. If the program computes beside them, try"
        f" `OFFPATH_MIN_BYTES={units.format_size(1 << row.bytes[1].bit_length() - 1)}`, or measure with"
        " `offpath tune`."
        for row in found.stayed
        if row.reason == "below the switch-over" and row.bytes and row.bytes[1] >= 16 << 10
    ][:2]
    if not any(rank.slices("operations at the device") for rank in found.trace.ranks):
        for hint in found.hints:
            setting, _, what = hint.partition(" ")
            lines.append(f"Nothing went to the device. It would have had work with `{setting}` {what}.")
    return lines


def _limited_by_wire(found: Findings) -> list[str]:
    for wire in found.wires:
        if wire.active_s > 0.9 * found.seconds > 0:
            return [
                f"The wire of {wire.device} is in use {100 * min(1, wire.active_s / found.seconds):.0f} % of"
                " the time. Beyond this, only fewer bytes help."
            ]
    return []


def _imbalance(found: Findings) -> list[str]:
    times = {
        rank.name: sum(one.end - one.begin for one in rank.slices(COMPUTATION)) * 1e-9
        for rank in found.trace.ranks
    }
    if len(times) < 2 or not found.seconds:
        return []
    most = max(times, key=lambda name: times[name])
    mean = sum(times.values()) / len(times)
    if times[most] - mean < 0.1 * found.seconds:
        return []
    return [
        f"{most} computes {units.format_seconds(times[most])}, the ranks on average"
        f" {units.format_seconds(mean)}: the others wait for it, and no device changes that. Divide the work"
        " more evenly."
    ]


def _busy(found: Findings) -> list[str]:
    for wire in found.wires:
        if wire.asleep is not None and wire.asleep < 0.05:
            return [
                f"A proxy of {wire.device} is awake {100 * (1 - wire.asleep):.0f} % of the time: more cores"
                " (`--device-cpus`) or proxies may help."
            ]
    return []


def _dropped(found: Findings) -> list[str]:
    if not found.trace.dropped:
        return []
    return [
        f"{found.trace.dropped} events were dropped, so this page lacks the end of the run: set"
        " `OFFPATH_TRACE_BYTES` higher."
    ]
