"""Pieces of HTML that pages share."""

import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

escape = html.escape


def resource(name: str) -> str:
    return files("offpath.report").joinpath(name).read_text()


def page(title: str, parts: Iterable[str]) -> str:
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{resource('page.css')}</style></head><body>"
        + "".join(parts)
        + "</body></html>\n"
    )


def text(line: str) -> str:
    """Escapes a line; what is between backquotes becomes code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(line, quote=False))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML. Columns whose name begins with # hold numbers."""
    numbers = [name.startswith("#") for name in head]
    lines = [_cells("th", [name.lstrip("#") for name in head], numbers)]
    lines += [_cells("td", row, numbers) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _cells(tag: str, row: Sequence[str], numbers: Sequence[bool]) -> str:
    return "".join(
        f"<{tag}{' class=n' if number else ''}>{cell}</{tag}>"
        for cell, number in zip(row, numbers, strict=True)
    )


def bar(share: float, color: str) -> str:
    """A bar that is filled up to `share`, 0 to 1."""
    width = 100 * min(1.0, max(0.0, share))
    return (
        f"<span class='track'><span class='bar' style='width:{width:.1f}%;background:{color}'></span></span>"
    )


def tile(value: str, what: str) -> str:
    return f"<div class='tile'><b>{escape(value)}</b><span>{escape(what)}</span></div>"
