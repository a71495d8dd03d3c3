"""All studies of miniMD with their runs, rows and tables, and a function that runs one of them from start to
end."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, stats, units
from offpath.lab.cluster import Cluster
from offpath.minimd import accuracy, halo, model, timing
from offpath.minimd.case import LABELS, Case, Cores
from offpath.minimd.measure import Results, measure
from offpath.minimd.sources import LabSource, Source
from offpath.minimd.spec import Spec


@dataclass(frozen=True)
class Study:
    """`columns` are the columns that the table on the screen shows besides the setting."""

    name: str
    help: str
    figure: str
    defaults: Spec
    cases: Callable[[Spec], list[Case]]
    rows: Callable[..., list[dict]]
    columns: tuple[str, ...]
    needs_bandwidth: bool = False  # `rows` gets the bandwidth between host and device, for the model
    needs_cores: bool = False  # `rows` also gets a function that returns the nodes' cores
    link: str = "unlimited"
    wide: bool = False  # the processes that compute get all cores


ATOMS = (4000, 32000)
STUDIES = {
    study.name: study
    for study in (
        Study(
            "slowdown",
            "All devices alone against all hosts alone.",
            "Fig. 6",
            Spec(ATOMS, (1, 2), (1, 20), device_slowness=(2,)),
            timing.slowdown_cases,
            timing.slowdown_rows,
            ("hosts_total_s", "total_s", "slowdown"),
            wide=True,
        ),
        Study(
            "breakdown",
            "Where the time of hosts alone goes: forces, neighbours, communication, other.",
            "Fig. 7",
            Spec(ATOMS, (1, 2), (1, 5, 20), device_slowness=(1,)),
            timing.breakdown_cases,
            timing.breakdown_rows,
            ("total_s", "force_percent", "neigh_percent", "comm_percent", "other_percent"),
            wide=True,
        ),
        Study(
            "devices",
            "Devices alone, 1 to many, against one host.",
            "Fig. 8",
            Spec((32000,), (1, 2, 4), (20,), steps=40, device_slowness=(1,)),
            timing.devices_cases,
            timing.devices_rows,
            ("host_total_s", "total_s", "speedup_over_host"),
            wide=True,
        ),
        Study(
            "offpath",
            "What the off-path algorithm gains, as published and balanced, beside the device's core given to"
            " the host.",
            "Fig. 11",
            Spec((32000,), (1, 2), (1, 5, 20)),
            timing.offpath_cases,
            timing.offpath_rows,
            ("base_total_s", "total_s", "improvement_percent", "best_improvement_percent", "bound_percent"),
        ),
        Study(
            "bound",
            "What could be gained at best if all communication vanished: its share of the hosts' time.",
            "Fig. 12",
            Spec(ATOMS, (1, 2), (1, 5, 20), device_slowness=(1,)),
            timing.breakdown_cases,
            timing.bound_rows,
            ("total_s", "comm_s", "bound_percent"),
            wide=True,
        ),
        Study(
            "tdr",
            "Temperature divergence rate and energy drift of baseline and off-path algorithm, by skin and"
            " interval.",
            "Fig. 13",
            Spec((4000,), (1,), (5, 10, 20), steps=1000, runs=1, skins=(0.1, 0.3, 0.5), device_slowness=(1,)),
            accuracy.tdr_cases,
            accuracy.tdr_rows,
            ("tdr", "tdr_error", "tdr_300", "tdr_300_error", "max_dt", "energy_drift"),
        ),
        Study(
            "model",
            "The off-path algorithm's time against the model of Eq. 3, by threads of host and device.",
            "Fig. 14",
            Spec((32000, 108000), (1,), (1,), device_slowness=(1, 2)),
            model.model_cases,
            model.model_rows,
            (
                "base_total_s",
                "total_s",
                "predicted_s",
                "measured_to_predicted",
                "extended_s",
                "measured_to_extended",
            ),
            needs_bandwidth=True,
            needs_cores=True,
        ),
        Study(
            "auxiliary",
            "A device as fast as a host core, and slower ones, measured and by the model of Eq. 3.",
            "Fig. 15",
            Spec((32000,), (1,), (1,), device_slowness=(1, 2, 4, 8)),
            model.model_cases,
            model.model_rows,
            (
                "base_total_s",
                "total_s",
                "predicted_s",
                "extended_s",
                "improvement_percent",
                "predicted_improvement_percent",
            ),
            needs_bandwidth=True,
            needs_cores=True,
        ),
        Study(
            "manual",
            "Communication and boundary forces moved to devices by hand, and communication by offpath, by"
            " atoms and computational intensity.",
            "MPI manual offloading, section 4",
            Spec(ATOMS, (2,), (1,), intensities=(1, 4, 16), device_slowness=(1,)),
            timing.manual_cases,
            timing.manual_rows,
            ("total_s", "force_s", "comm_s", "total_less_percent", "force_less_percent", "comm_less_percent"),
        ),
        Study(
            "halo",
            "What of the communication of ghosts is left to see: by MPI, blocking and overlapped, by MPI"
            " offloaded, and by devices' group schedules.",
            "MPI manual offloading, section 4.3",
            Spec((32000,), (2, 4), (20,), steps=100, device_slowness=(1,)),
            halo.halo_cases,
            halo.halo_rows,
            ("total_s", "exposed_s", "exposed_less_percent", "link_exposed_s", "link_exposed_less_percent"),
            needs_cores=True,
            link="500mbit",
        ),
    )
}


def run(study: Study, spec: Spec, cluster: Cluster, supplied: Source | None) -> dict:
    """Runs the study, and returns the content of the JSON file."""
    lab = LabSource(cluster)
    supplied_nodes = set(spec.source_nodes)
    results = measure(
        study.cases(spec),
        lambda case: supplied if supplied and case.nodes in supplied_nodes else lab,
        spec.runs,
    )
    more: list = (
        [statistics.median(lab.device_rate() for _ in range(min(3, spec.runs)))]
        if study.needs_bandwidth
        else []
    )
    if study.needs_cores:
        # Each supplied node has as many cores as it has ranks and devices.
        more.append(
            lambda nodes: (
                Cores(nodes * spec.ranks_per_node, nodes) if nodes in supplied_nodes else lab.cores(nodes)
            )
        )
    rows = study.rows(spec, results, *more)
    return report(study, spec, cluster, results, rows)


def report(study: Study, spec: Spec, cluster: Cluster, results: Results, rows: list[dict]) -> dict:
    return {
        "study": f"minimd-{study.name}",
        "figure": study.figure,
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "machine": notes(study, spec, cluster),
        "runs": spec.runs,
        "rows": rows,
    }


def notes(study: Study, spec: Spec, cluster: Cluster) -> list[str]:
    """What a reader must know about this machine."""
    said = []
    hosts = {cpu for place in cluster.placements for cpu in place.host}
    devices = {cpu for place in cluster.placements for cpu in place.device}
    if study.wide:
        if len(cluster.placements) > len(hosts | devices):
            said.append(
                f"hosts alone and devices alone use all {len(hosts | devices)} cores; nodes beyond as many"
                " take turns: compare rows of the same number of nodes"
            )
    elif len(cluster.placements) * spec.ranks_per_node > len(hosts):
        said.append(
            f"{len(cluster.placements)} nodes share {len(hosts)} host core(s) and {len(devices)} device"
            " core(s): times are those of all nodes in turn; compare rows of the same number of nodes"
        )
    if hosts & devices and not study.wide:
        said.append("hosts and devices share cores: nothing overlaps")
    if max(*spec.threads, *spec.device_threads) > min(len(hosts), len(devices)):
        said.append("there are more threads than cores")
    if max(spec.device_slowness) > 1:
        said.append(
            "slower devices compute each force several times, which takes a host core's time so many times;"
            " nothing else of theirs is slower"
        )
    return said


_VARIED = ("skin", "threads", "device_threads", "device_slowness", "intensity")  # shown where the rows differ


def show(study: Study, found: dict) -> None:
    table = Table(
        title=(
            f"minimd-{study.name} ({study.figure}): {found['lab']['description']}; medians of {found['runs']}"
        ),
        title_justify="left",
    )
    for name in ("scheme", "nodes", "atoms", "every"):
        table.add_column(name, no_wrap=True, justify="left" if name == "scheme" else "right")
    extra = [name for name in _VARIED if len({row[name] for row in found["rows"]}) > 1]
    for name in (*extra, *study.columns):
        table.add_column(
            _title(name),
            justify="right",
            no_wrap=name not in _VARIED,
            min_width=9 if name in _VARIED else None,
        )
    if any(row["source"] != "lab" for row in found["rows"]):
        table.add_column("source")
    for row in found["rows"]:
        cells = [
            LABELS[row["scheme"]],
            str(row["nodes"]),
            str(row["atoms"]),
            str(row["interval"]),
            *(_cell(name, row[name]) for name in (*extra, *study.columns)),
        ]
        table.add_row(*cells, *([row["source"]] if len(table.columns) > len(cells) else []))
    console.out.print(table)
    for note in found["machine"]:
        console.out.print(note, soft_wrap=True)


def _title(name: str) -> str:
    if name.startswith("measured_to_"):
        return "ratio"
    return name.removesuffix("_s").replace("_percent", " %").replace("_", " ")


def _cell(name: str, value) -> str:
    if value is None:
        return "-"
    if name.endswith("_s"):
        return units.format_seconds(value)
    if name.endswith("_percent"):
        return f"{value:.1f}"
    if isinstance(value, int):
        return str(value)
    return f"{value:.2e}" if abs(value) < 1e-2 else f"{value:.3f}"


def draw(found: dict, path: Path) -> None:
    from offpath.minimd import plot as pictures  # matplotlib is slow to load

    pictures.draw(found, path)
