"""`offpath lab`: run, compare, clean.

Each of them is started twice, outside its lab and inside. So it loads only the modules that it needs.
"""

import shlex
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from offpath import console
from offpath.artifacts import Artifacts, find_artifacts
from offpath.codes import Code
from offpath.commands import job_options, options
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters
from offpath.lab import mpi

app = typer.Typer(
    help=(
        "Emulated clusters on this machine: nodes are namespaces with links of a given rate, ranks are"
        " started by the real mpirun. Works as root or as an ordinary user, and leaves nothing behind."
    ),
    no_args_is_help=True,
)
_PROGRAM_LAST = {"allow_interspersed_args": False}


@app.command("run", context_settings=_PROGRAM_LAST)
@options.cluster_options(nodes=2, link="1gbit")
def run(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    program: options.Program,
    offload: Annotated[
        str | None,
        typer.Option(
            "--offload",
            metavar="on|off",
            help="on (default): a device serves each node. off: plain host MPI.",
            rich_help_panel="Device",
            show_default=False,
        ),
    ] = None,
    dpu_ranks: job_options.DpuRanks = False,
    device_program: job_options.DeviceProgram = None,
    devices_per_node: options.DevicesPerNode = 1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not describe the cluster.")] = False,
    trace: job_options.TraceFolder = None,
) -> None:
    """Runs PROGRAM under mpirun on an emulated cluster. The exit code is the program's.

    Example: offpath lab run --nodes 4 --link 1gbit --offload on -- ./my_program --its-option
    """
    if offload not in (None, "on", "off"):
        raise OffpathError(Code.OPTION, f"--offload {offload!r} is not known", "use on or off")
    program = options.lab_program(program)
    layout = options.device_rank_layout(lab, program, offload, dpu_ranks, device_program, devices_per_node)
    engine = mpi.HOST if offload == "off" or layout else mpi.OFFPATH
    artifacts = find_artifacts()
    if engine.offload:
        artifacts.device(lab.dpu), artifacts.mpi_preload
    options.enter_lab(lab, no_namespaces)
    if trace is not None:
        lab, engine = _traced(lab, engine, trace, program, artifacts)
    with clusters.open_cluster(lab, artifacts) as cluster:
        if not quiet:
            console.note(
                f"{cluster.describe()}; "
                + ("devices are MPI ranks" if layout else f"offload {'on' if engine.offload else 'off'}")
            )
        result = cluster.run(engine, program, layout=layout)
        clusters.report(result)
    if trace is not None:
        from offpath.tracing import record

        record.finish(trace)
    raise typer.Exit(result.exit_code)


def _traced(
    lab: clusters.LabSpec, engine: mpi.Engine, trace: Path, program: list[str], artifacts: Artifacts
) -> tuple[clusters.LabSpec, mpi.Engine]:
    """The lab and the engine of a run that is traced."""
    from offpath import mpi_library
    from offpath.tracing import record

    folder = record.prepare(trace)
    if folder.is_relative_to("/dev/shm"):
        raise OffpathError(
            Code.OUTPUT_FILE,
            f"{folder} is out of reach: a lab has a /dev/shm of its own",
            "use another directory",
        )
    variables = record.variables(artifacts, mpi_library.of_program(program), folder, lab.environment)
    where = {record.VARIABLE: variables.pop(record.VARIABLE)}
    return (
        replace(lab, environment=lab.environment | where),
        replace(engine, environment=engine.environment | variables),
    )


@app.command("compare", context_settings=_PROGRAM_LAST)
@options.cluster_options(nodes=4, link="1gbit")
def compare(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    program: options.Program,
    runs: Annotated[int, typer.Option("--runs", help="Runs of each engine, alternating.")] = 5,
    baselines: Annotated[
        str,
        typer.Option(
            "--baselines",
            metavar="none|rivals|all|NAMES",
            help=(
                f"More host MPI settings beside the plain one: {', '.join(e.name for e in mpi.BASELINES)}."
                f" rivals: {', '.join(mpi.RIVALS)}. "
                "Those of mpich run PROGRAM-mpich, the same program made with MPICH."
            ),
        ),
    ] = "none",
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines",
            metavar="NAMES",
            help="Exactly these engines, the first being the reference: " + ", ".join(mpi.ENGINES) + ".",
        ),
    ] = None,
    show_output: Annotated[
        bool, typer.Option("--show-output", help="Print what the program prints in each engine's first run.")
    ] = False,
    offload_args: Annotated[
        str,
        typer.Option(
            "--offload-args",
            metavar="ARGS",
            help="More arguments of PROGRAM in offloaded runs, such as '--variant group'.",
            rich_help_panel="Program",
        ),
    ] = "",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain/--no-explain",
            help="Say in plain words what the numbers mean, and whether a difference is one.",
        ),
    ] = True,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Runs PROGRAM in turn on the host's MPI and with its communication offloaded, and compares medians.

    Wall time is always compared, and so are the times that the program prints, such as `Loop time of 1.5 on 4
    procs`. If the last line that the program prints is a JSON object, so is every number in it: those with a
    unit in their name (total_s, ..._percent) as measurements, the others as results, which must agree.

    Example: offpath lab compare --nodes 4 --link 1gbit --runs 5 --json out.json -- build/bin/fft3d --json -
    """
    from offpath import compare as comparison
    from offpath import reports

    if not 1 <= runs <= 1000:
        raise OffpathError(Code.OPTION, f"--runs {runs} is out of range", "use 1 to 1000")
    program = options.lab_program(program)
    chosen = comparison.choose_engines(engines, baselines, program)
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    if any(engine.offload for engine in chosen):
        artifacts.device(lab.dpu), artifacts.mpi_preload
    options.enter_lab(lab, no_namespaces)
    with clusters.open_cluster(lab, artifacts) as cluster:
        console.note(cluster.describe())
        report = comparison.compare(cluster, chosen, program, runs, show_output, shlex.split(offload_args))
    comparison.show(report)
    if explain:
        comparison.explain(report)
    reports.write(report, json, plot, comparison.draw)
    raise typer.Exit(report["exit_code"])


@app.command("advise", context_settings=_PROGRAM_LAST)
@options.cluster_options(nodes=2, link="2gbit")
def advise(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    program: options.Program,
    runs: Annotated[
        int,
        typer.Option(
            "--runs", min=0, max=100, help="Runs with the profiler, without offload and with it, in turn."
        ),
    ] = 3,
    platform: Annotated[
        str,
        typer.Option(
            "--platform", "-p", metavar="NAME|FILE", help="This machine, as `offpath calibrate` says."
        ),
    ] = "lab",
    profile: Annotated[
        Path | None, typer.Option("--profile", metavar="DIR", help="Keep the profile in this folder.")
    ] = None,
    json: options.Json = None,
    html: job_options.Html = None,
) -> None:
    """Profiles PROGRAM on an emulated cluster, says what offload would bring to it there, and measures that.

    Example: offpath lab advise --nodes 2 --link 2gbit --runs 5 -- build/bin/fft3d --n 128
    """
    from offpath import advise_lab, advise_page, outputs, reports, sim
    from offpath.commands import advise as shown

    program = options.lab_program(program)
    figures = sim.read_figures(platform)
    options.check_outputs(json, None)
    if html is not None:
        outputs.check(html)
    if profile is not None:
        outputs.make_folder(profile, "profile")
    artifacts = find_artifacts()
    artifacts.device(lab.dpu), artifacts.mpi_preload
    options.enter_lab(lab, no_namespaces)
    with tempfile.TemporaryDirectory(prefix="offpath-advise-") as scratch:
        with clusters.open_cluster(lab, artifacts) as cluster:
            console.note(cluster.describe())
            kept = profile.resolve() if profile else None
            rounds = advise_lab.measure_in_rounds(cluster, program, runs, Path(scratch), kept)
        found = advise_lab.predict(lab, figures, rounds.profile, Path(scratch), artifacts)
    found.verified, found.profiled_s = rounds.verified, rounds.profiled_s
    shown.show(found)
    reports.write(found.as_json(), json)
    if html is not None:
        advise_page.write(found, html)
        console.note(f"wrote {html}")


@app.command("clean")
def clean() -> None:
    """Removes what a killed lab or run may have left: processes, control groups, temporary directories.

    Labs in use are not touched.
    """
    from offpath.lab import clean as leftovers

    removed = leftovers.clean()
    for line in removed:
        console.note(f"removed {line}")
    if not removed:
        console.note("nothing was left over")
