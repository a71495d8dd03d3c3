"""`offpath bench rma`: one-sided operations to a target that computes, on the host's MPI and on offpath in
turn."""

import statistics

from rich.table import Table

from offpath import bench, console, units
from offpath.bench import Bench, BenchSpec
from offpath.lab.cluster import Cluster

OPERATIONS = ("put", "get", "accumulate", "fetch_and_op")


class RmaBench(Bench):
    """One session. The origin is the first rank. The target is the last rank, on another node."""

    def __init__(self, cluster: Cluster, spec: BenchSpec, busy_s: float):
        super().__init__(cluster, spec)
        self.busy_s = busy_s

    def rma(self) -> list[dict]:
        rows = []
        for operation, size in self._points(self.spec.runs * len(self.spec.engines)):
            taken: dict[str, list[dict]] = {engine.name: [] for engine in self.spec.engines}
            for engine in self._alternate():
                iterations = self.spec.iterations or 5
                taken[engine.name].append(
                    self._measure(
                        engine, "rma", operation, size, iterations, ["--busy-s", f"{self.busy_s:g}"]
                    )
                )
                self._advance(f"{operation} {units.format_size(size)}: {engine.label}")
            for name, found in taken.items():
                completion, busy = ([one[key] for one in found] for key in ("completion_s", "target_busy_s"))
                rows.append(
                    {
                        "op": operation,
                        "bytes": found[0]["bytes"],
                        "engine": name,
                        "completion_s": statistics.median(completion),
                        "target_busy_s": statistics.median(busy),
                        "runs": completion,
                        "verified": all(one["verified"] for one in found),
                    }
                )
        return rows

    def _points(self, steps: int):
        # These operations work on a single element, whatever the sizes are.
        sizes = self.spec.sizes
        points = [
            (operation, size)
            for operation in self.spec.operations
            for size in (sizes if operation != "fetch_and_op" else [8])
        ]
        with self.progress:
            self._task = self.progress.add_task("", total=len(points) * steps)
            yield from points


def report(cluster: Cluster, spec: BenchSpec, busy_s: float, rows: list[dict]) -> dict:
    return bench.report(cluster, spec, "rma", rows) | {"busy_s": busy_s}


def show(found: dict) -> None:
    table = Table(
        title=f"one-sided: {found['lab']['description']}; medians of {found['runs']}", title_justify="left"
    )
    for name in ("operation", "size", "engine"):
        table.add_column(name, no_wrap=True)
    for name in ("completion", "target busy", "to host MPI"):
        table.add_column(name, justify="right")
    previous = None
    for row in found["rows"]:
        point = (row["op"], row["bytes"])
        if previous not in (None, point):
            table.add_section()
        previous = point
        host = next(
            (
                r["completion_s"]
                for r in found["rows"]
                if r["engine"] == "host" and (r["op"], r["bytes"]) == point
            ),
            None,
        )
        table.add_row(
            row["op"],
            units.format_size(row["bytes"]),
            row["engine"],
            units.format_seconds(row["completion_s"]),
            units.format_seconds(row["target_busy_s"]),
            f"{row['completion_s'] / host:.3f}" if host else "-",
        )
    console.out.print(table)
    for name, label in found["engines"].items():
        console.out.print(f"{name}: {label}")
    console.out.print("completion: from the origin's lock to its unlock")
