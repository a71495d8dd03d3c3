"""UCX's own perf test between machines of the lab: what a link gives to a program that does nothing else."""

import importlib.util
import os
import shutil
import subprocess
import time
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import network
from offpath.lab.node import Node

_PORT = 13337
_MESSAGE = 4 * 2**20
_SECONDS = 0.5  # approximate duration of sending
_PATIENCE = 30.0


def find() -> tuple[str, dict[str, str]] | None:
    """ucx_perftest and the variables that it needs. It belongs to the UCX that the build uses, or else to the
    system's. None if there is neither."""
    spec = importlib.util.find_spec("libucx")
    for root in map(Path, spec.submodule_search_locations or [] if spec else []):
        if os.access(root / "bin/ucx_perftest", os.X_OK):
            return str(root / "bin/ucx_perftest"), {"LD_LIBRARY_PATH": str(root / "lib")}
    found = shutil.which("ucx_perftest")
    return (found, {}) if found else None


def of_network(nodes: list[Node], rate: int | None) -> float:
    """Bytes per second over the network, between the machines on which devices run."""
    sender, receiver = (node.dpu or node for node in nodes[:2])
    address = network.device_address(nodes[1].index) if nodes[1].dpu else network.node_address(nodes[1].index)
    return bandwidth(sender, receiver, address, network.INTERFACE, rate)


def of_host_device_link(node: Node, rate: int | None) -> float:
    """Bytes per second from a host to its device."""
    return bandwidth(
        node, node.device, network.pcie_address(node.index, of_device=True), network.PCIE_INTERFACE, rate
    )


def bandwidth(sender: Node, receiver: Node, address: str, interface: str, rate: int | None) -> float:
    tool = find()
    if tool is None:
        raise OffpathError(Code.NOT_INSTALLED, "ucx_perftest is missing", "run scripts/setup.sh")
    program, variables = tool
    environment = (
        dict(os.environ)
        | variables
        | {"UCX_TLS": "tcp", "UCX_NET_DEVICES": interface, "UCX_WARN_UNUSED_ENV_VARS": "n"}
    )
    iterations = 50 if rate is None else max(8, min(500, int(rate / 8 * _SECONDS / _MESSAGE)))
    arguments = ["-t", "ucp_am_bw", "-s", str(_MESSAGE), "-n", str(iterations), "-w", "2", "-f", "-v"]
    server = subprocess.Popen(
        receiver.command([program, "-p", str(_PORT)]),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                done = subprocess.run(
                    sender.command([program, address, "-p", str(_PORT), *arguments]),
                    env=environment,
                    capture_output=True,
                    text=True,
                    stdin=subprocess.DEVNULL,
                    timeout=max(1.0, deadline - time.monotonic()),
                )
            except subprocess.TimeoutExpired as error:
                raise OffpathError(
                    Code.JOB_FAILED, f"ucx_perftest over {interface} did not end within {_PATIENCE:g} s"
                ) from error
            if done.returncode == 0:
                return parse(done.stdout)
            if server.poll() is not None or time.monotonic() > deadline:
                raise OffpathError(
                    Code.JOB_FAILED,
                    f"ucx_perftest over {interface} failed: {(done.stderr or done.stdout).strip()}",
                )
            time.sleep(0.1)  # the server does not listen yet
    finally:
        server.kill()
        server.wait()


def parse(text: str) -> float:
    """Bytes per second in the CSV that ucx_perftest prints in units of 2^20 bytes per second."""
    lines = [line.strip() for line in text.strip().splitlines()]
    header = next((index for index, line in enumerate(lines) if "overall_bw" in line), None)
    if header is None or header + 1 >= len(lines):
        raise OffpathError(Code.WRONG_RESULTS, f"ucx_perftest printed no bandwidth: {text.strip()!r}")
    values = dict(zip(lines[header].split(","), lines[-1].split(","), strict=False))
    return float(values["overall_bw"]) * 2**20
