"""Writes docs/reproduction.md from rows."""

from offpath.reproduction.row import Kind, Paper, Row, number, with_unit

COMMAND = "offpath study reproduce --page docs/reproduction.md"

# What is not here, and why: by paper, the figure and the reason.
MISSING = {
    Paper.MINIMD: (
        (
            "Fig. 3b and 4: bandwidth and message rate of 8 pairs",
            "the simulator has no window of 64 messages",
        ),
        ("Fig. 6 to 8, 11 and 14 by number of atoms and nodes", "the paper has curves, and no table"),
    ),
    Paper.FRAMEWORK: (("latency with and without staging", "a picture without numbers"),),
    Paper.ONE_SIDED: (
        ("by mesh and number of processes (Fig. 6 to 29)", "the paper has bars, and few numbers"),
        ("computation offload: up to 91.5 % less", "not measured at those scales"),
        ("60 % over OSSS-UCX", "that library was not run"),
    ),
    Paper.TUTORIAL: (
        ("latency and overlap of alltoallv", "pictures without numbers"),
        ("OpenMP and MPI offload on BlueField-2 and 3", "pictures without numbers"),
        (
            "Octopus and P3DFFT++ runs by themselves",
            "neither was profiled; the rows above use the table's times",
        ),
    ),
    Paper.MANUAL: (
        ("total, force and communication time by atoms and nodes", "pictures without numbers"),
        (
            "sleeps that stand for more computation",
            "`offpath study minimd-manual --intensities` does the same",
        ),
    ),
}


def render(rows: list[Row], commands: dict[str, str]) -> str:
    """`commands`: what made the stored results, by their names."""
    lines = [
        "# Reproduction of the papers",
        "",
        "After reading this page you know which figures of the papers offpath's models, simulator and",
        "measurements reproduce, how closely, and which not yet.",
        "",
        "```console",
        f"$ build/bin/{COMMAND}",
        "$ build/bin/offpath study reproduce --json rows.json",
        "```",
        "",
        "The first command writes this page: do not edit it. Rows are computed, by [formulas](models.md), by",
        "[simulation](simulation.md) or from stored results of [measurements](performance.md). The error is",
        "the distance to the paper's figure, or to the nearer end of its range. Platforms are mostly",
        "assumed, so read simulated rows as trends. *Cards alone* are hosts with the figures of the",
        "platform's cards. Rows of models take other figures of the same paper.",
        "",
        _summary(rows),
        "",
    ]
    for paper in Paper:
        chosen = [row for row in rows if row.paper == paper]
        lines += ["## " + paper, ""]
        if chosen:
            lines += [
                "| place | figure | paper | ours | error | from |",
                "| --- | --- | --- | --- | --- | --- |",
            ]
            lines += [_line(row) for row in chosen]
            lines.append("")
            reasons = dict.fromkeys(
                (row.place, row.what, row.why) for row in chosen if row.why and _error(row) != "none"
            )
            if reasons:
                lines += ["Where we differ:", ""]
                lines += _grouped(reasons)
                lines.append("")
        if MISSING[paper]:
            lines += ["Not yet:", "", "| figure | reason |", "| --- | --- |"]
            lines += [f"| {what} | {why} |" for what, why in MISSING[paper]]
            lines.append("")
    if commands:
        lines += ["## Stored results", "", "| name | made by |", "| --- | --- |"]
        lines += [f"| {name} | `{command}` |" for name, command in commands.items()]
        lines += [
            "",
            "Measurements ran in the [lab](lab.md) on two cores, and miniMD alone on one. The files in",
            "`python/offpath/reproduction/stored` also have the machine and the state of the source.",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _summary(rows: list[Row]) -> str:
    within = sum(abs(row.error) <= 0.2 for row in rows)
    kinds = ", ".join(f"{sum(row.kind == kind for row in rows)} {kind}" for kind in Kind)
    return f"{len(rows)} figures ({kinds}); {within} are within 20 %."


def _line(row: Row) -> str:
    ours = with_unit(row.ours, row.published.unit)
    return f"| {row.place} | {row.what} | {row.published} | {ours} | {_error(row)} | {row.kind}: {row.how} |"


def _error(row: Row) -> str:
    return "none" if abs(row.error) < 0.005 else f"{100 * row.error:+.0f} %"


def _grouped(reasons: dict) -> list[str]:
    """A line for each reason, with the figures that it explains."""
    by_reason: dict[str, list[str]] = {}
    for place, what, why in reasons:
        by_reason.setdefault(why, []).append(f"{what} ({place})" if place else what)
    lines = ["| figure | reason |", "| --- | --- |"]
    return lines + [f"| {'; '.join(what)} | {why} |" for why, what in by_reason.items()]


def table(rows: list[Row]) -> list[list[str]]:
    """Cells for the terminal."""
    return [
        [
            row.place,
            row.what,
            str(row.published),
            number(row.ours),
            _error(row),
            str(row.kind),
        ]
        for row in rows
    ]
