"""The picture of `offpath study minimd roofline`."""

from pathlib import Path

import matplotlib.pyplot as plt

from offpath.minimd.panels import SERIES, grid_of, where


def draw(report: dict, path: Path) -> None:
    """A panel for each precision. Filled marks: operations per byte that loads and stores move. Hollow marks:
    operations per byte that must come from memory."""
    figure, grid = grid_of(1, len(report["peaks"]), width=4.6, height=3.8)
    for axes, peak in zip(grid[0], report["peaks"], strict=True):
        rows = where(report["rows"], precision=peak["precision"])
        intensities = [row[key] for row in rows for key in ("flops_per_moved_byte", "flops_per_least_byte")]
        span = [min(intensities) / 3, max(intensities) * 3]
        for color, level in zip(("#333333", "#8d99ae", "#a8b0bd", "#c9ced6"), peak["memory"], strict=False):
            at = [span[0], min(span[1], peak["flops_per_s"] / level["bytes_per_s"])]
            if at[1] > at[0]:
                axes.plot(at, [x * level["bytes_per_s"] / 1e9 for x in at], "-", color=color, linewidth=1)
                axes.text(
                    at[0],
                    at[0] * level["bytes_per_s"] / 1e9,
                    f" {level['arrays']}: {level['bytes_per_s'] / 1e9:.0f} GB/s",
                    fontsize=6,
                    color=color,
                    va="bottom",
                )
        axes.axhline(peak["flops_per_s"] / 1e9, color="#333333", linewidth=1)
        axes.text(
            span[1],
            peak["flops_per_s"] / 1e9,
            f"{peak['flops_per_s'] / 1e9:.0f} Gflop/s ",
            fontsize=7,
            ha="right",
            va="bottom",
        )
        for color, row in zip((SERIES[1], SERIES[3], SERIES[4]), rows, strict=False):
            rate = row["flops_per_s"] / 1e9
            axes.plot(
                [row["flops_per_moved_byte"], row["flops_per_least_byte"]],
                [rate, rate],
                ":",
                color=color,
                linewidth=1,
            )
            axes.plot(
                row["flops_per_moved_byte"],
                rate,
                "o",
                color=color,
                label=f"{row['loop']}: {row['ns_per_atom']:.0f} ns an atom",
            )
            axes.plot(row["flops_per_least_byte"], rate, "o", color=color, markerfacecolor="white")
        axes.set(
            xscale="log",
            yscale="log",
            title=f"{peak['precision']}, {rows[0]['lanes']} lanes",
            xlabel="operations a byte: loads and stores (filled), memory (hollow)",
            xlim=span,
        )
        axes.xaxis.label.set_fontsize(8)
        axes.grid(alpha=0.2, which="both")
        axes.legend(fontsize=7, loc="lower right")
    grid[0][0].set_ylabel("Gflop/s")
    figure.suptitle(
        f"minimd's loops over pairs on one core: {report['environment'].get('cpu', '')}", fontsize=8
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
