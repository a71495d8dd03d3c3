"""`offpath study scale`."""

from typing import Annotated

import typer

from offpath import reports, scale, sim, units
from offpath.artifacts import find_artifacts
from offpath.commands import options


def register(app: typer.Typer) -> None:
    app.command("scale")(scale_)


def scale_(
    nodes: options.NodeCounts = "64,512,4096",
    platform: options.Platform = "thor-bf2",
    patterns: Annotated[
        str, typer.Option("--patterns", metavar="LIST", help="Some of " + ", ".join(sim.PATTERNS) + ".")
    ] = ",".join(scale.PATTERNS),
    size: Annotated[str, typer.Option("--bytes", "-b", metavar="SIZE", help="As in `offpath sim`.")] = "64K",
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """What the engine needs at many nodes: connections, memory, the start, and the time of operations.

    Example: offpath study scale --nodes 64,512,4096 --json scale.json --plot scale.png
    """
    spec = scale.ScaleSpec(
        platform,
        units.split_whole(nodes, "--nodes"),
        tuple(units.split_list(patterns, "patterns")),
        units.parse_size(size),
    )
    spec.check()
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    artifacts.program(sim.PROGRAM)
    found = scale.measure(spec, artifacts)
    scale.show(found)
    reports.write(found, json, plot, scale.draw)
