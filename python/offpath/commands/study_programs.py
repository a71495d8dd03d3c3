"""`offpath study programs`."""

from pathlib import Path
from typing import Annotated

import typer

from offpath import program_scale, reports, sim, skeletons, units
from offpath.artifacts import find_artifacts
from offpath.commands import options


def register(app: typer.Typer) -> None:
    app.command("programs")(programs_)


def programs_(
    nodes: options.NodeCounts = "2,4,8,16",
    ranks_per_node: Annotated[
        int, typer.Option("--ranks-per-node", min=1, max=1024, help="Ranks of each node.")
    ] = 8,
    platform: options.Platform = "thor-bf2",
    skeleton: Annotated[
        list[str] | None,
        typer.Option(
            "--skeleton",
            metavar="LINE",
            help="A program's command line; may be repeated. The programs: "
            + ", ".join(skeletons.NAMES)
            + ". Default: one problem of each.",
            show_default=False,
        ),
    ] = None,
    kernels: Annotated[
        Path | None,
        typer.Option("--kernels", metavar="FILE", help="As in `offpath sim --skeleton`.", show_default=False),
    ] = None,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """What devices would bring to programs at growing numbers of nodes, simulated. It takes minutes.

    Example: offpath study programs --nodes 2,8,32 --skeleton "fft3d --n 512" --plot programs.png
    """
    spec = program_scale.ProgramScaleSpec(
        platform,
        units.split_whole(nodes, "--nodes"),
        ranks_per_node,
        tuple(skeleton or program_scale.PROGRAMS),
        kernels,
    )
    spec.check()
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    artifacts.program(sim.PROGRAM)
    found = program_scale.measure(spec, artifacts)
    program_scale.show(found)
    reports.write(found, json, plot, program_scale.draw)
