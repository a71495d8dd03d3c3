"""The page of `offpath advise`: one HTML file that needs no other."""

import html
import io
from pathlib import Path

from offpath import outputs, units
from offpath.advise import Advice, headline, measured_line, where_from

_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { padding: .3rem .6rem; border-bottom: 1px solid #ddd; }
td.n { text-align: right; } svg { max-width: 100%; height: auto; }
"""
_SHOWN = 30


def write(found: Advice, path: Path) -> None:
    title, _, interval = headline(found).partition("; ")
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'><title>offpath advise</title>",
        f"<style>{_STYLE}</style>",
        f"<h1>{html.escape(title[0].upper() + title[1:])}</h1>",
        f"<p>{where_from(found)} of {html.escape(found.platform)}. ",
        f"Measured without offload {units.format_seconds(found.measured_s)}; replayed without offload ",
        f"{units.format_seconds(found.host_s)}, with offload {units.format_seconds(found.offpath_s)}. ",
        html.escape(interval[:1].upper() + interval[1:]) + ("." if interval else ""),
    ]
    parts.append("</p>")
    if found.verified:
        line = measured_line(found)
        parts.append(f"<p>{html.escape(line[0].upper() + line[1:])}.</p>")
    parts += [_plot(found), _table(found), "<ul>"]
    parts += [f"<li>{html.escape(note)}</li>" for note in found.notes]
    outputs.write(path, "".join(parts) + "</ul></html>\n")


def _table(found: Advice) -> str:
    head = ("call", "place", "count", "bytes", "in call", "window", "gain", "advice")
    rows = ["<table><tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"]
    for one in found.sites[:_SHOWN]:
        site = one.site
        numbers = [
            str(site.count),
            units.format_size(site.bytes) if site.bytes else "",
            units.format_seconds(site.inside_s),
            units.format_seconds(site.window_s) if site.windows else "",
            f"{one.gain_s * 1e3:.1f} ms" if one.gain_s is not None else "",
        ]
        rows.append(
            f"<tr><td>MPI_{html.escape(site.call)}</td><td>{html.escape(site.place)}</td>"
            + "".join(f"<td class='n'>{text}</td>" for text in numbers)
            + f"<td>{html.escape(one.text)}</td></tr>"
        )
    return "".join(rows) + "</table>"


def _plot(found: Advice) -> str:
    """The times of the whole program, and those inside the calls of the most important sites."""
    from offpath import plots  # sets matplotlib up, which is slow to load

    figure, (whole, sites) = plots.plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    names = ["measured", "replay, host", "replay, offpath"]
    times = [found.measured_s, found.host_s, found.offpath_s]
    whole.barh(names[::-1], times[::-1], color=[plots.color("offpath"), plots.color("host"), "#333333"])
    whole.set_xlabel("seconds")
    shown = [one for one in found.sites if one.host_s is not None][:8][::-1]
    positions = range(len(shown))
    host = [one.host_s for one in shown]
    device = [one.offpath_s or 0 for one in shown]
    sites.barh([at + 0.2 for at in positions], host, 0.4, color=plots.color("host"), label="host")
    sites.barh([at - 0.2 for at in positions], device, 0.4, color=plots.color("offpath"), label="offpath")
    sites.set_yticks(list(positions), [f"{one.site.call} {one.site.place}"[:40] for one in shown], fontsize=7)
    sites.set_xlabel("seconds inside the call, all ranks, replayed")
    if shown:
        sites.legend()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plots.plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]
