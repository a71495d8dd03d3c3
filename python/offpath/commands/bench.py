"""`offpath bench`: one command for each benchmark on an emulated cluster."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from offpath import (
    bench,
    bench_exchange,
    bench_programs,
    bench_rma,
    bench_shmem,
    bench_target,
    console,
    osu,
    overhead,
    reports,
    staging,
    stats,
    units,
)
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.compare import choose_engines
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters
from offpath.lab import device_ranks, mpi, sandbox

app = typer.Typer(
    help="Measures MPI operations on an emulated cluster, host MPI and offpath side by side in one session.",
    no_args_is_help=True,
)


@app.callback()
def _before() -> None:
    if "--help" not in sys.argv and not sandbox.inside() and (why := stats.why_busy()):
        console.note(why)


Sizes = Annotated[
    str,
    typer.Option(
        "--sizes", metavar="LIST", help="Message sizes in bytes, such as 64K,1M,16M (powers of 1024)."
    ),
]
Runs = Annotated[
    int, typer.Option("--runs", help="Runs of the program on each engine, alternating; medians are taken.")
]
Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations", help="Timed iterations in a run (default: about two seconds' worth, at least 5)."
    ),
]
Baselines = Annotated[
    str,
    typer.Option(
        "--baselines",
        metavar="none|rivals|all|NAMES",
        help=(
            f"More host MPI settings: {', '.join(e.name for e in mpi.BASELINES)}. rivals:"
            f" {', '.join(mpi.RIVALS)}."
        ),
    ),
]
Engines = Annotated[
    str | None,
    typer.Option("--engines", metavar="NAMES", help="Exactly these engines: " + ", ".join(mpi.ENGINES) + "."),
]
Ops = Annotated[
    str, typer.Option("--ops", metavar="LIST", help="Operations: " + ", ".join(bench.OPERATIONS) + ".")
]


@app.command("overlap")
@options.cluster_options(nodes=2, link="2gbit")
def overlap(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    ops: Ops = "ialltoall,iallgather,ibcast",
    sizes: Sizes = "1M,4M,16M",
    runs: Runs = 3,
    iterations: Iterations = None,
    baselines: Baselines = "rivals",
    engines: Engines = None,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """How much of an operation's time a computation hides (OSU's definitions).

    pure: post and wait. compute: a fixed amount of work, as long as the host MPI's pure time, timed alone
    with all ranks computing. total: post, that work, wait. overlap = 100 x (1 - (total - compute) / pure).
    wire: the least time that the link's rate allows.

    The host's MPI is also run with its progress thread and with the device's core, and MPICH alone and with
    its asynchronous progress and that core. docs/lab.md says what differs from OSU's osu_i... programs.
    """
    spec = _bench_spec(ops, bench.OPERATIONS, sizes, runs, iterations, engines, baselines)
    _run("overlap", lab, no_namespaces, spec, json, plot)


@app.command("latency")
@options.cluster_options(nodes=2, link="2gbit")
def latency_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    ops: Ops = "ialltoall,iallgather,ibcast",
    sizes: Sizes = "1K,16K,64K,256K,1M,4M,16M",
    runs: Runs = 3,
    iterations: Iterations = None,
    baselines: Baselines = "none",
    engines: Engines = None,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """How long an operation takes when nothing else is done: post and wait."""
    spec = _bench_spec(ops, bench.OPERATIONS, sizes, runs, iterations, engines, baselines)
    _run("latency", lab, no_namespaces, spec, json, plot)


@app.command("bandwidth")
@options.cluster_options(nodes=2, link="2gbit")
def bandwidth(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    ops: Annotated[
        str,
        typer.Option(
            "--ops", metavar="LIST", help="p2p (windows of MPI_Isend between pairs of ranks) and operations."
        ),
    ] = "p2p,ialltoall",
    sizes: Sizes = "64K,1M,4M",
    runs: Runs = 3,
    iterations: Iterations = None,
    baselines: Baselines = "none",
    engines: Engines = None,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Bytes per second of all ranks together."""
    known = (bench.POINT_TO_POINT, *bench.OPERATIONS)
    spec = _bench_spec(ops, known, sizes, runs, iterations, engines, baselines)
    _run("bandwidth", lab, no_namespaces, spec, json, plot)


@app.command("rma")
@options.cluster_options(nodes=2, link="2gbit")
def rma_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    ops: Annotated[
        str,
        typer.Option("--ops", metavar="LIST", help="Operations: " + ", ".join(bench_rma.OPERATIONS) + "."),
    ] = ",".join(bench_rma.OPERATIONS),
    sizes: Sizes = "1M",
    runs: Runs = 3,
    iterations: Iterations = None,
    busy_target: Annotated[
        bool, typer.Option("--busy-target/--idle-target", help="The target computes, or waits in MPI.")
    ] = True,
    busy_s: Annotated[
        float, typer.Option("--busy-s", help="How long a busy target computes in each iteration, in seconds.")
    ] = 0.2,
    baselines: Baselines = "none",
    engines: Engines = None,
    json: options.Json = None,
) -> None:
    """Passive-target operations, from lock to unlock, while the target computes and calls no MPI.

    Example: offpath bench rma --busy-target --nodes 2 --sizes 1M --json rma.json
    """
    spec = _bench_spec(ops, bench_rma.OPERATIONS, sizes, runs, iterations, engines, baselines)
    if not 0 < busy_s <= 60:
        raise OffpathError(Code.OPTION, f"--busy-s {busy_s:g} is out of range", "use more than 0, 60 at most")
    for size in spec.sizes:
        if size % 8:
            raise OffpathError(
                Code.OPTION, f"size {size} is out of range", "use multiples of 8: what is moved are doubles"
            )
    busy_s = busy_s if busy_target else 0.0
    with _cluster_for(spec, lab, no_namespaces, json, None) as cluster:
        found = bench_rma.report(cluster, spec, busy_s, bench_rma.RmaBench(cluster, spec, busy_s).rma())
    bench_rma.show(found)
    reports.write(found, json)


@app.command("exchange")
@options.cluster_options(nodes=2, link="1gbit")
def exchange_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    ops: Annotated[
        str,
        typer.Option(
            "--ops", metavar="LIST", help="Operations: " + ", ".join(bench_exchange.OPERATIONS) + "."
        ),
    ] = ",".join(bench_exchange.OPERATIONS),
    sizes: Sizes = "64K,1M,3538944,16M",
    skews: Annotated[
        str,
        typer.Option(
            "--skews",
            metavar="LIST",
            help="How long even ranks pack before they send, such as 0ms,1ms; odd ranks pack twice as long.",
        ),
    ] = "0ms,1ms,5ms",
    runs: Runs = 3,
    iterations: Iterations = None,
    baselines: Baselines = "none",
    engines: Engines = None,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Both directions of every link at once, by ranks that do not begin together.

    Each rank posts its receive, packs and sends to the next one (or puts into its window, or gets from it).
    The time should be that of the packing and of the wire for one direction.

    Example: offpath bench exchange --nodes 2 --link 1gbit --ops message --sizes 1M,16M
    """
    spec = _bench_spec(ops, bench_exchange.OPERATIONS, sizes, runs, iterations, engines, baselines)
    delays = [units.parse_duration(each) for each in skews.split(",")]
    with _cluster_for(spec, lab, no_namespaces, json, plot) as cluster:
        rows = bench_exchange.ExchangeBench(cluster, spec, delays).exchange()
        found = bench.report(cluster, spec, "exchange", rows)
    bench_exchange.show(found)
    reports.write(found, json, plot, bench_exchange.draw)


@app.command("shmem")
@options.cluster_options(nodes=2, link="unlimited")
def shmem_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    ops: Annotated[
        str,
        typer.Option("--ops", metavar="LIST", help="Operations: " + ", ".join(bench_shmem.OPERATIONS) + "."),
    ] = ",".join(bench_shmem.OPERATIONS),
    memory: Annotated[
        str, typer.Option("--memory", metavar="LIST", help="Symmetric memory: heap, static.")
    ] = ",".join(bench_shmem.MEMORIES),
    where: Annotated[
        str, typer.Option("--where", metavar="LIST", help="intra: two PEs of a node. inter: of two nodes.")
    ] = ",".join(bench_shmem.PLACES),
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="LIST",
            help="Sizes of puts and gets in bytes (default: 8 to 4M).",
            show_default=False,
        ),
    ] = None,
    engines: Annotated[
        str,
        typer.Option(
            "--engines",
            metavar="NAMES",
            help="host: the host's own OpenSHMEM, given the devices' cores. offpath.",
        ),
    ] = ",".join(bench_shmem.ENGINES),
    runs: Runs = 3,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Approximate time to measure each value in one run.")
    ] = 0.05,
    window: Annotated[
        int, typer.Option("--window", help="Operations in flight where bandwidth and rate are measured.")
    ] = 64,
    json: options.Json = None,
) -> None:
    """OpenSHMEM: latency, bandwidth, message rate and overlap of put and get; atomics; heap and static data.

    Example: offpath bench shmem --json shmem.json
    """
    spec = bench_shmem.ShmemSpec(
        units.split_list(ops, "operations"),
        units.split_list(memory, "memories"),
        units.split_list(where, "places"),
        units.parse_sizes(sizes) if sizes else list(bench_shmem.SIZES),
        units.split_list(engines, "engines"),
        runs,
        seconds,
        window,
    )
    spec.check(lab.nodes)
    if lab.remote:
        raise OffpathError(Code.OPTION, f"--dpu {lab.dpu} is not for this benchmark", "use --dpu local")
    options.check_outputs(json, None)
    artifacts = find_artifacts()
    artifacts.program(bench_shmem.PROGRAM), artifacts.device(lab.dpu)
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        found = bench_shmem.report(cluster, spec, bench_shmem.ShmemBench(cluster, spec).measure())
    bench_shmem.show(found)
    reports.write(found, json)


@app.command("osu")
@options.cluster_options(nodes=2, link="2gbit", dpu="remote")
def osu_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    tests: Annotated[
        str, typer.Option("--tests", metavar="LIST", help="Tests: " + ", ".join(osu.TESTS) + ".")
    ] = ",".join(osu.TESTS),
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="LIST",
            help="Message sizes in bytes (default: the powers of two from 1 to 4M).",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option("--runs", help="Runs of each test in each arrangement, alternating; medians are taken."),
    ] = 3,
    pairs: Annotated[int, typer.Option("--pairs", help="Pairs of ranks in mbw_mr.")] = 2,
    window: Annotated[
        int, typer.Option("--window", help="Messages in flight at once in bw and mbw_mr.")
    ] = 64,
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="How long one run measures one size; at least one iteration is made."),
    ] = 0.1,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """The OSU micro-benchmarks with devices as MPI ranks: dpu-dpu and host-dpu, relative to host-host.

    Example: offpath bench osu --nodes 2 --json osu.json --plot osu.png
    """
    names = units.split_known(tests, "test", osu.TESTS)
    spec = osu.OsuSpec(
        names, units.parse_sizes(sizes) if sizes else list(osu.SIZES), runs, pairs, window, seconds
    )
    spec.check(lab.nodes)
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    program = str(artifacts.program(osu.PROGRAM))
    device_ranks.device_command(lab.dpu, [program], None)
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        found = osu.report(cluster, spec, osu.Osu(cluster, spec).measure())
    osu.show(found)
    reports.write(found, json, plot, osu.draw)


@app.command("staging")
@options.cluster_options(nodes=2, link="2gbit", dpu="remote")
def staging_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="LIST",
            help="Message sizes in bytes (default: the powers of four from 1 to 4M).",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", help="Runs of each path, alternating; medians are taken.")
    ] = 3,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", help="How long one run measures each value; at least one iteration is made."
        ),
    ] = 0.1,
    raw: Annotated[
        bool, typer.Option("--raw/--no-raw", help="Measure the links themselves too, by UCX's perf test.")
    ] = True,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Messages through the device's buffers (staged) beside messages straight from host memory (direct).

    Example: offpath bench staging --json staging.json --plot staging.png
    """
    spec = staging.StagingSpec(units.parse_sizes(sizes) if sizes else list(staging.SIZES), runs, seconds, raw)
    spec.check(lab)
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    (
        artifacts.program(staging.PROGRAM),
        artifacts.device("local"),
        artifacts.device(lab.dpu),
        artifacts.mpi_preload,
    )
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        found = staging.report(cluster, spec, *staging.measure(cluster, spec))
    staging.show(found)
    reports.write(found, json, plot, staging.draw)


@app.command("target")
@options.cluster_options(nodes=1, link="unlimited")
def target_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    runs: Annotated[
        int, typer.Option("--runs", help="Runs of each engine, alternating; medians are taken.")
    ] = 3,
    repeats: Annotated[
        int, typer.Option("--repeats", help="Repeats of each measurement in a run, fewer for large ones.")
    ] = 500,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """OpenMP target regions on the device, beside LLVM's own plug-in, which runs them on the host.

    With them, MPI messages between hosts and devices, from inside regions: of two ranks on the one node, or
    with --nodes 2 on one each.

    Example: offpath bench target --dpu remote --json target.json --plot target.png
    """
    spec = bench_target.TargetSpec(runs, repeats)
    spec.check(lab)
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    artifacts.program(bench_target.PROGRAM), artifacts.program(bench_target.MPI_PROGRAM)
    artifacts.openmp_plugins, artifacts.device(lab.dpu), artifacts.mpi_preload
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        found = bench_target.report(cluster, spec, bench_target.measure(cluster, spec))
    bench_target.show(found)
    reports.write(found, json, plot, bench_target.draw)


@app.command("overhead")
@options.cluster_options(nodes=2, link="unlimited", placement="shared", ranks_per_node=2)
def overhead_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="LIST", help="Message sizes in bytes, multiples of 8.")
    ] = "8,64,512,1K,4K",
    runs: Annotated[
        int, typer.Option("--runs", help="Runs of the two programs, with and without, side by side.")
    ] = 8,
    batches: Annotated[
        int, typer.Option("--batches", help="Batches in a run; with and without take turns, batch by batch.")
    ] = 12,
    batch: Annotated[
        int, typer.Option("--batch", help="Round trips, windows of 64 messages, or collectives in a batch.")
    ] = 200,
    json: options.Json = None,
) -> None:
    """What loading offpath costs small messages and small collectives, which stay on the host's path.

    Two ranks with a core each: two on one node, and two on different nodes. The devices are there and idle.

    Example: offpath bench overhead --json overhead.json
    """
    spec = overhead.OverheadSpec(units.parse_sizes(sizes), runs, batches, batch)
    spec.check(lab)
    options.check_outputs(json, None)
    artifacts = find_artifacts()
    artifacts.program(bench.PROGRAM), artifacts.device(lab.dpu), artifacts.mpi_preload
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        found = overhead.report(cluster, spec, overhead.measure(cluster, spec))
    overhead.show(found)
    reports.write(found, json)


@app.command("programs")
@options.cluster_options(nodes=2, link="2gbit")
def programs_(
    lab: clusters.LabSpec,
    no_namespaces: bool,
    only: Annotated[
        str | None, typer.Option("--only", metavar="NAMES", help="These programs of the list.")
    ] = None,
    listed: Annotated[
        Path,
        typer.Option(
            "--programs",
            metavar="FILE",
            help='Programs as JSON: {"NAME": {"command": "PROGRAM ARGS", "about": "WORDS"}}.',
        ),
    ] = bench_programs.LISTED,
    runs: Annotated[
        int, typer.Option("--runs", min=2, max=1000, help="Rounds; each runs a program four times.")
    ] = 5,
    json: options.Json = None,
    plot: options.Plot = None,
) -> None:
    """Whole programs with the default settings, without and with offload in turn, and whether offload slowed
    any of them down.

    A round runs a program without offload, with it for the first time, with it and what earlier runs
    learned, and without it again. With --no-namespaces there is no lab: the ranks run on this machine under
    mpirun, and under `offpath run`.

    Example: offpath bench programs --nodes 2 --link 2gbit --runs 5 --json programs.json --plot programs.png
    """
    artifacts = find_artifacts()
    chosen = bench_programs.read(listed, units.split_list(only, "programs") if only else [], artifacts)
    options.check_outputs(json, plot)
    artifacts.device(lab.dpu), artifacts.mpi_preload
    if no_namespaces:
        ranks = lab.nodes * lab.ranks_per_node
        described = {"description": f"this machine, {ranks} ranks", "nodes": 1, "ranks_per_node": ranks}
        rows = bench_programs.measure(chosen, bench_programs.on_this_machine(ranks, lab.timeout or 600), runs)
    else:
        with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
            described = stats.describe_cluster(cluster)
            rows = bench_programs.measure(chosen, bench_programs.in_lab(cluster), runs)
    found = bench_programs.report(rows, described, runs)
    bench_programs.show(found)
    reports.write(found, json, plot, bench_programs.draw)
    raise typer.Exit(1 if any(row["failures"] for row in rows) else 0)


def _bench_spec(
    ops: str, known, sizes: str, runs: int, iterations: int | None, engines: str | None, baselines: str
) -> bench.BenchSpec:
    operations = units.split_known(ops, "operation", known)
    for value, option in ((runs, "--runs"), (iterations, "--iterations")):
        if value is not None and not 1 <= value <= 10000:
            raise OffpathError(Code.OPTION, f"{option} {value} is out of range", "use 1 to 10000")
    return bench.BenchSpec(
        operations,
        units.parse_sizes(sizes),
        choose_engines(engines, baselines, [bench.program(find_artifacts())]),
        runs,
        iterations,
    )


@contextmanager
def _cluster_for(
    spec: bench.BenchSpec, lab: clusters.LabSpec, no_namespaces: bool, json: Path | None, plot: Path | None
):
    """Makes and describes the cluster. Errors that would otherwise appear only after the measurement (a path
    that cannot be written, a program that is not built) are raised first."""
    options.check_outputs(json, plot)
    artifacts = find_artifacts()
    bench.program(artifacts)
    if any(engine.offload for engine in spec.engines):
        artifacts.device(lab.dpu), artifacts.mpi_preload
    with options.described_cluster(lab, no_namespaces, artifacts) as cluster:
        yield cluster


def _run(kind: str, lab: clusters.LabSpec, no_namespaces: bool, spec: bench.BenchSpec, json, plot) -> None:
    with _cluster_for(spec, lab, no_namespaces, json, plot) as cluster:
        session = bench.Bench(cluster, spec)
        found = bench.report(cluster, spec, kind, getattr(session, kind)())
    bench.show(found)
    reports.write(found, json, plot, bench.draw)
