"""`offpath sim`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from offpath import calibrate, console, outputs, reports, sim, skeletons, units, validation_summary
from offpath import validate as validation
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError


def sim_(
    platform: options.Platform,
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern",
            metavar="NAME",
            help="One of " + ", ".join(sim.PATTERNS) + ".",
            autocompletion=lambda: list(sim.PATTERNS),
        ),
    ] = "",
    program: Annotated[
        Path | None,
        typer.Option(
            "--program",
            metavar="PROFILE",
            help="Replay a profile of `offpath advise --profile` instead of a pattern.",
            show_default=False,
        ),
    ] = None,
    skeleton: Annotated[
        str,
        typer.Option(
            "--skeleton",
            metavar="LINE",
            help="Replay a program that has not run: the command line of "
            + ", ".join(skeletons.NAMES)
            + ', such as "fft3d --n 512".',
            rich_help_panel="Skeletons",
        ),
    ] = "",
    kernels: Annotated[
        Path | None,
        typer.Option(
            "--kernels",
            metavar="FILE",
            help="How fast a core computes: what `offpath calibrate --kernels` wrote.",
            rich_help_panel="Skeletons",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FOLDER",
            help="Keep the skeleton's profile here.",
            rich_help_panel="Skeletons",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", "-N", min=1, max=65536, help="Nodes.")] = 2,
    ranks_per_node: Annotated[
        int, typer.Option("--ranks-per-node", min=1, max=1024, help="Ranks of each node.")
    ] = 1,
    size: Annotated[
        str, typer.Option("--bytes", "-b", metavar="SIZE", help="Bytes, as in `offpath bench`, such as 64K.")
    ] = "64K",
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="host|offpath", help="Without offload, or with it."),
    ] = "offpath",
    topology: Annotated[
        str,
        typer.Option(
            "--topology",
            help="single, fat-tree:16x8, dragonfly:9x4x2 or torus:4x4x2, each with its own numbers.",
            rich_help_panel="Network",
        ),
    ] = "single",
    sharing: Annotated[
        str,
        typer.Option(
            "--sharing", metavar="fifo|fair", help="How messages share a link.", rich_help_panel="Network"
        ),
    ] = "fifo",
    proxies: Annotated[
        int, typer.Option("--proxies", min=0, help="Proxies of a node; 0: as the platform has cores.")
    ] = 0,
    compute: Annotated[
        float | None,
        typer.Option(
            "--compute", metavar="SECONDS", help="Computation of each rank; default: as long as the pattern."
        ),
    ] = None,
    skew: Annotated[
        float, typer.Option("--skew", metavar="SECONDS", min=0, help="Ranks begin within this time.")
    ] = 0,
    noise: Annotated[
        float, typer.Option("--noise", min=0, max=1, help="Spread of computations, as a share of them.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of skew and noise.")] = 1,
    iterations: Annotated[
        int, typer.Option("--iterations", min=1, max=1000, help="Repetitions; medians are taken.")
    ] = 3,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=NUMBER", help="Changes a figure of the platform.", show_default=False
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="NAME",
            help="How proxies reach host memory, instead of the platform's way: "
            + ", ".join(sim.MEMORIES)
            + ".",
            show_default=False,
        ),
    ] = None,
    goal: Annotated[
        Path | None,
        typer.Option(
            "--goal",
            metavar="FILE",
            help="Also write the pattern in GOAL, which LogGOPSim reads.",
            rich_help_panel="Results",
        ),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Move real bytes, and check them.")] = False,
    repeatable: Annotated[
        bool,
        typer.Option(
            "--repeatable",
            help="Leave out how long the simulation took: equal runs then give equal files.",
            rich_help_panel="Results",
        ),
    ] = False,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate",
            help="Run the lab too, in configurations that calibration did not use, and show the errors.",
            rich_help_panel="Validation",
        ),
    ] = False,
    sets: Annotated[
        str,
        typer.Option(
            "--sets",
            metavar="known|blind|all|LIST",
            help="known: seen while the model was made; blind: fixed before they ran; drawn:SEED: drawn by"
            " that seed. Or some of " + ", ".join(validation.SETS) + ".",
            rich_help_panel="Validation",
        ),
    ] = "all",
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="How long the lab measures each size.", rich_help_panel="Validation"),
    ] = 0.3,
    calibrated: Annotated[
        Path | None,
        typer.Option(
            "--calibrate",
            metavar="FILE",
            help="Calibrate in the same rounds; the platform goes to FILE.",
            rich_help_panel="Validation",
            show_default=False,
        ),
    ] = None,
    measured: Annotated[
        list[Path] | None,
        typer.Option(
            "--measured",
            metavar="FILE",
            help="Take the lab's times from what an earlier --validate wrote. May be repeated.",
            rich_help_panel="Validation",
        ),
    ] = None,
    json: options.Json = None,
) -> None:
    """Simulates a pattern of communication on a platform, with the engine that runs on devices.

    Example: offpath sim --platform thor-bf2 --nodes 16 --ranks-per-node 32 --pattern alltoall --bytes 64K
    """
    if bool(pattern) + (program is not None) + bool(skeleton) + validate != 1:
        raise OffpathError(
            Code.OPTION,
            "what to simulate is not clear",
            "name a --pattern, a --program, a --skeleton, or --validate",
        )
    if not skeleton and (kernels is not None or profile is not None):
        raise OffpathError(Code.OPTION, "--kernels and --profile belong to skeletons", "name a --skeleton")
    if validate:
        return _validate(platform, sets, seconds, measured or [], calibrated, json)
    passed = [
        f"--topology={topology}",
        f"--sharing={sharing}",
        f"--proxies={proxies}",
        f"--skew={skew}",
        f"--noise={noise}",
        f"--seed={seed}",
        f"--iterations={iterations}",
    ]
    if compute is not None:
        passed.append(f"--compute={compute}")
    if goal is not None:
        outputs.check(goal)
        passed.append(f"--goal={goal}")
    if verify:
        passed.append("--verify")
    if repeatable:
        passed.append("--repeatable")
    spec = sim.SimSpec(
        platform,
        nodes,
        ranks_per_node,
        pattern,
        0 if pattern == "barrier" else units.parse_size(size),
        engine,
        sim.parse_changes(change or []),
        tuple(passed),
        program,
        memory,
    )
    spec.check()
    options.check_outputs(json, None)
    if skeleton:
        found = skeletons.simulate(skeleton, spec, find_artifacts(), kernels, profile)
        _show_skeleton(found)
    elif program is None:
        found = sim.simulate(spec, find_artifacts())
        _show(found)
    else:
        found = sim.simulate(spec, find_artifacts())
        _show_program(found)
    reports.write(found, json)


def _validate(
    platform: str,
    sets: str,
    seconds: float,
    measured: list[Path],
    calibrated: Path | None,
    json: Path | None,
) -> None:
    names = validation.choose(sets)
    if not 0.01 <= seconds <= 10:
        raise OffpathError(Code.OPTION, f"--seconds {seconds} is out of range", "use 0.01 to 10")
    options.check_outputs(json, None)
    if calibrated is not None:
        if measured:
            raise OffpathError(
                Code.OPTION, "--calibrate measures, and --measured does not", "give one of them"
            )
        outputs.check(calibrated)
    figures = sim.read_figures(platform)
    artifacts = find_artifacts()
    artifacts.program(sim.PROGRAM)
    if measured:
        found = validation.again(figures, validation.read(measured), names, artifacts)
    else:
        options.need_tools(namespaces=True)
        if calibrated is not None:
            artifacts.program(calibrate.MICRO)
        found, used = validation.compare(figures, names, artifacts, seconds, calibrated is not None)
        reports.write(dict(used), calibrated)
    validation_summary.show(found)
    reports.write(found, json)


def _show(found: dict) -> None:
    console.out.print(
        f"{found['pattern']} of {units.format_size(found['bytes']) if found['bytes'] else 'no bytes'}, "
        f"{_who(found)} of {found['platform']}, engine {found['engine']}"
    )
    table = Table()
    for column in ("", "time"):
        table.add_column(column, justify="right" if column else "left")
    for name, key in (
        ("alone", "time_s"),
        ("computation alone", "compute_s"),
        ("together", "total_s"),
        ("the host posts", "post_s"),
    ):
        table.add_row(name, units.format_seconds(found[key]))
    table.add_row("overlap", f"{found['overlap_percent']:.0f} %")
    console.out.print(table)
    speed = f"; {found['events_per_s'] / 1e6:.1f} million a second" if "events_per_s" in found else ""
    events, messages = (units.count(found[what], what[:-1]) for what in ("events", "messages"))
    console.note(f"{events}, {messages} between nodes{speed}")


def _who(found: dict) -> str:
    return f"{units.count(found['ranks'], 'rank')} on {units.count(found['nodes'], 'node')}"


def _show_skeleton(found: dict) -> None:
    console.out.print(
        f"{found['program']}, {_who(found)} of {found['platform']}, engine"
        f" {found['engine']}: {units.format_seconds(found['time_s'])}; a rank computes"
        f" {units.format_seconds(found['compute_s'])} of it"
    )


def _show_program(found: dict) -> None:
    console.out.print(
        f"{found['program']}, {_who(found)} of {found['platform']}, engine"
        f" {found['engine']}: {units.format_seconds(found['time_s'])}; profiled:"
        f" {units.format_seconds(found['measured_s'])}"
    )
    for name, what in found["unsupported"].items():
        console.note(f"not simulated: {what['count']} calls of MPI_{name}, taken to last as long as measured")
