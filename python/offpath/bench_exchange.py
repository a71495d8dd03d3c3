"""`offpath bench exchange`: both directions of every link at once, by ranks that do not begin together, on
the host's MPI and on offpath in turn."""

import statistics
from pathlib import Path

from rich.table import Table

from offpath import console, units
from offpath.bench import Bench, BenchSpec
from offpath.lab.cluster import Cluster

OPERATIONS = ("message", "put", "get")
# The share of a link's rate that carries payload (docs/lab.md).
_PAYLOAD = 0.992


class ExchangeBench(Bench):
    """One session. Rank r sends to rank r + 1, puts into its window or gets from it. `skews`: how long even
    ranks pack before that, in seconds; odd ranks take twice as long."""

    def __init__(self, cluster: Cluster, spec: BenchSpec, skews: list[float]):
        super().__init__(cluster, spec)
        self.skews = skews

    def exchange(self) -> list[dict]:
        rows = []
        for operation, size in self._points(self.spec.runs * len(self.spec.engines) * len(self.skews)):
            for skew in self.skews:
                rows.extend(self._at(operation, size, skew))
        return rows

    def _at(self, operation: str, size: int, skew: float) -> list[dict]:
        taken: dict[str, list[dict]] = {engine.name: [] for engine in self.spec.engines}
        iterations = self.spec.iterations or max(9, min(40, (64 << 20) // size))
        for engine in self._alternate():
            arguments = ["--skew-s", f"{skew:g}"]
            taken[engine.name].append(
                self._measure(engine, "exchange", operation, size, iterations, arguments)
            )
            self._advance(f"{operation} {units.format_size(size)}: {engine.label}")
        return [
            {
                "op": operation,
                "bytes": size,
                "skew_s": skew,
                "engine": name,
                "ideal_s": self._ideal(size, skew),
                "completion_s": statistics.median(one["completion_s"] for one in found),
                "runs": [one["completion_s"] for one in found],
                "verified": all(one["verified"] for one in found),
            }
            for name, found in taken.items()
        ]

    def _ideal(self, size: int, skew: float) -> float:
        """Odd ranks, which begin last, need the wire for their data alone."""
        rate = self.cluster.spec.link.rate
        return 2 * skew + (size * 8 / (rate * _PAYLOAD) if rate else 0.0)


def show(found: dict) -> None:
    lab = found["lab"]["description"]
    table = Table(title=f"exchange: {lab}; medians of {found['runs']}", title_justify="left")
    for name in ("operation", "size", "skew", "engine"):
        table.add_column(name, no_wrap=True)
    for name in ("completion", "spread", "ideal", "to ideal", "to host MPI"):
        table.add_column(name, justify="right")
    host = {_point(row): row["completion_s"] for row in found["rows"] if row["engine"] == "host"}
    previous = None
    for row in found["rows"]:
        if previous not in (None, _point(row)):
            table.add_section()
        previous = _point(row)
        ideal, completion = row["ideal_s"], row["completion_s"]
        table.add_row(
            row["op"],
            units.format_size(row["bytes"]),
            units.format_seconds(row["skew_s"]),
            row["engine"],
            units.format_seconds(completion),
            f"{units.format_seconds(min(row['runs']))} - {units.format_seconds(max(row['runs']))}",
            units.format_seconds(ideal),
            f"{completion / ideal:.3f}" if ideal else "-",
            f"{completion / host[_point(row)]:.3f}" if _point(row) in host else "-",
        )
    console.out.print(table)
    for name, label in found["engines"].items():
        console.out.print(f"{name}: {label}")
    console.out.print("completion: from the common start to the end of the wait, on the slowest rank")
    console.out.print("ideal: the packing of the odd ranks, and the time of the wire for one direction")


def draw(found: dict, path: Path) -> None:
    from offpath import exchange_plot  # matplotlib is slow to load

    exchange_plot.draw(found, path)


def _point(row: dict) -> tuple:
    return row["op"], row["bytes"], row["skew_s"]
