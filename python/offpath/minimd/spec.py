"""The parameters of a study. All studies have the same parameters, with defaults of their own. A study
ignores those that it does not need."""

from dataclasses import dataclass
from typing import Any

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.minimd.case import Case, cells_of


@dataclass(frozen=True)
class Spec:
    atoms: tuple[int, ...] = (32000,)
    nodes: tuple[int, ...] = (1,)
    intervals: tuple[int, ...] = (1,)
    steps: int = 20
    runs: int = 3
    threads: tuple[int, ...] = (1,)
    device_threads: tuple[int, ...] = (1,)
    device_slowness: tuple[int, ...] = (2,)
    skins: tuple[float, ...] = (0.3,)
    intensities: tuple[int, ...] = (1,)
    precision: str = "double"
    ranks_per_node: int = 1
    source_nodes: tuple[int, ...] = ()  # numbers of nodes whose runs a simulator supplies
    runtime: bool = True  # whether devices can run kernels, which emulated ones cannot

    def check(self) -> None:
        for values, name, low, high in (
            (self.nodes, "--nodes", 1, 64),
            (self.intervals, "--intervals", 1, 100000),
            ((self.steps,), "--steps", 1, 10**7),
            ((self.runs,), "--runs", 1, 1000),
            (self.threads, "--threads", 1, 4096),
            (self.device_threads, "--device-threads", 1, 4096),
            (self.device_slowness, "--device-slowness", 1, 100),
            (self.skins, "--skins", 0.01, 2.0),
            (self.intensities, "--intensities", 1, 10**6),
            (self.source_nodes, "--source-nodes", 1, 10**6),
        ):
            for value in values:
                if not low <= value <= high:
                    raise OffpathError(
                        Code.OPTION, f"{name} {value:g} is out of range", f"use {low:g} to {high:g}"
                    )
        if self.precision not in ("double", "single"):
            raise OffpathError(
                Code.OPTION, f"--precision {self.precision!r} is not known", "use double or single"
            )
        for atoms in self.atoms:
            cells_of(atoms)
        for interval in self.intervals:
            if interval > self.steps:
                raise OffpathError(
                    Code.OPTION,
                    f"--intervals {interval}: in {self.steps} steps no lists are rebuilt",
                    "use more --steps or a smaller interval",
                )
        if both := set(self.nodes) & set(self.source_nodes):
            raise OffpathError(
                Code.OPTION,
                f"--source-nodes {min(both)}: --nodes has it too",
                "a number of nodes is either measured or supplied",
            )

    @property
    def every_nodes(self) -> tuple[int, ...]:
        return (*self.nodes, *self.source_nodes)

    def case(self, scheme: str, atoms: int, nodes: int = 1, **more) -> Case:
        fixed: dict[str, Any] = {
            "ranks_per_node": self.ranks_per_node,
            "steps": self.steps,
            "skin": self.skins[0],
            "threads": self.threads[0],
            "interval": self.intervals[0],
            "device_threads": self.device_threads[0],
            "device_slowness": self.device_slowness[0],
            "intensity": self.intensities[0],
            "precision": self.precision,
        }
        return Case(scheme, atoms, nodes, **(fixed | more)).of(scheme)
