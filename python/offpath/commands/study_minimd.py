"""`offpath study minimd-...`: one command for each study. All have the same options, with
defaults of their own."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

from offpath import console, osu, reports, units
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters
from offpath.minimd import roofline, sources
from offpath.minimd.sources import Source
from offpath.minimd.spec import Spec
from offpath.minimd.study import STUDIES, Study, draw, run, show

_SYSTEM = "System and algorithm"


def _list(flag: str, help: str) -> OptionInfo:
    return typer.Option(flag, metavar="LIST", help=help, rich_help_panel=_SYSTEM)


Nodes = Annotated[
    str,
    typer.Option(
        "--nodes",
        "-N",
        metavar="LIST",
        help="Numbers of emulated nodes, such as 1,2,4.",
        rich_help_panel="Cluster",
    ),
]
SourceNodes = Annotated[
    str, typer.Option("--source-nodes", metavar="LIST", help="Numbers of nodes whose runs --source supplies.")
]
SourceName = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="MODULE:FUNCTION",
        help="A simulator for what cannot be run here: docs/minimd.md.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    for study in STUDIES.values():
        app.command(f"minimd-{study.name}", help=f"{study.help} After {study.figure}.")(_command(study))
    app.command(
        "minimd-roofline", help="The loops over pairs beside what one core can do: operations, bytes, limits."
    )(_roofline)


def _roofline(
    atoms: Annotated[
        int, typer.Option("--atoms", help="Atoms, which fill a cube of cells with 4 atoms each.")
    ] = 32000,
    steps: Annotated[int, typer.Option("--steps", help="Steps before the lists are counted.")] = 100,
    runs: Annotated[int, typer.Option("--runs", help="Runs, of which the fastest counts.")] = 3,
    cpu: Annotated[
        int | None,
        typer.Option("--cpu", help="The core (default: the last of this process's).", show_default=False),
    ] = None,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    options.check_outputs(json, plot)
    cores = os.sched_getaffinity(0)
    if cpu is not None and cpu not in cores:
        raise OffpathError(
            Code.OPTION,
            f"--cpu {cpu} is not a core of this process",
            "its cores are " + ", ".join(map(str, sorted(cores))),
        )
    if runs < 1 or steps < 0:
        raise OffpathError(Code.OPTION, "--runs must be 1 at least and --steps 0 at least")
    with tempfile.TemporaryDirectory() as folder:
        found = roofline.measure(
            find_artifacts(), atoms, steps, runs, max(cores) if cpu is None else cpu, Path(folder)
        )
    roofline.show(found)
    reports.write(found, json, plot, roofline.draw)


def _command(study: Study):
    d = study.defaults
    texts = {name: _text(values) for name, values in vars(d).items() if isinstance(values, tuple)}

    @options.cluster_options(nodes=None, link=study.link)
    def command(
        lab: clusters.LabSpec,
        no_namespaces: bool,
        nodes: Nodes = texts["nodes"],
        atoms: Annotated[
            str, _list("--atoms", "Atoms in all, such as 4000,32000,108000,256000,864000: 4 a cell, cubes.")
        ] = texts["atoms"],
        intervals: Annotated[str, _list("--intervals", "Steps between neighbour builds.")] = texts[
            "intervals"
        ],
        steps: Annotated[
            int, typer.Option("--steps", help="Steps of a run.", rich_help_panel=_SYSTEM)
        ] = d.steps,
        runs: Annotated[
            int, typer.Option("--runs", help="Runs of each setting, alternating; medians are taken.")
        ] = d.runs,
        threads: Annotated[str, _list("--threads", "OpenMP threads of a host.")] = texts["threads"],
        device_threads: Annotated[str, _list("--device-threads", "OpenMP threads of a device.")] = texts[
            "device_threads"
        ],
        device_slowness: Annotated[
            str,
            _list("--device-slowness", "Times that a device computes each force, to stand for slower ones."),
        ] = texts["device_slowness"],
        skins: Annotated[str, _list("--skins", "Skins.")] = texts["skins"],
        intensities: Annotated[str, _list("--intensities", "Evaluations of each pair's force.")] = texts[
            "intensities"
        ],
        precision: Annotated[
            str, typer.Option("--precision", metavar="double|single", rich_help_panel=_SYSTEM)
        ] = d.precision,
        source: SourceName = None,
        source_nodes: SourceNodes = "",
        json: options.Json = None,
        plot: options.Plot = None,
    ) -> None:
        spec = Spec(
            units.split_whole(atoms, "--atoms"),
            units.split_whole(nodes, "--nodes"),
            units.split_whole(intervals, "--intervals"),
            steps,
            runs,
            units.split_whole(threads, "--threads"),
            units.split_whole(device_threads, "--device-threads"),
            units.split_whole(device_slowness, "--device-slowness"),
            _numbers(skins, "--skins"),
            units.split_whole(intensities, "--intensities"),
            precision,
            lab.ranks_per_node,
            units.split_whole(source_nodes, "--source-nodes") if source_nodes else (),
            runtime=lab.dpu != "aarch64",
        )
        spec.check()
        if (source is None) != (not source_nodes):
            raise OffpathError(
                Code.OPTION,
                "--source and --source-nodes go together",
                "say which function supplies the runs, and on how many nodes",
            )
        supplied: Source | None = sources.load(source) if source else None
        lab = replace(lab, nodes=max(spec.nodes))
        lab.check()
        options.check_outputs(json, plot)
        artifacts = find_artifacts()
        artifacts.program(sources.PROGRAM), artifacts.device(lab.dpu), artifacts.mpi_preload
        if study.needs_bandwidth:
            artifacts.program(osu.PROGRAM)
        options.enter_lab(lab, no_namespaces)
        with clusters.open_cluster(lab, artifacts) as cluster:
            console.note(cluster.describe())
            found = run(study, spec, cluster, supplied)
        show(study, found)
        reports.write(found, json, plot, draw)

    return command


def _text(values: tuple) -> str:
    return ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _numbers(text: str, flag: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in units.split_list(text, flag))
    except ValueError as error:
        raise OffpathError(
            Code.OPTION, f"{flag} {text!r} is not understood", "write numbers, separated by commas"
        ) from error
