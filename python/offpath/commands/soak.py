"""`offpath soak`: programs under faults."""

from typing import Annotated

import typer

from offpath import console, reports, units
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters
from offpath.soak import plan, programs, summary
from offpath.soak.campaign import Campaign, SoakSpec


@options.cluster_options(nodes=2, link="1gbit", ranks_per_node=2)
def soak_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    minutes: Annotated[float, typer.Option("--minutes", help="How long to go on.")] = 10.0,
    seed: Annotated[int, typer.Option("--seed", help="Chooses programs, faults, victims and moments.")] = 1,
    faults: Annotated[
        str,
        typer.Option(
            "--faults",
            metavar="LIST",
            help="; ".join(f"{name}: {what}" for name, what in plan.FAULTS.items())
            + f". {plan.NONE}: no faults, so each daemon serves all runs.",
        ),
    ] = "kill,early,stop,link,rank",
    devices: Annotated[
        str,
        typer.Option(
            "--devices",
            metavar="LIST",
            help="Where devices run, as for --dpu; drawn anew for each"
            f" {plan.RUNS_OF_A_CLUSTER} runs. With --dpu remote or aarch64, that alone.",
        ),
    ] = "local,remote",
    runs: Annotated[
        int | None, typer.Option("--runs", help="End after so many runs.", show_default=False)
    ] = None,
    program_names: Annotated[
        str | None,
        typer.Option(
            "--programs",
            metavar="LIST",
            help="Default: all that are built of " + ", ".join(programs.PROGRAMS) + ".",
            show_default=False,
        ),
    ] = None,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Runs verified programs on an emulated cluster while daemons, links and ranks fail.

    Each run must finish with right results, or end with a message that names what was lost. The exit code is
    1 if a run hung, was wrong, or left something behind.

    Example: offpath soak --minutes 10 --nodes 2 --seed 7 --json soak.json --plot soak.png
    """
    if lab.nodes < 2 or no_namespaces:
        raise OffpathError(
            Code.NO_LAB, "a soak needs an emulated network", "use --nodes 2 or more, with namespaces"
        )
    if lab.timeout is not None:
        raise OffpathError(
            Code.OPTION, "--timeout has no effect here", "a run that takes too long is counted as hung"
        )
    kinds = units.split_list(faults, "faults")
    places = [lab.dpu] if lab.remote else units.split_list(devices, "devices")
    spec = SoakSpec(minutes * 60, seed, kinds if kinds != [plan.NONE] else [], places, runs)
    spec.check()
    artifacts = find_artifacts()
    names = units.split_list(program_names, "programs") if program_names is not None else None
    chosen = programs.choose(names, artifacts)
    options.check_outputs(json, plot)
    for place in places:
        artifacts.device(place)
    for library in {program.library for program in chosen} - {"shmem"}:
        artifacts.front_end(library)
    options.enter_lab(lab, no_namespaces)
    console.note(f"programs: {', '.join(program.name for program in chosen)}")
    found = Campaign(lab, artifacts, chosen, spec).run()
    summary.show(found)
    reports.write(found, json, plot, summary.draw)
    raise typer.Exit(found["exit_code"])
