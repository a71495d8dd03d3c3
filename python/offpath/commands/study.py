"""`offpath study`: all variants of an application on an emulated cluster, side by side."""

from typing import Annotated

import typer

from offpath import bspmm, reports, units
from offpath.artifacts import find_artifacts
from offpath.bspmm_names import VARIANTS
from offpath.codes import Code
from offpath.commands import (
    options,
    study_halo,
    study_minimd,
    study_programs,
    study_reproduce,
    study_scale,
)
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters

app = typer.Typer(
    help=(
        "Runs an application in all its variants on an emulated cluster, the host's own libraries included,"
        " and compares medians."
    ),
    no_args_is_help=True,
)


@app.callback()
def _studies() -> None:
    pass  # so that a single command keeps its name


study_halo.register(app)
study_minimd.register(app)
study_scale.register(app)
study_programs.register(app)
study_reproduce.register(app)


@app.command("bspmm")
@options.cluster_options(nodes=4, link="2gbit")
def bspmm_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    mesh: Annotated[
        str, typer.Option("--mesh", metavar="LIST", help="Tiles in a row of a matrix, such as 8,16,32.")
    ] = "8,16",
    tile: Annotated[int, typer.Option("--tile", help="Numbers in a row of a tile.")] = 640,
    runs: Annotated[
        int,
        typer.Option("--runs", help="Runs of each variant on each library, alternating; medians are taken."),
    ] = 3,
    iterations: Annotated[
        int, typer.Option("--iterations", help="Multiplications in a run, of which the median is taken.")
    ] = 1,
    variants: Annotated[
        str, typer.Option("--variants", metavar="LIST", help="Variants: " + ", ".join(VARIANTS) + ".")
    ] = ",".join(VARIANTS),
    sparsity: Annotated[
        float | None,
        typer.Option(
            "--sparsity",
            help="Share of zero tiles, at random (default: the mini-app's dense blocks).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the values and of random zero tiles.")] = 1,
    baselines: Annotated[
        str,
        typer.Option(
            "--baselines", metavar="none|all", help="all: the host's libraries given the devices' cores, too."
        ),
    ] = "none",
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Block-sparse matrix multiplication over MPI RMA and OpenSHMEM: host, offpath, and offloaded.

    Example: offpath study bspmm --nodes 4 --json bspmm.json --plot bspmm.png
    """
    if baselines not in ("none", "all"):
        raise OffpathError(Code.OPTION, f"--baselines {baselines!r} is not known", "use none or all")
    spec = bspmm.BspmmSpec(
        list(units.split_whole(mesh, "--mesh")),
        tile,
        runs,
        iterations,
        tuple(units.split_list(variants, "variants")),
        sparsity,
        seed,
        baselines == "all",
    )
    spec.check()
    if lab.remote:
        raise OffpathError(
            Code.OPTION,
            f"--dpu {lab.dpu} is not for this study",
            "its devices are cores of the nodes: --dpu local",
        )
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    artifacts.program(bspmm.PROGRAM), artifacts.device(lab.dpu), artifacts.mpi_preload
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        study = bspmm.Study(cluster, spec)
        found = bspmm.report(cluster, spec, study.measure(), study)
    bspmm.show(found)
    reports.write(found, json, plot, bspmm.draw)
