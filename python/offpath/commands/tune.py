"""`offpath tune`: calibrates the choice between the host's MPI and the device."""

from pathlib import Path
from typing import Annotated

import typer

from offpath import bench, console, outputs, run_job, tune, tuning_table, units
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters


@options.cluster_options(nodes=2, link="2gbit")
def tune_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    launcher: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LAUNCHER]...",
            help="After --: mpirun or srun and its arguments, without a program, to measure real nodes.",
            show_default=False,
        ),
    ] = None,
    ops: Annotated[
        str,
        typer.Option("--ops", metavar="LIST", help="Operations, or all: " + ", ".join(tune.OPERATIONS) + "."),
    ] = ",".join(tune.DEFAULT_OPERATIONS),
    sizes: Annotated[
        str,
        typer.Option(
            "--sizes",
            metavar="LIST",
            help="Sizes in bytes, such as 16K,1M: for each rank or pair, as in `offpath bench`.",
        ),
    ] = "16K,64K,256K,1M,4M",
    runs: Annotated[
        int, typer.Option("--runs", help="Runs on each engine, alternating; medians are taken.")
    ] = 3,
    seconds: Annotated[
        float, typer.Option("--seconds", help="How long one size is measured in one run.")
    ] = 0.3,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=(
                "The table (default: the user's, which `offpath run` uses; for emulated clusters one beside"
                " it)."
            ),
            show_default=False,
        ),
    ] = None,
    add: Annotated[
        bool,
        typer.Option(
            "--add", help="Keep what the file has of other operations and other numbers of ranks and nodes."
        ),
    ] = False,
) -> None:
    """Measures what operations cost on the host's MPI and on the device, and writes a table to choose by.

    Without LAUNCHER on an emulated cluster, with it on the nodes where the launcher starts ranks.

    Example: offpath tune -- mpirun -n 8 --hostfile hosts
    """
    operations = list(tune.OPERATIONS) if ops == "all" else units.split_list(ops, "operations")
    for name in operations:
        if name not in tune.OPERATIONS:
            raise OffpathError(
                Code.OPTION,
                f"operation {name!r} is not known",
                "use all, or some of " + ", ".join(tune.OPERATIONS),
            )
    spec = tune.TuneSpec(operations, sorted(set(units.parse_sizes(sizes))), runs, seconds)
    spec.check()
    path = output or tuning_table.default_table(lab=not launcher)
    old = tuning_table.read(path) if add and path.exists() else None
    if output is None:
        outputs.make_folder(path.parent, "tuning table")
    outputs.check(path)
    artifacts = find_artifacts()
    program = artifacts.program(bench.PROGRAM)
    artifacts.device(lab.dpu), artifacts.mpi_preload
    if launcher:
        launcher = run_job.check_launcher(launcher)
        where = tune.describe_launcher(launcher)
        found = tune.calibrate(spec, tune.with_launcher(launcher, program))
    else:
        options.enter_lab(lab, no_namespaces)
        with clusters.open_cluster(lab, artifacts) as cluster:
            where = cluster.describe()
            console.note(where)
            found = tune.calibrate(spec, tune.in_lab(cluster))
    table = tuning_table.make_table(found, where)
    tune.show(found, where)
    tuning_table.write(tuning_table.merge(old, table) if old else table, path)
    console.note(f"wrote {path}")
    if not launcher:
        console.note(f"use it with --env OFFPATH_TUNING={path}")
