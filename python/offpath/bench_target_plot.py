"""The picture of `offpath bench target`."""

from pathlib import Path

import matplotlib.pyplot as plt

from offpath import plots


def draw(found: dict, mpi_ends: dict[str, str], path: Path) -> None:
    """Draws the bandwidth of mapping as a function of the size, the time of regions that run side by side,
    and the time of MPI messages. `mpi_ends`: the labels of what communicates, by the ends of its tests."""
    figure, (mapping, nowait, latency) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    for engine, color in (("offpath", plots.color("offpath")), ("llvm-host", plots.color("host"))):
        mine = [row for row in found["rows"] if row["engine"] == engine]
        for test, style in (("map_to", "o-"), ("map_from", "s--"), ("memcpy", ":"), ("raw_to", "-.")):
            if test == "memcpy" and engine != "offpath":
                continue
            label = (
                f"{engine}: {test.replace('_', ' ')}" if test.startswith("map") else test.replace("_", " ")
            )
            shade = color if test.startswith("map") else "black"
            _line(mapping, mine, test, "bytes", lambda row: row["bandwidth_Bps"] / 1e9, style, shade, label)
        _line(nowait, mine, "nowait_1ms", "regions", lambda row: row["seconds"] * 1e3, "o-", color, engine)
    own = [row for row in found["rows"] if row["engine"] == "offpath"]
    ideal = "ideal on the device's cores"
    _line(nowait, own, "nowait_1ms", "regions", lambda row: row["ideal_seconds"] * 1e3, ":", "black", ideal)
    for (ends, label), color in zip(mpi_ends.items(), ("#8d99ae", "#2a9d8f", "#e76f51"), strict=True):
        test = f"mpi_latency_{ends}"
        _line(latency, own, test, "bytes", lambda row: row["seconds"] * 1e6, "o-", color, label)
    mapping.set(title="update to and from", xscale="log", yscale="log", xlabel="bytes", ylabel="GB/s")
    nowait.set(title="nowait regions of 1 ms", xlabel="regions", ylabel="ms")
    latency.set(title="MPI messages, one way", xscale="log", yscale="log", xlabel="bytes", ylabel="us")
    for panel in (mapping, nowait, latency):
        panel.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    plots.finish(figure, found, path)


def _line(panel, rows: list[dict], test: str, amount: str, value, style: str, color: str, label: str) -> None:
    chosen = [row for row in rows if row["test"] == test]
    if chosen:
        panel.plot(
            [row[amount] for row in chosen], [value(row) for row in chosen], style, color=color, label=label
        )
