"""`offpath top`: what the daemons of this machine do now."""

import json as jsonlib
import operator
import time
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Table

from offpath import console, status_page
from offpath.codes import Code
from offpath.errors import OffpathError

_RATES = ("sent", "received", "copied", "reduced")


def top(
    once: Annotated[bool, typer.Option("--once", help="Show one interval and end.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", "-i", metavar="SECONDS", help="Time between two looks.")
    ] = 1.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object for each interval.")] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print the counters as Prometheus reads them, and end.")
    ] = False,
) -> None:
    """Shows the daemons of this machine while they work: proxies, ranks, operations, bytes and CPU.

    It reads memory that the daemons keep for this, and asks them for nothing. Daemons of other users are
    shown to root only. Without --once it goes on until Ctrl-C.

    Example: offpath top --once --json
    """
    if not 0.05 <= interval <= 3600:
        raise OffpathError(
            Code.OPTION, f"--interval {interval:g} is out of range", "0.05 to 3600 seconds are accepted"
        )
    if prometheus:
        if json or once:
            raise OffpathError(
                Code.OPTION, "--prometheus has a form of its own", "leave --json and --once out"
            )
        print(metrics([page.read() for page in status_page.find()]), end="")
        return
    watcher = Watcher()
    if json:
        while True:
            print(jsonlib.dumps({"daemons": watcher.next(interval)}), flush=True)
            if once:
                return
    if once:
        _show(watcher.next(interval))
        return
    try:
        with Live(console=console.out, auto_refresh=False, screen=console.out.is_terminal) as live:
            while True:
                live.update(_table(watcher.next(interval)), refresh=True)
    except KeyboardInterrupt:
        return


class Watcher:
    """Looks at all daemons twice, and says what happened in between."""

    _look_for_new_s = 2.0

    def __init__(self) -> None:
        self._pages: list[status_page.StatusPage] = []
        self._found_at = -self._look_for_new_s
        self._before: dict[int, status_page.Daemon] = {}
        self._before_s = 0.0

    def next(self, interval: float) -> list[dict]:
        if not self._before:
            self._look()
        time.sleep(interval)
        before, since = self._before, self._before_s
        self._look()
        elapsed = self._before_s - since
        return [
            _daemon(before[process], now, elapsed)
            for process, now in self._before.items()
            if process in before
        ]

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._found_at >= self._look_for_new_s:
            self._pages, self._found_at = status_page.find(), now
        self._before = {page.process: page.read() for page in self._pages if status_page.alive(page)}
        self._before_s = time.monotonic()


def _daemon(before: status_page.Daemon, now: status_page.Daemon, elapsed: float) -> dict:
    ranks_before = {rank.name: rank for proxy in before.proxies for rank in proxy.ranks}
    return {
        "node": now.node,
        "process": now.process,
        "uptime_s": round(now.uptime_s, 3),
        "proxies": [
            _proxy(index, *pair, elapsed)
            for index, pair in enumerate(zip(before.proxies, now.proxies, strict=True))
        ],
        "ranks": [
            {
                "name": rank.name,
                "proxy": index,
                "operations": rank.started,
                "operations_per_s": (rank.started - ranks_before.get(rank.name, rank).started) / elapsed,
                "outstanding": rank.outstanding,
            }
            for index, proxy in enumerate(now.proxies)
            for rank in proxy.ranks
        ],
    }


def _proxy(index: int, before: status_page.Proxy, now: status_page.Proxy, elapsed: float) -> dict:
    row = {
        "proxy": index,
        "cpu": now.cpu,
        "cpu_percent": (now.cpu_ns - before.cpu_ns) / elapsed / 1e7,
        "sessions": now.sessions,
        "outstanding": now.outstanding,
        "schedules_run": now.schedules_run,
        "schedules_failed": now.schedules_failed,
    }
    for rate in _RATES:
        total = getattr(now, f"bytes_{rate}")
        row[f"bytes_{rate}"] = total
        row[f"{rate}_Bps"] = (total - getattr(before, f"bytes_{rate}")) / elapsed
    for copies in ("direct", "copied_once", "copied_more_often"):
        row[f"bytes_{copies}"] = getattr(now, f"bytes_{copies}")
    return row


_METRICS = {
    "schedules_run": ("counter", "Schedules that ended right"),
    "schedules_failed": ("counter", "Schedules that failed"),
    "bytes_sent": ("counter", "Bytes sent to other proxies"),
    "bytes_received": ("counter", "Bytes received from other proxies"),
    "bytes_copied": ("counter", "Bytes copied between ranks of the proxy"),
    "bytes_direct": ("counter", "Bytes of large payloads received that no proxy copied"),
    "bytes_copied_once": ("counter", "Bytes of large payloads received that a proxy copied once"),
    "bytes_copied_more_often": (
        "counter",
        "Bytes of large payloads received that proxies copied twice or more often",
    ),
    "bytes_reduced": ("counter", "Bytes of vectors that were reduced"),
    "sessions": ("gauge", "Ranks that are attached"),
    "outstanding": ("gauge", "Operations that have not ended"),
}


def metrics(daemons: list[status_page.Daemon]) -> str:
    """The counters in Prometheus' text format."""
    lines = []

    def metric(name: str, kind: str, what: str, value) -> None:
        lines.append(f"# HELP {name} {what}.")
        lines.append(f"# TYPE {name} {kind}")
        for daemon in daemons:
            node = daemon.node.replace("\\", "\\\\").replace('"', '\\"')
            for index, proxy in enumerate(daemon.proxies):
                labels = f'node="{node}",process="{daemon.process}",proxy="{index}"'
                lines.append(f"{name}{{{labels}}} {value(proxy)}")

    for counter, (kind, what) in _METRICS.items():
        suffix = "_total" if kind == "counter" else ""
        metric(f"offpath_proxy_{counter}{suffix}", kind, what, operator.attrgetter(counter))
    metric("offpath_proxy_cpu_seconds_total", "counter", "CPU time of the proxy", lambda p: p.cpu_ns / 1e9)
    return "".join(f"{line}\n" for line in lines)


def _bytes(rate: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if rate < 1024:
            return f"{rate:.0f} {unit}"
        rate /= 1024
    return f"{rate:.1f} GiB"


def _show(daemons: list[dict]) -> None:
    if not daemons:
        console.out.print("No daemon of this user runs here.")
        return
    console.out.print(_table(daemons))


def _table(daemons: list[dict]) -> Table:
    table = Table("node", "proxy", "core", "CPU", "ranks", "outstanding", "sent/s", "received/s", "copied/s")
    for daemon in daemons:
        for row in daemon["proxies"]:
            table.add_row(
                console.escape(daemon["node"]),
                str(row["proxy"]),
                "any" if row["cpu"] is None else str(row["cpu"]),
                f"{row['cpu_percent']:.0f} %",
                str(row["sessions"]),
                str(row["outstanding"]),
                *(_bytes(row[f"{rate}_Bps"]) for rate in _RATES[:3]),
            )
        for rank in daemon["ranks"]:
            table.add_row(
                "", "", "", "", console.escape(rank["name"]), str(rank["outstanding"]),
                f"{rank['operations_per_s']:.0f} operations/s", "", "",
            )  # fmt: skip
    return table
