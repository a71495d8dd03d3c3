"""`offpath info`: devices, back ends, transports, progress guarantees and links, of this machine or of a
lab."""

import json as jsonlib
import os
import socket
import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from offpath import console, devices, openmp, stats, units, variables
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.lab import cluster as clusters
from offpath.lab import links, mpi, network

_LOCAL_ONLY = ("map", "cma")


def info(
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            "-N",
            help="Show a lab of so many nodes instead of this machine.",
            rich_help_panel="Lab",
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="RATE",
            help="Rate of each node's link in that lab (default: 1gbit).",
            rich_help_panel="Lab",
        ),
    ] = None,
    dpu: Annotated[
        str | None,
        typer.Option(
            "--dpu",
            metavar="local|remote|aarch64",
            help="Where the devices of that lab run.",
            rich_help_panel="Lab",
        ),
    ] = None,
    pcie: Annotated[
        str | None,
        typer.Option(
            "--pcie",
            metavar="RATE",
            help="Rate of its links between host and device (default: 4 x --link).",
            rich_help_panel="Lab",
        ),
    ] = None,
    latency: Annotated[
        str,
        typer.Option(
            "--latency", metavar="TIME", help="Latency added one way on its network.", rich_help_panel="Lab"
        ),
    ] = "0us",
    remote: Annotated[
        str | None,
        typer.Option(
            "--devices",
            metavar="FILE|LIST",
            help="Ask these devices whether they answer (default: OFFPATH_DEVICES).",
            rich_help_panel="Machine",
        ),
    ] = None,
    environment: Annotated[
        bool,
        typer.Option(
            "--variables",
            help="Show the environment variables that offpath reads, and their values here.",
            rich_help_panel="Machine",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Shows devices, memory back ends, transports, progress guarantees and links.

    They are those of this machine, or of a lab that is made for it.

    Example: offpath info --nodes 2 --link 1gbit --pcie 4gbit --dpu remote
    """
    if environment:
        if any(value is not None for value in (nodes, link, dpu, pcie, remote)):
            raise OffpathError(
                Code.OPTION, "--variables shows no devices and no lab", "leave the other options out"
            )
        show_variables(variables.values(os.environ), json)
        return
    if any(value is not None for value in (nodes, link, dpu, pcie)):
        if remote is not None:
            raise OffpathError(
                Code.OPTION,
                "--devices is for this machine, and --nodes, --link, --dpu, --pcie are for a lab",
                "give one or the other",
            )
        spec = options.lab_spec(
            nodes=nodes or 2,
            ranks_per_node=1,
            link=link or "1gbit",
            latency=latency,
            placement="split",
            dpu=dpu or "local",
            pcie=pcie,
            proxies=None,
            device_quota=None,
            spin_us=None,
            log_level="warn",
            env=None,
            mca=None,
            timeout=None,
        )
        find_artifacts().device(spec.dpu)
        options.enter_lab(spec, no_namespaces=False)
        with clusters.open_cluster(spec, find_artifacts()) as cluster:
            found = of_lab(cluster)
    else:
        found = of_machine(remote if remote is not None else os.environ.get("OFFPATH_DEVICES"))
    if json:
        print(jsonlib.dumps(found, indent=2))
        return
    show(found)


def of_machine(remote: str | None) -> dict:
    """Describes the devices of this machine: local attach, unless remote devices are named. Those are asked
    whether they answer."""
    named = devices.parse(remote) if remote else []
    artifacts = find_artifacts()
    found = query([str(artifacts.daemon)])
    if artifacts.has_openmp_plugins:
        found["target_devices"] = openmp.target_devices(artifacts, remote)
    listed = []
    for device in named:
        reachable, what = devices.reach(device)
        listed.append(
            {
                "node": device.node or "every node",
                "attach": "remote",
                "address": device.address,
                "reachable": reachable,
                "state": what,
            }
        )
    if not named:
        listed.append(_local_device())
    return {"devices": listed, "links": _machine_links(bool(named))} | found


def of_lab(cluster: clusters.Cluster) -> dict:
    spec, node = cluster.spec, cluster.nodes[0]
    remote = node.dpu is not None
    daemon = cluster.artifacts.device(spec.dpu)
    listed = []
    for each in cluster.nodes:
        entry = {
            "node": each.name,
            "attach": "remote" if remote else "local",
            "cores": units.format_cpus(each.placement.device),
        }
        if remote:
            entry |= {
                "device": each.device.name,
                "address": f"{network.pcie_address(each.index, of_device=True)}:{network.DEVICE_PORT}",
            }
        listed.append(entry)
    machine = node.dpu or node
    found = query(
        machine.command(
            [
                *daemon,
                "--name",
                machine.name,
                *(["--net-devices", network.INTERFACE] if cluster.namespaced else []),
            ]
        )
    )
    shown = links.describe(cluster)
    if remote:
        over_pcie = query(machine.command([*daemon, "--net-devices", network.PCIE_INTERFACE]))
        found["link"] = over_pcie.get("link", {})
        transports = over_pcie["ucx"].get("transports", [])
        found["ucx"]["host_device_transports"] = [
            name for name in transports if name.endswith("/" + network.PCIE_INTERFACE)
        ]
        found["attach"] = "remote"
        for back_end in found["back_ends"]:
            if back_end["name"] in _LOCAL_ONLY:
                back_end |= {
                    "available": False,
                    "note": "needs a device that shares the host's operating system",
                }
    if cluster.artifacts.has_openmp_plugins:
        found["target_devices"] = _target_devices(cluster)
    return {"lab": stats.describe_cluster(cluster), "devices": listed, "links": shown} | found


def _target_devices(cluster: clusters.Cluster) -> list[dict]:
    """Those that a program with target regions has on each node: a job is started that asks for them."""
    own = mpi.Engine("offpath", "offpath", offload=True, front_end=False)
    done = cluster.run(own, openmp.asking_command(cluster.artifacts), capture=True)
    if done.exit_code == 0:
        return openmp.devices_of_nodes(done.stdout)
    words = [*done.stderr.strip().splitlines(), *done.complaints, f"the job ended with {done.exit_code}"]
    return [{"node": "every node", "number": None, "device": words[0]}]


def query(daemon: list[str]) -> dict:
    """What the device software reports about the machine that it runs on."""
    name = " ".join(daemon)
    try:
        done = subprocess.run([*daemon, "--info"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OffpathError(Code.JOB_FAILED, f"{name} --info failed: {error}") from error
    try:
        found = jsonlib.loads(done.stdout)
    except ValueError:
        found = None
    if done.returncode != 0 or not isinstance(found, dict):
        raise OffpathError(
            Code.JOB_FAILED,
            f"{name} --info failed with code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}",
        )
    return found


def _local_device() -> dict:
    directory = Path(os.environ.get("OFFPATH_DIR") or f"/tmp/offpath-{os.getuid()}")
    path = directory / f"{socket.gethostname()}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(str(path))
            state = "serves"
        except OSError:
            state = "none runs now; `offpath run` starts one with the job"
    return {
        "node": socket.gethostname(),
        "attach": "local",
        "address": str(path),
        "reachable": state == "serves",
        "state": state,
    }


def _machine_links(remote: bool) -> list[dict]:
    """The network interfaces for traffic between nodes, and between host and device."""
    chosen = {"network": os.environ.get("UCX_NET_DEVICES")}
    if remote:
        chosen["host-device"] = os.environ.get("OFFPATH_HOST_DEVICES") or os.environ.get("UCX_NET_DEVICES")
    found = []
    for name, setting in chosen.items():
        present = sorted(entry.name for entry in Path("/sys/class/net").iterdir() if entry.name != "lo")
        for interface in setting.split(",") if setting and setting != "all" else present:
            found.append({"name": name, "interface": interface, "rate_bits_per_s": _speed(interface)})
    return found


def _speed(interface: str) -> int | None:
    """The speed that the driver reports. None for virtual interfaces, which report nothing, and for UCX's
    name of an RDMA port (mlx5_0:1), which is not a network interface."""
    try:
        megabits = int(Path(f"/sys/class/net/{interface}/speed").read_text())
    except (OSError, ValueError):
        return None
    return megabits * 10**6 if megabits > 0 else None


def show_variables(rows: list[dict], json: bool) -> None:
    if json:
        print(jsonlib.dumps({"variables": rows}, indent=2))
        return
    shown = Table("variable", "value", "from", "accepted", "meaning")
    for row in rows:
        value = console.escape(row["value"])
        if row["from"] == "environment":
            value = f"[bold]{value}[/bold]"
        meaning = [console.escape(row[column]) for column in ("accepted", "meaning")]
        shown.add_row(row["name"], value, row["from"], *meaning)
    console.out.print(shown)
    console.out.print(
        "Tools for MPI_T see those that the MPI front end reads as control variables, in small letters."
    )


def show(found: dict) -> None:
    if found.get("links"):
        found = found | {"links": _readable(found["links"])}
    for name, value in found.items():
        if name == "lab":
            console.out.print(f"[bold]lab[/bold]: {console.escape(value['description'])}")
        elif isinstance(value, (dict, list)) and value:
            console.out.print(f"[bold]{_words(name)}[/bold]")
            console.out.print(_table(value))
        else:
            console.out.print(f"[bold]{_words(name)}[/bold]: {_text(value)}")


def _readable(rows: list[dict]) -> list[dict]:
    """The links, with rates and times in readable units."""
    shown = []
    for row in rows:
        rate = row["rate_bits_per_s"]
        unknown = "not limited" if "between" in row else "not told"
        entry = {
            "link": row["name"],
            "interface": row["interface"],
            "rate each way": units.format_rate(rate) if rate is not None else unknown,
        }
        if "between" in row:
            entry |= {
                "between": row["between"],
                "added latency": (
                    units.format_seconds(row["added_latency_s"]) if row["added_latency_s"] else "none"
                ),
            }
            entry |= {"mtu": row["mtu"], "on node0": row["addresses_of_node0"]}
        shown.append(entry)
    return shown


def _table(value: dict | list) -> Table:
    """A table of a list with one row for each object, or of a single object with one row for each name and
    value."""
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        columns = list(dict.fromkeys(key for entry in value for key in entry))
        table = Table(*map(_words, columns))
        for entry in value:
            table.add_row(*(_text(entry.get(column)) for column in columns))
        return table
    table = Table(show_header=False)
    if isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values()):
        columns = list(dict.fromkeys(key for entry in value.values() for key in entry))
        table = Table("", *map(_words, columns))
        for name, entry in value.items():
            table.add_row(_words(name), *(_text(entry.get(column)) for column in columns))
        return table
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
        table.add_row(*([_words(str(key))] if isinstance(value, dict) else []), _text(entry))
    return table


def _text(value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{_words(key)}: {_text(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return console.escape(str(value))


def _words(name: str) -> str:
    return name.replace("_", " ")
