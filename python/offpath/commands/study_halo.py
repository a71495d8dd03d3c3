"""`offpath study halo`."""

from dataclasses import replace
from typing import Annotated

import typer

from offpath import halo, reports, units
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters


def _sizes(dims: int):
    return typer.Option(
        f"--sizes-{dims}d",
        metavar="LIST",
        help=f"Cells along each dimension of {dims}-D domains; empty: none.",
        rich_help_panel="Domains",
    )


def register(app: typer.Typer) -> None:
    app.command("halo")(_halo)


@options.cluster_options(nodes=None, link="2gbit")
def _halo(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    nodes: Annotated[
        str, typer.Option("--nodes", "-N", metavar="LIST", help="Numbers of emulated nodes, such as 2,4.")
    ] = "2,4",
    sizes_1d: Annotated[str, _sizes(1)] = "4000000",
    sizes_2d: Annotated[str, _sizes(2)] = "1024,4096",
    sizes_3d: Annotated[str, _sizes(3)] = "96,192",
    steps: Annotated[int, typer.Option("--steps", help="Steps of a run.")] = 40,
    runs: Annotated[
        int, typer.Option("--runs", help="Runs of each variant, alternating; medians are taken.")
    ] = 5,
    periodic: Annotated[bool, typer.Option("--periodic", help="Opposite ends are neighbours.")] = False,
    variants: Annotated[
        str,
        typer.Option(
            "--variants",
            metavar="LIST",
            help="Measure mpi and these; target-device is target by --way device.",
        ),
    ] = ",".join(halo.LABELS),
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Stencils in all variants of their halo exchange: MPI, offloaded, and with kernels on the device.

    Variant schedule needs devices that map the hosts' memory, and is left out with --dpu remote.

    Example: offpath study halo --nodes 2,4 --json halo.json --plot halo.png
    """
    sizes = {
        dims: units.split_whole(text, f"--sizes-{dims}d")
        for dims, text in ((1, sizes_1d), (2, sizes_2d), (3, sizes_3d))
        if text
    }
    if not sizes:
        raise OffpathError(
            Code.OPTION, "no domain is given", "name one with --sizes-1d, --sizes-2d or --sizes-3d"
        )
    spec = halo.HaloSpec(
        units.split_whole(nodes, "--nodes"), sizes, steps, runs, periodic, tuple(variants.split(","))
    )
    spec.check()
    lab = replace(lab, nodes=max(spec.nodes))
    lab.check()
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    artifacts.program(halo.PROGRAM), artifacts.device(lab.dpu), artifacts.mpi_preload
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        found = halo.report(cluster, spec, halo.measure(cluster, spec))
    halo.show(found)
    reports.write(found, json, plot, halo.draw)
