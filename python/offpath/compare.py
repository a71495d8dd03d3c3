"""Runs the same program on several engines in turn, and compares medians, ratios and results."""

import os
import re
import statistics
import sys
from collections.abc import Collection, Set
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path

from rich.table import Table

from offpath import console, metrics, stats, timing_lines, twins, units
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi, sandbox
from offpath.lab.cluster import Cluster, JobResult
from offpath.lab.mpi import Engine
from offpath.last_words import last_words

WALL = metrics.WALL
_CHANCE = 0.05  # of equal programs to differ as much, at most, for a difference
_LEAST_DIFFERENCE = 0.01  # of the times, to be worth a word
_RUNS_THAT_TELL = 5  # at the least, if all runs of one are faster
_OFFLOADED = re.compile(
    r"^offpath: (?:offloaded [1-9]|one-sided: [1-9]|the device carried [1-9]|hosts sent )", re.MULTILINE
)


def choose_engines(names: str | None, baselines: str, program: list[str]) -> list[Engine]:
    """The engines for `program`, in the order in which they run. The first one is the reference.

    An engine that the user names but that cannot run is an error. `rivals` and `all` leave such an engine out
    and say why.
    """
    more: list[str] = []
    if names is not None:
        named = units.split_list(names, "engines")
    else:
        named = [mpi.HOST.name, mpi.OFFPATH.name]
        if baselines == "all":
            more = [engine.name for engine in mpi.BASELINES]
        elif baselines == "rivals":
            more = twins.rivals(program)
        elif baselines != "none":
            named += units.split_list(baselines, "baselines")
    for name in named:
        if name not in mpi.ENGINES:
            raise OffpathError(Code.OPTION, f"engine {name!r} is not known", "use " + ", ".join(mpi.ENGINES))
    twins.check([mpi.ENGINES[name] for name in named], program)
    possible = [name for name in more if not mpi.ENGINES[name].mpich or twins.missing(program) is None]
    if possible != more and not sandbox.inside():
        console.note(
            f"{', '.join(name for name in more if name not in possible)}: left out, since"
            f" {twins.missing(program)}"
        )
    return [mpi.ENGINES[name] for name in dict.fromkeys(named + possible)]


def compare(
    cluster: Cluster,
    engines: list[Engine],
    program: list[str],
    runs: int,
    show_output: bool = False,
    offload_arguments: list[str] | None = None,
) -> dict:
    """The report that `show` prints and `write` stores. Offloaded runs get `offload_arguments` after the
    program's own arguments."""
    extra = offload_arguments or []
    records = []
    environment = stats.environment()
    with console.progress() as progress:
        task = progress.add_task("", total=runs * len(engines))
        for run in range(runs):
            for engine in engines:
                progress.update(task, description=f"run {run + 1} of {runs}: {engine.label}")
                result = cluster.run(
                    engine,
                    [*twins.command(engine, program), *(extra if engine.offload else [])],
                    capture=True,
                )
                records.append(_record(run, engine, result))
                if show_output and run == 0:
                    progress.console.print(f"--- {engine.label} ---")
                    sys.stdout.write(result.stdout)
                    sys.stdout.flush()
                    sys.stderr.write(result.stderr)
                for complaint in result.complaints:
                    console.warn(Code.JOB_FAILED, f"{engine.name}, run {run + 1}: {complaint}")
                progress.advance(task)
                if result.exit_code != 0:
                    tail = last_words(result.stdout, result.stderr)
                    console.warn(
                        Code.JOB_FAILED,
                        f"{engine.label}, run {run + 1}: the program ended with code"
                        f" {result.exit_code}\n{tail}",
                    )
    return {
        "program": program,
        "offload_arguments": extra,
        "lab": stats.describe_cluster(cluster),
        "environment": environment,
        "engines": {
            engine.name: {"label": engine.label, "mca": engine.mca, "alone": engine.alone}
            for engine in engines
        },
        "reference": engines[0].name,
        "summary": summarize(records, engines),
        "differences": differences(
            records, ignored={word.lstrip("-") for word in extra if word.startswith("--")}
        ),
        "runs": records,
        "exit_code": next((record["exit_code"] for record in records if record["failed"]), 0),
    }


def _record(run: int, engine: Engine, result: JobResult) -> dict:
    said, output = metrics.last_json_object(result.stdout), metrics.plain_output(result.stdout)
    return {
        "run": run,
        "engine": engine.name,
        "exit_code": result.exit_code,
        "failed": result.exit_code != 0,
        "measurements": {WALL: result.wall_s} | timing_lines.seconds(output) | metrics.measurements(said),
        "results": metrics.results(said),
        "output": output,
        "summary_line": next(
            (line for line in result.stderr.splitlines() if line.startswith("offpath:")), None
        ),
        "offloaded": was_offloaded(result.stderr),
        "wire": [asdict(traffic) for traffic in result.wire_bytes],
        "pcie": [asdict(traffic) for traffic in result.pcie_bytes],
        "device_cpu_s": result.device_cpu_s,
        "complaints": result.complaints,
    }


def was_offloaded(stderr: str) -> bool:
    """Whether the summary of a job says that devices moved data for it."""
    return bool(_OFFLOADED.search(stderr))


def summarize(records: list[dict], engines: list[Engine]) -> dict:
    """Returns {measurement: {engine: {median, low, high, count, ratio, ratio_to_alone}}}. Failed runs do not
    count.

    `ratio` is the ratio to the first engine. An engine that adds something to its MPI library also has
    `ratio_to_alone`, its ratio to the library alone.
    """
    good = [record for record in records if not record["failed"]]
    names = dict.fromkeys(name for record in good for name in record["measurements"])
    summary: dict = {}
    for name in names:
        found = summary[name] = {}
        for engine in engines:
            values = [
                r["measurements"][name]
                for r in good
                if r["engine"] == engine.name and name in r["measurements"]
            ]
            if values:
                found[engine.name] = asdict(stats.summarize(values))
        for engine in engines:
            if entry := found.get(engine.name):
                entry["ratio"] = _over(entry, found.get(engines[0].name))
                if engine.alone:
                    entry["ratio_to_alone"] = _over(entry, found.get(engine.alone))
    return summary


def _over(entry: dict, other: dict | None) -> float | None:
    return entry["median"] / other["median"] if other and other["median"] else None


def differences(records: list[dict], ignored: Set[str] = frozenset()) -> list[str]:
    """Describes each run whose output or results, except those in `ignored`, differ from those of the first
    good run."""
    good = [record for record in records if not record["failed"]]
    found, printed = [], []
    for record in good[1:]:
        first, where = good[0], f"{record['engine']}, run {record['run'] + 1}"
        for name in sorted({*first["results"], *record["results"]} - ignored):
            a, b = first["results"].get(name), record["results"].get(name)
            if not metrics.agree(a, b):
                found.append(
                    f"{where}: {name} is {b!r}, not {a!r} as in {first['engine']}, run {first['run'] + 1}"
                )
        # Lines of several ranks arrive in any order.
        ours, theirs = (sorted(timing_lines.masked_lines(each["output"])) for each in (record, first))
        if ours != theirs:
            line = next(pair for pair in zip_longest(ours, theirs, fillvalue="") if pair[0] != pair[1])
            printed.append((record["engine"], where, line))
    if printed:
        # A run of another engine tells more than one of the reference's own.
        _, where, (our_line, their_line) = next(
            (each for each in printed if each[0] != good[0]["engine"]), printed[0]
        )
        others = f" (and in {len(printed) - 1} more runs)" if len(printed) > 1 else ""
        engines = {engine for engine, _, _ in printed}
        alone = f"; also between runs of {good[0]['engine']}" if {good[0]["engine"]} < engines else ""
        found.append(
            f"{where}: the text printed is not that of {good[0]['engine']}, run {good[0]['run'] + 1}:"
            f" {our_line!r}, not {their_line!r}{others}{alone}"
        )
    return found


def show(report: dict) -> None:
    """Prints the tables of medians. Ratios are to the reference. For times, a ratio below 1 means faster."""
    engines = [
        name for name in report["engines"] if any(name in entry for entry in report["summary"].values())
    ]
    if not engines:
        console.warn(Code.NOTHING_TO_DO, "no run succeeded, so there is nothing to compare")
        return
    runs = max((record["run"] for record in report["runs"]), default=0) + 1
    # Each library has its own table, so that the tables fit into a terminal.
    of_mpich = [name for name in engines if mpi.ENGINES[name].mpich]
    title = f"medians of {runs} run{'s' if runs > 1 else ''}; ratios are to {report['reference']}"
    if others := [name for name in engines if name not in of_mpich]:
        console.out.print(_table(report, others, title))
    if of_mpich:
        console.out.print(
            _table(report, of_mpich, title + ", or to what the column says" if others else title)
        )
    for name in engines:
        console.out.print(f"{name}: {report['engines'][name]['label']}")
    wire = (
        "; wire: bytes that all nodes together sent over their links"
        if any(record["wire"] for record in report["runs"])
        else ""
    )
    pcie = (
        "; pcie: bytes on all links between host and device, both ways"
        if any(record["pcie"] for record in report["runs"])
        else ""
    )
    console.out.print(f"{WALL}: from the start of mpirun to its end{wire}{pcie}", soft_wrap=True)
    for line in dict.fromkeys(record["summary_line"] for record in report["runs"] if record["summary_line"]):
        console.out.print(console.escape(line), soft_wrap=True)
        break
    _show_verdict(report)


def _table(report: dict, engines: list[str], title: str) -> Table:
    """A table with the medians of these engines, one measurement in each row."""
    reference = report["reference"]
    table = Table(title=title, title_justify="left")
    table.add_column("")
    # The columns of each engine: a title, and the key of a ratio or None for the value.
    columns: list[tuple[str, str | None]] = []
    for name in engines:
        columns.append((name, None))
        table.add_column(name, justify="right", no_wrap=True)
        if name != reference:
            columns.append((name, "ratio"))
            table.add_column("ratio", justify="right")
        alone = report["engines"][name]["alone"]
        if alone in engines and alone != reference:
            columns.append((name, "ratio_to_alone"))
            table.add_column(f"to {alone}", justify="right")
    for measurement, entries in report["summary"].items():
        row = [console.escape(measurement)]
        for name, key in columns:
            entry = entries.get(name, {})
            if key is None:
                row.append(_value(measurement, entry["median"]) if entry else "-")
            else:
                row.append(_ratio(measurement, entry.get(key)))
        table.add_row(*row)
    for link in ("wire", "pcie"):
        if not any(record[link] for record in report["runs"]):
            continue
        row = [link]
        for name, key in columns:
            sent = _bytes_median(report, name, link)
            of = (
                _bytes_median(report, reference if key == "ratio" else report["engines"][name]["alone"], link)
                if key
                else 0
            )
            row.append(
                units.format_bytes(sent)
                if key is None
                else _ratio("", sent / of)
                if of and link == "wire"
                else ""
            )
        table.add_row(*row)
    return table


def _show_verdict(report: dict) -> None:
    failed = [record for record in report["runs"] if record["failed"]]
    for record in failed:
        console.warn(
            Code.JOB_FAILED,
            f"{record['engine']}, run {record['run'] + 1} failed with code {record['exit_code']} and is not"
            " counted",
        )
    for line in report["differences"][:10]:
        console.warn(Code.JOB_FAILED, line)
    if not failed and not report["differences"]:
        said = all(record["results"].get("verified") is True for record in report["runs"])
        console.out.print(
            "All runs succeeded with the same results" + (", verified by the program." if said else ".")
        )


def explain(report: dict) -> None:
    """Prints, for a first-time reader, what the engines did differently and whether the difference is
    significant."""
    if not report["summary"]:
        return
    console.out.print()
    for line in [*_circumstances(report), *verdicts(report)]:
        console.out.print(console.escape(line))


def main_time(summary: dict) -> str:
    """The name of the time to compare: the program's own total, else the longest time that it prints, else
    the job's wall time. A time that is the same in all runs is not measured, but for example a step's
    length."""
    if "total_s" in summary:
        return "total_s"
    own = [
        name
        for name in summary
        if metrics.is_time(name) and name != WALL and not _is_constant(summary[name].values())
    ]
    return max(own, key=lambda name: max(entry["median"] for entry in summary[name].values()), default=WALL)


def _is_constant(entries: Collection[dict]) -> bool:
    values = {entry[key] for entry in entries for key in ("low", "high")}
    return len(values) == 1 and sum(entry["count"] for entry in entries) > 1


def verdicts(report: dict) -> list[str]:
    """For each engine other than the reference: whether its times differ from the reference's by more than
    the scatter of the runs."""
    time, reference = main_time(report["summary"]), report["reference"]
    values: dict[str, list[float]] = {}
    for record in report["runs"]:
        if not record["failed"] and time in record["measurements"]:
            values.setdefault(record["engine"], []).append(record["measurements"][time])
    if reference not in values:
        return []
    found = []
    for name in (name for name in values if name != reference):
        found.append(_verdict(report, time, values, name, reference))
        alone = report["engines"][name]["alone"]
        if alone in values and alone != reference:
            found.append(_verdict(report, time, values, name, alone))
    busy = report["environment"]["load_average"]
    if busy > 1:
        found.append(f"The machine was not idle (load average {busy:.1f}), which spoils such a comparison.")
    return found


def _verdict(report: dict, time: str, values: dict[str, list[float]], name: str, other: str) -> str:
    ours, theirs = values[name], values[other]
    entry = report["summary"][time]
    mine, reference = entry[name]["median"], entry[other]["median"]
    change = f"{_change(mine, reference)} time ({_label(time)})"
    if len(ours) < 2 or len(theirs) < 2:
        return (
            f"{name} took {change} than {other} in one run of each. That does not tell whether there is a"
            " difference: use more --runs."
        )
    which = "faster" if mine < reference else "slower"
    apart = max(ours) < min(theirs) or min(ours) > max(theirs)
    if reference == 0 or abs(mine / reference - 1) < _LEAST_DIFFERENCE:
        return f"No difference between {name} and {other}: the medians ({_label(time)}) are the same."
    if is_difference(ours, theirs):
        how = f"every run of {name} was {which} than every run of {other}" if apart else "most runs agree"
        return f"{name} is {which} than {other}: it took {change}, and {how}."
    if apart:
        return (
            f"{name} took {change} than {other}, and all of its runs were {which}. So few runs may do that by"
            f" chance: use --runs {_RUNS_THAT_TELL}."
        )
    widest = max((max(each) - min(each)) / min(each) for each in (ours, theirs) if min(each) > 0)
    return (
        f"No difference between {name} and {other} that these runs can tell: it took {change}, and equal runs"
        f" differ by up to {100 * widest:.0f} %."
    )


def is_difference(ours: list[float], theirs: list[float]) -> bool:
    """Whether equal programs would differ as much in less than one comparison of twenty."""
    return stats.chance(ours, theirs) <= _CHANCE


def _label(time: str) -> str:
    return "from the start of mpirun to its end" if time == WALL else time


def _circumstances(report: dict) -> list[str]:
    names = [
        name
        for name in (mpi.HOST.name, mpi.OFFPATH.name)
        if all(name in entry for entry in report["summary"].values())
    ]
    if len(names) < 2:
        return []
    lab, summary = report["lab"], report["summary"]
    total = main_time(summary)
    host, offloaded = (summary[total][name]["median"] for name in names)
    name, extra = Path(report["program"][0]).name, report["offload_arguments"]
    lines = [
        (
            f"{name} ran with {' '.join(extra)} where it was offloaded. "
            if extra
            else f"{name} was neither changed nor linked again. "
        )
        + f"It ran on an emulated cluster of {units.count(lab['nodes'], 'node')}, links of {lab['link']},"
        " once on the host's MPI and once with offpath"
        + (" beside it." if extra else " loaded in front of it."),
        f"{_who_worked(report)} Medians: {units.format_seconds(host)} without offload,"
        f" {units.format_seconds(offloaded)} with it.",
    ]
    if "comm_s" in summary and total != WALL:
        waits = [summary["comm_s"][name]["median"] for name in names]
        lines.append(
            f"The time that it spent in MPI calls went from {units.format_seconds(waits[0])} to"
            f" {units.format_seconds(waits[1])}, {_change(waits[1], waits[0])}."
        )
    sent = [_bytes_median(report, name, "wire") for name in names]
    if device_worked(report) and all(sent) and abs(sent[1] / sent[0] - 1) < 0.02:
        lines.append(
            "Both ways sent the same bytes over the same links; what changed is who moved them, and when."
        )
    return lines


def _who_worked(report: dict) -> str:
    worked = device_worked(report)
    if worked is None:
        return (
            "Whether devices did anything is not known, since the program's output does not have that line."
        )
    if worked:
        return (
            "With offpath the device of each node, here a core that the program does not use, moved data"
            " while the program ran."
        )
    return (
        "With offpath no device did anything: the program has no MPI, has one rank, or does nothing that is"
        " offloaded. A difference is not due to offload."
    )


def device_worked(report: dict) -> bool | None:
    """Whether offload did anything in the runs with it. None: the summary is switched off."""
    if (dict(os.environ) | report["lab"].get("environment", {})).get("OFFPATH_VERBOSE") == "0":
        return None
    return any(run.get("offloaded") for run in report["runs"] if run["engine"] == mpi.OFFPATH.name)


def _change(value: float, reference: float) -> str:
    percent = 100 * (value / reference - 1)
    return f"{abs(percent):.0f} % {'less' if percent < 0 else 'more'}"


def _bytes_median(report: dict, engine: str, link: str) -> int:
    """The median over the runs of the bytes that all nodes sent. For links between host and device, both
    directions count."""
    count = (lambda node: node["sent"]) if link == "wire" else (lambda node: node["sent"] + node["received"])
    totals = [sum(map(count, r[link])) for r in report["runs"] if r["engine"] == engine and not r["failed"]]
    return int(statistics.median(totals)) if totals else 0


def _value(measurement: str, value: float) -> str:
    return units.format_seconds(value) if metrics.is_time(measurement) else f"{value:.4g}"


def _ratio(measurement: str, ratio: float | None) -> str:
    if ratio is None:
        return "-"
    if not metrics.is_time(measurement):
        return f"{ratio:.3f}"
    color = "green" if ratio < 0.98 else "red" if ratio > 1.02 else "default"
    return f"[{color}]{ratio:.3f}[/{color}]"


def draw(report: dict, path: Path) -> None:
    from offpath import plots  # matplotlib is slow to load

    plots.compare(report, path)
