"""`offpath model`: the analytic models of offpath.models, one command each."""

from typing import Annotated

import typer
from rich.table import Table

from offpath import console, reports, units
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.models import auxiliary, bound, energy, memory_traffic, overlap
from offpath.models.off_path import Machine, OffPath, StepTimes, Threads
from offpath.models.testbeds import THOR

app = typer.Typer(
    help="Formulas for what offload brings, where a simulation is not needed. docs/models.md describes them.",
    no_args_is_help=True,
)

Slowness = Annotated[
    float, typer.Option("--device-slowness", help="Time of a device's core, relative to a host's core.")
]
DevicePenalty = Annotated[
    float,
    typer.Option(
        "--force-speedup",
        help="Speed-up of the forces on eight threads over one; it sets the cost of threads.",
    ),
]


def _threads(force_speedup: float) -> Threads:
    return Threads.from_speedup(force_speedup, THOR.device_cores)


def _rows(title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.out.print(table)


@app.command("off-path")
def off_path_(
    force: Annotated[float, typer.Option("--force", metavar="SECONDS", help="Forces of a step.")],
    neigh: Annotated[float, typer.Option("--neigh", metavar="SECONDS", help="One rebuild of the lists.")],
    comm: Annotated[
        float, typer.Option("--comm", metavar="SECONDS", help="Communication of a step that rebuilds.")
    ],
    other: Annotated[float, typer.Option("--other", metavar="SECONDS", help="The rest of a step.")] = 0.0,
    ordinary_comm: Annotated[
        float,
        typer.Option("--ordinary-comm", metavar="SECONDS", help="Communication of a step without a rebuild."),
    ] = 0.0,
    device_slowness: Slowness = 2.5,
    force_speedup: DevicePenalty = THOR.force_speedup,
    host_threads: Annotated[str, typer.Option("--host-threads", metavar="LIST")] = "1,2,4,8,16,32",
    device_threads: Annotated[str, typer.Option("--device-threads", metavar="LIST")] = "1,2,4,8",
    steps: Annotated[int, typer.Option("--steps")] = 1000,
    interval: Annotated[int, typer.Option("--interval", help="Steps between rebuilds.")] = 1,
    atoms: Annotated[float, typer.Option("--atoms", help="Of one host, for the transfers.")] = 0.0,
    bus: Annotated[
        float | None,
        typer.Option("--bus", metavar="BYTES/S", help="Rate between host and device.", show_default=False),
    ] = None,
    json: options.Json = None,
) -> None:
    """Eq. 3 of the off-path algorithm of miniMD, for any numbers of threads, with and without transfers.

    All times are those of one host thread.

    Example: offpath model off-path --force 0.4 --neigh 0.3 --comm 0.02 --atoms 864000 --bus 12e9
    """
    options.check_outputs(json, None)
    program = OffPath(StepTimes(force, neigh, comm), other, ordinary_comm, atoms)
    machine = Machine(device_slowness, force=_threads(force_speedup))
    rows = []
    for of_device in units.split_whole(device_threads, "--device-threads"):
        for of_host in units.split_whole(host_threads, "--host-threads"):
            found = program.predict(machine, of_host, of_device, steps, interval, bus)
            rows.append(
                {
                    "host_threads": of_host,
                    "device_threads": of_device,
                    "host_s": found.host_s,
                    "off_path_s": found.off_path_s,
                    "extended_s": found.extended_s,
                    "improvement_percent": found.improvement_percent,
                    "extended_improvement_percent": found.extended_improvement_percent,
                    "knee_host_threads": program.knee(machine, of_device),
                }
            )
    _rows(
        "the off-path algorithm, by threads",
        ["host, device", "hosts alone", "Eq. 3", "gain", "with transfers", "gain", "hidden up to"],
        [
            [
                f"{row['host_threads']}, {row['device_threads']}",
                units.format_seconds(row["host_s"]),
                units.format_seconds(row["off_path_s"]),
                f"{row['improvement_percent']:+.1f} %",
                units.format_seconds(row["extended_s"]),
                f"{row['extended_improvement_percent']:+.1f} %",
                f"{row['knee_host_threads']} threads",
            ]
            for row in rows
        ],
    )
    reports.write({"model": "off-path", "rows": rows}, json)


@app.command("bound")
def bound_(
    comm: Annotated[float, typer.Option("--comm", metavar="SECONDS", help="Communication of a run.")],
    total: Annotated[float, typer.Option("--total", metavar="SECONDS", help="The run.")],
    json: options.Json = None,
) -> None:
    """The most that offloading all communication could gain.

    Example: offpath model bound --comm 17.58 --total 49.53
    """
    options.check_outputs(json, None)
    percent = bound.communication_bound_percent(comm, total)
    factor = bound.speedup_bound(comm, total) if comm < total else None
    reached = f", {factor:.2f} times as fast" if factor else ""
    console.out.print(f"offloading all communication saves at most {percent:.1f} %{reached}")
    reports.write({"model": "bound", "bound_percent": percent, "bound_speedup": factor}, json)


@app.command("auxiliary")
def auxiliary_(
    device_slowness: Slowness = 2.5,
    force_speedup: DevicePenalty = THOR.force_speedup,
    device_threads: Annotated[str, typer.Option("--device-threads", metavar="LIST")] = "1,2,4,8",
    json: options.Json = None,
) -> None:
    """How many cores of a card equal one host core, and how slow each may be.

    Example: offpath model auxiliary --device-slowness 2.5 --force-speedup 2.5
    """
    options.check_outputs(json, None)
    threads = _threads(force_speedup)
    rows = [
        {
            "device_threads": count,
            "time_over_host_core": device_slowness * threads.factor(count),
            "matching_slowness": auxiliary.matching_slowness(count, threads),
        }
        for count in units.split_whole(device_threads, "--device-threads")
    ]
    _rows(
        "forces on a card's cores, and one host core",
        ["cores", "time over a host core's", "equal where a core is slower by"],
        [
            [
                str(row["device_threads"]),
                f"{row['time_over_host_core']:.2f}",
                f"{row['matching_slowness']:.2f}",
            ]
            for row in rows
        ],
    )
    needed = auxiliary.matching_threads(device_slowness, threads)
    console.out.print(
        f"one host core equals {needed} of the card's cores"
        if needed
        else "no number of them equals a host core"
    )
    reports.write({"model": "auxiliary", "rows": rows, "matching_threads": needed}, json)


@app.command("overlap")
def overlap_(
    pure: Annotated[float, typer.Option("--pure", metavar="SECONDS", help="The operation alone.")],
    compute: Annotated[
        str, typer.Option("--compute", metavar="LIST", help="Computations, in seconds, with commas.")
    ],
    post: Annotated[float, typer.Option("--post", metavar="SECONDS", help="The host starts it.")] = 0.0,
    progress: Annotated[
        float, typer.Option("--progress", help="Share that advances by itself with a device.")
    ] = 1.0,
    host_progress: Annotated[float, typer.Option("--host-progress", help="The same without one.")] = 0.0,
    interference: Annotated[
        float,
        typer.Option("--interference", help="Computation lost for each second that overlaps."),
    ] = 0.0,
    json: options.Json = None,
) -> None:
    """An operation and a computation together, without a device and with one.

    Example: offpath model overlap --pure 0.0168 --compute 0.005,0.0168,0.05
    """
    options.check_outputs(json, None)
    host = overlap.Overlap(pure, post, host_progress)
    device = overlap.Overlap(pure, post, progress, interference)
    rows = []
    for text in units.split_list(compute, "computations"):
        seconds = _number(text)
        rows.append(
            {
                "compute_s": seconds,
                "host_s": host.total_s(seconds),
                "device_s": device.total_s(seconds),
                "overlap_percent": device.overlap_percent(seconds),
                "gain_percent": overlap.gain_percent(host, device, seconds),
            }
        )
    _rows(
        "post, compute, wait",
        ["computation", "without", "with a device", "overlap", "gain"],
        [
            [
                units.format_seconds(row["compute_s"]),
                units.format_seconds(row["host_s"]),
                units.format_seconds(row["device_s"]),
                f"{row['overlap_percent']:.0f} %",
                f"{row['gain_percent']:+.1f} %",
            ]
            for row in rows
        ],
    )
    console.out.print(
        f"a computation of {units.format_seconds(device.window_s())} hides all that can be hidden"
    )
    reports.write({"model": "overlap", "window_s": device.window_s(), "rows": rows}, json)


@app.command("memory")
def memory_(
    ratios: Annotated[
        str,
        typer.Option("--ratios", metavar="LIST", help="Bytes of memory traffic per byte of communication."),
    ] = "1,2,4,8,16,32,64",
    memory_rate: Annotated[
        float, typer.Option("--memory-rate", metavar="BYTES/S", help="The host's memory.")
    ] = THOR.socket_GBps * 1e9 * THOR.sockets,
    link_rate: Annotated[
        float, typer.Option("--link-rate", metavar="BYTES/S", help="The link.")
    ] = THOR.link_GBps * 1e9,
    copies: Annotated[
        float,
        typer.Option("--copies", help="Accesses of memory for each byte that a cache would avoid."),
    ] = 2.0,
    json: options.Json = None,
) -> None:
    """The gain by the ratio of memory traffic to communication.

    Example: offpath model memory --ratios 4,12,48 --copies 2
    """
    options.check_outputs(json, None)
    rows = []
    for text in units.split_list(ratios, "ratios"):
        phase = memory_traffic.Phase(_number(text), 1.0, memory_rate, link_rate)
        rows.append(
            {"ratio": phase.ratio, "speedup": phase.speedup(copies), "speedup_cached": phase.speedup(0.0)}
        )
    best = memory_traffic.Phase(1.0, 1.0, memory_rate, link_rate).best_ratio
    _rows(
        "speed-up by a device",
        ["bytes of memory per byte sent", "without cache access", "with it"],
        [[f"{row['ratio']:g}", f"{row['speedup']:.2f}", f"{row['speedup_cached']:.2f}"] for row in rows],
    )
    console.out.print(f"the most is gained at a ratio of {best:.1f}")
    reports.write({"model": "memory", "best_ratio": best, "rows": rows}, json)


@app.command("energy")
def energy_(
    saving: Annotated[float, typer.Option("--saving", help="Share of the time that the device saves.")],
    device: Annotated[float, typer.Option("--device", metavar="WATT")] = THOR.device_W[1],
    node: Annotated[float, typer.Option("--node", metavar="WATT")] = THOR.node_W,
    replaced: Annotated[
        float, typer.Option("--replaced", metavar="WATT", help="An adapter that the device replaces.")
    ] = 0.0,
    json: options.Json = None,
) -> None:
    """Energy of a run with a device, relative to one without.

    Example: offpath model energy --saving 0.2 --device 40
    """
    options.check_outputs(json, None)
    found = {
        "more_power_percent": energy.more_power_percent(device, node),
        "energy_ratio": energy.energy_ratio(saving, device, node, replaced),
        "break_even_saving": energy.break_even_saving(device, node, replaced),
    }
    console.out.print(
        f"{found['more_power_percent']:.1f} % more power; energy {found['energy_ratio']:.3f} of before;"
        f" equal at a saving of {100 * found['break_even_saving']:.1f} %"
    )
    reports.write({"model": "energy"} | found, json)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise OffpathError(
            Code.OPTION, f"{text!r} is not a number", "write numbers, separated by commas"
        ) from error
