"""Runs cases several times, in turn, so that a change on the machine affects all of them alike."""

import statistics
from collections.abc import Callable, Iterable

from offpath import console
from offpath.minimd.case import Case, Outcome
from offpath.minimd.sources import TIMES, Source


class Results:
    """The outcomes of all cases."""

    def __init__(self, found: dict[Case, list[Outcome]], source_of: Callable[[Case], Source]):
        self.found, self._source_of = found, source_of

    def __getitem__(self, case: Case) -> Outcome:
        """Medians over the runs. The table comes from the first run, because it does not depend on times."""
        runs = self.found[case]
        return Outcome(
            **{key: statistics.median(getattr(run, key) for run in runs) for key in TIMES},
            thermo=runs[0].thermo,
            computing_s=_median_if_known([run.computing_s for run in runs]),
            device_bytes=_median_if_known([run.device_bytes for run in runs]),
        )

    def median(self, case: Case, of: Callable[[Outcome], float | None]) -> float | None:
        """The median of `of` over the runs."""
        return _median_if_known([of(run) for run in self.found[case]])

    def over_turns(self, of: Callable[[Callable[[Case], Outcome]], float | None]) -> float | None:
        """The median over the turns of a value that `of` computes from the runs of one turn. They ran one
        after the other, so whatever slows the machine for a while slows all of them."""
        turns = min(len(runs) for runs in self.found.values())
        return _median_if_known([of(self._of_turn(turn)) for turn in range(turns)])

    def _of_turn(self, turn: int) -> Callable[[Case], Outcome]:
        return lambda case: self.found[case][turn]

    def best(self, case: Case) -> float:
        """The total time of the fastest run, which other processes on the machine disturbed least."""
        return min(run.total_s for run in self.found[case])

    def row(self, case: Case) -> dict:
        """The fields with which every row of every study begins."""
        middle = self[case]
        times = [run.total_s for run in self.found[case]]
        per_atom_step = middle.total_s * 1e9 / (case.atoms * case.steps)
        return (
            case.parameters()
            | {"source": self._source_of(case).name, "runs": len(times)}
            | {key: getattr(middle, key) for key in TIMES}
            | {"total_min_s": self.best(case), "total_max_s": max(times), "ns_per_atom_step": per_atom_step}
        )


def _median_if_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def measure(cases: Iterable[Case], source_of: Callable[[Case], Source], runs: int) -> Results:
    distinct = list(dict.fromkeys(cases))
    found: dict[Case, list[Outcome]] = {case: [] for case in distinct}
    progress = console.progress()
    with progress:
        task = progress.add_task("", total=len(distinct) * runs)
        for _ in range(runs):
            for case in distinct:
                progress.update(task, description=case.name)
                found[case].append(source_of(case).run(case))
                progress.advance(task)
    return Results(found, source_of)
