"""Labs whose devices are machines of their own: links, isolation, keys. A small program stands in for
offpathd, so that no build is needed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import command, environment, eventually, traces

pytestmark = pytest.mark.usefixtures("namespaces")

LINK, PCIE = 100e6, 400e6

# Listens on the host-device link for its host, and on the network for everybody. Sends on either what is
# requested.
DEVICE = """
import argparse, hashlib, json, os, socket, threading
parser = argparse.ArgumentParser()
for name in ("--dir", "--listen", "--name", "--host-devices", "--net-devices", "--cpus",
             "--log-file", "--log-level", "--allow-kernels"):
    parser.add_argument(name, required=True)
parser.add_argument("--allow-images", action="store_true", required=True)
for name in ("--key-fd", "--ready-fd"):
    parser.add_argument(name, type=int, required=True)
options = parser.parse_args()
key = os.fdopen(options.key_fd, "rb").read()
about = {"host": socket.gethostname(), "name": options.name,
         "interfaces": sorted(os.listdir("/sys/class/net")),
         "key": hashlib.sha256(key).hexdigest(), "link": options.host_devices, "network": options.net_devices,
         "cpus": sorted(os.sched_getaffinity(0)),
         "group": open("/proc/self/autogroup").read() if os.path.exists("/proc/self/autogroup") else None}

def serve(server):
    while True:
        connection = server.accept()[0]
        size = int(connection.recv(100))
        connection.sendall(json.dumps(about).encode() + b"\\n" + b"x" * size)
        connection.close()

address, _, port = options.listen.rpartition(":")
own = socket.create_server((address, int(port)))
network = socket.create_server((socket.gethostbyname(socket.gethostname()), 5001))
threading.Thread(target=serve, args=(network,)).start()
os.write(options.ready_fd, b"1")
os.close(options.ready_fd)
serve(own)
"""

# Rank 2 sends. The others fetch from it and from its device at the same time. Rank 0 first asks its own
# device, and tries those of others.
RANK = """
import errno, hashlib, json, os, socket, sys, time
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
said = {"rank": rank, "interfaces": sorted(os.listdir("/sys/class/net")),
        "group": open("/proc/self/autogroup").read() if os.path.exists("/proc/self/autogroup") else None}

def fetch(address, size):
    for attempt in range(1000):
        try:
            connection = socket.create_connection(address, 60)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    # All bytes cross the link after this moment.
    start, got = time.time(), 0
    connection.sendall(b"%d" % size)
    stream = connection.makefile("rb")
    about = stream.readline()
    while data := stream.read1(1 << 20):
        got += len(data)
    return json.loads(about), {"bytes": got, "start": start, "end": time.time()}

def reach(host, port):
    try:
        socket.create_connection((host, port), 20).close()
        return "reached"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))

devices = dict(line.split() for line in open(os.environ["OFFPATH_DEVICES"][1:]))
key = open(os.environ["OFFPATH_KEY_FILE"], "rb").read()
if rank == 0:
    host, _, port = devices["node0"].rpartition(":")
    said["device"], said["pcie"] = fetch((host, int(port)), 20_000_000)
    said["mode"] = oct(os.stat(os.environ["OFFPATH_KEY_FILE"]).st_mode & 0o777)
    said["key"] = hashlib.sha256(key).hexdigest()
    others = devices["node1"].rpartition(":")[0]
    said["others_link"] = reach(others, int(port))
    said["others_port_on_the_network"] = reach("node1-dpu", int(port))
    said["others_network"] = reach("node1-dpu", 5001)
    said["leaks"] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()
        except OSError:
            continue
        if key in text:
            said["leaks"].append(pid)
if rank == 2:
    with socket.create_server(("0.0.0.0", 5000)) as server:
        connection = server.accept()[0]
        connection.recv(100)
        connection.sendall(b"{}\\n" + b"x" * 8_000_000)
        connection.close()
else:
    said["network"] = fetch([("node2", 5000), ("node2-dpu", 5001)][rank], 8_000_000)[1]
print(json.dumps(said))
"""


@pytest.fixture
def stand_in():
    """A build directory with the stand-in for offpathd, readable by everybody."""
    # Not below pytest's own directory: a pytest that starts meanwhile closes that to other users.
    with tempfile.TemporaryDirectory(prefix="offpath-test-") as directory:
        build = Path(directory)
        build.chmod(0o755)
        (build / "bin").mkdir()
        (build / "lib").mkdir()
        (build / "bin/offpathd").write_text(f"#!{sys.executable}\n{DEVICE}")
        (build / "bin/offpathd").chmod(0o755)
        (build / "lib/liboffpath-mpi.so").touch()
        (build / "rank.py").write_text(RANK)
        yield build


def bits_per_s(*transfers: dict) -> float:
    return (
        sum(t["bytes"] for t in transfers)
        * 8
        / (max(t["end"] for t in transfers) - min(t["start"] for t in transfers))
    )


def test_devices_have_machines_links_and_keys_of_their_own(offpath, stand_in, user):
    done = offpath(
        "lab",
        "run",
        "--nodes",
        "3",
        "--dpu",
        "remote",
        "--link",
        "100mbit",
        "--pcie",
        "400mbit",
        "--",
        sys.executable,
        str(stand_in / "rank.py"),
        user=user,
        OFFPATH_BUILD=str(stand_in),
    )
    assert done.returncode == 0, done.stderr
    assert "devices on machines of their own, host-device links of 400mbit" in done.stderr
    first, second, third = sorted(
        (json.loads(line) for line in done.stdout.splitlines()), key=lambda said: said["rank"]
    )
    assert first["interfaces"] == ["lo", "p0", "v0"]
    device = first["device"]
    assert (device["host"], device["name"], device["link"], device["network"]) == (
        "node0-dpu",
        "node0-dpu",
        "p0",
        "v0",
    )
    assert device["interfaces"] == ["lo", "p0", "v0"]
    assert device["key"] == first["key"] and first["mode"] == "0o600" and first["leaks"] == []
    if len(os.sched_getaffinity(0)) > 1:
        assert not set(device["cpus"]) & {0}
    # The scheduler shares cores among all processes of the lab, not first among nodes.
    assert device["group"] == first["group"] == second["group"] == third["group"]
    # Each host reaches its own device over the link. It reaches other devices only over the network, where
    # they do not serve it.
    assert first["others_link"] == "ENETUNREACH"
    assert first["others_port_on_the_network"] == "ECONNREFUSED" and first["others_network"] == "reached"
    # A busy machine moves less, but it can never move more than the rate.
    assert 0 < bits_per_s(first["pcie"]) < 1.05 * PCIE
    # Host and device of node 2 share one uplink, so together they get no more than its rate.
    assert 0 < bits_per_s(first["network"], second["network"]) < 1.06 * LINK


def test_compare_counts_the_network_and_the_host_device_links_apart(offpath, stand_in, tmp_path):
    report = tmp_path / "c.json"
    script = (
        "import json, os, socket\nif os.environ['OFFPATH'] == 'on':\n"
        "    devices = dict(line.split() for line in open(os.environ['OFFPATH_DEVICES'][1:]))\n"
        "    host, _, port = devices[socket.gethostname()].rpartition(':')\n"
        "    connection = socket.create_connection((host, int(port)))\n    connection.sendall(b'3000000')\n"
        "    while connection.recv(1 << 20): pass\n"
    )
    done = offpath(
        "lab",
        "compare",
        "--nodes",
        "2",
        "--runs",
        "1",
        "--dpu",
        "remote",
        "--json",
        str(report),
        "--",
        sys.executable,
        "-c",
        script,
        OFFPATH_BUILD=str(stand_in),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    assert (found["lab"]["dpu"], found["lab"]["link"], found["lab"]["pcie"]) == ("remote", "1gbit", "4gbit")
    host, offloaded = found["runs"]
    for node in host["pcie"]:
        assert node["received"] + node["sent"] < 10_000
    for node in offloaded["pcie"]:
        assert 3_000_000 < node["received"] < 3_200_000 and node["sent"] < 200_000
    for run in (host, offloaded):
        assert all(0 < node["sent"] < 1_000_000 and node["dropped"] == 0 for node in run["wire"]), run["wire"]
    assert "pcie" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_devices_after_a_signal(number, stand_in):
    marker = f"devices-{os.getpid()}-{number}"
    lab = subprocess.Popen(
        command(
            "lab",
            "run",
            "-q",
            "--nodes",
            "2",
            "--dpu",
            "remote",
            "--",
            "sh",
            "-c",
            "echo up; exec sleep 1000",
        ),
        env=environment(MARKER=marker, OFFPATH_BUILD=str(stand_in)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert lab.stdout.readline() == "up\n"
    assert sum("offpathd" in line for line in traces(marker)) == 2
    lab.send_signal(number)
    assert lab.wait(60) == {signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert eventually(lambda: not traces(marker)), traces(marker)
    assert not list(Path("/dev/shm").glob("offpath-lab*"))


def test_missing_aarch64_build_is_named(offpath, stand_in):
    done = offpath(
        "lab",
        "run",
        "--dpu",
        "aarch64",
        "--",
        "true",
        OFFPATH_BUILD=str(stand_in),
        OFFPATH_BUILD_AARCH64=str(stand_in / "none"),
    )
    assert done.returncode == 2 and "run make aarch64" in done.stderr


# What offpathd --info prints on a machine with the interfaces that it is asked about.
INFO = """
import json, os, socket, sys
interface = sys.argv[sys.argv.index("--net-devices") + 1]
print(json.dumps({"node": socket.gethostname(), "attach": "local",
                  "ucx": {"transports": ["tcp/" + interface, "self/memory"]},
                  "back_ends": [{"name": "map", "available": True}, {"name": "staged", "available": True}]}))
"""


def test_info_shows_both_links_of_a_lab_as_the_kernel_has_them(offpath, stand_in):
    (stand_in / "bin/offpathd").write_text(f"#!{sys.executable}\n{INFO}")
    done = offpath(
        "info",
        "--nodes",
        "2",
        "--link",
        "300mbit",
        "--pcie",
        "900mbit",
        "--dpu",
        "remote",
        "--json",
        OFFPATH_BUILD=str(stand_in),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(link["name"], link["rate_bits_per_s"]) for link in found["links"]] == [
        ("network", 300e6),
        ("host-device", 900e6),
    ]
    assert [(d["node"], d["attach"], d["device"], d["address"]) for d in found["devices"]] == [
        ("node0", "remote", "node0-dpu", "10.78.0.2:7471"),
        ("node1", "remote", "node1-dpu", "10.78.1.2:7471"),
    ]
    assert found["node"] == "node0-dpu" and found["ucx"]["host_device_transports"] == ["tcp/p0"]
    assert [(b["name"], b["available"]) for b in found["back_ends"]] == [("map", False), ("staged", True)]
    done = offpath("info", "--dpu", "local", "--link", "300mbit", OFFPATH_BUILD=str(stand_in))
    assert done.returncode == 0 and "300mbit" in done.stdout and "host-device" not in done.stdout
    done = offpath("info", "--dpu", "remote", "--devices", "a", OFFPATH_BUILD=str(stand_in))
    assert done.returncode == 2 and "--devices" in done.stderr
