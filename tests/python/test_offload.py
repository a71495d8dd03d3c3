"""Offloading in a lab and on this machine, with the build under test."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import command, environment, eventually, free_port, traces
from offpath import mpi_library
from offpath.errors import OffpathError

MEGA = 2**20
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture
def bench(build):
    return str(build.program("offpath-bench-mpi"))


def exchange_a_megabyte(offpath, bench, tmp_path, *lab, user=None):
    """Five exchanges on two nodes, on the host's MPI and on the device. Returns what is reported of both."""
    report = tmp_path / "c.json"
    program = [bench, "latency", "--op", "ialltoall", "--bytes", "1M"]
    counts = ["--iterations", "4", "--warmup", "1", "--json", "-"]
    settings = ["--nodes", "2", *lab, "--runs", "1", "--json", str(report)]
    done = offpath("lab", "compare", *settings, "--", *program, *counts, user=user)
    assert done.returncode == 0, done.stderr
    host, offloaded = json.loads(report.read_text())["runs"]
    assert host["results"]["verified"] and offloaded["results"]["verified"]
    return host, offloaded


def test_offloaded_data_is_right_and_crosses_the_links(offpath, namespaces, bench, tmp_path):
    host, offloaded = exchange_a_megabyte(offpath, bench, tmp_path, "--link", "unlimited")
    assert re.match(r"offpath: offloaded [1-9]", offloaded["summary_line"])
    assert offloaded["device_cpu_s"] is not None
    for run in (host, offloaded):
        for node in run["wire"]:
            # Five exchanges of 1 MiB, and little else: there is no other path from node to node.
            assert 5 * MEGA < node["sent"] < 6 * MEGA


def test_remote_devices_move_the_same_bytes_and_the_links_are_counted_apart(offpath, namespaces, bench, user):
    # Not below pytest's own directory: a pytest that starts meanwhile closes that to other users.
    with tempfile.TemporaryDirectory(prefix="offpath-test-") as directory:
        Path(directory).chmod(0o777)
        host, offloaded = exchange_a_megabyte(
            offpath, bench, Path(directory), "--link", "1gbit", "--dpu", "remote", user=user
        )
    assert re.match(r"offpath: offloaded [1-9].*staged", offloaded["summary_line"])
    for node in host["wire"] + offloaded["wire"]:
        assert 5 * MEGA < node["sent"] < 6 * MEGA
    for node in offloaded["pcie"]:
        # The traffic to and from the network, and little else except the rank's own block.
        assert 5 * MEGA < node["sent"] < 11 * MEGA and 5 * MEGA < node["received"] < 11 * MEGA
    assert all(node["sent"] < 10_000 for node in host["pcie"])


OTHER_MPI = pytest.mark.other_mpi


# Those messages of mpi_p2p_calls_test that must arrive at a busy receiver go to the next rank, on another
# node.
@pytest.mark.parametrize(
    ("nodes", "ranks_per_node", "dpu", "program", "arguments", "carried"),
    [
        (3, 1, "remote", "mpi_p2p_calls_test", [], "point-to-point messages"),
        (2, 2, "local", "mpi_p2p_random_test", ["5", "20"], "point-to-point messages"),
        (2, 2, "local", "mpi_rma_random_test", ["1", "12", "host"], "windows"),
        (2, 2, "remote", "mpi_rma_random_test", ["1", "12", "host"], "windows"),
        # Several ranks of MPICH on one core take turns of milliseconds, without offpath, too.
        pytest.param(
            *(2, 1, "local", "mpich_p2p_random_test", ["5", "5"], "point-to-point messages"), marks=OTHER_MPI
        ),
        pytest.param(*(2, 1, "remote", "mpich_rma_random_test", [], "windows"), marks=OTHER_MPI),
    ],
)
def test_messages_and_windows_are_right_between_nodes(
    offpath, namespaces, build, nodes, ranks_per_node, dpu, program, arguments, carried
):
    """The host's MPI carries messages inside a node, the device those between nodes: all of them, and not
    only where trials show a gain. Windows use the faster path."""
    if program.startswith("mpich") and shutil.which("mpiexec.mpich") is None:
        pytest.skip("MPICH is not installed")
    settings = [
        "--nodes",
        str(nodes),
        "--ranks-per-node",
        str(ranks_per_node),
        "--env",
        "OFFPATH_MIN_BYTES=2000",
        "--env",
        "OFFPATH_P2P_WAITED=device",
    ]
    done = offpath("lab", "run", "--dpu", dpu, *settings, "--", str(build.program(program)), *arguments)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^offpath: .*[1-9][0-9]* {carried}", done.stderr, re.MULTILINE), done.stderr


WINDOWS = """
from array import array
from mpi4py import MPI

assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
memory = array("d", [-1.0] * 1000)
data = array("d", [float(rank)] * 1000)
win = MPI.Win.Create(memory, 8, comm=comm)
win.Fence()
win.Put(data, (rank + 1) % size)
win.Fence()
assert memory[999] == (rank - 1) % size
assert win.group.size == size and len(win.tomemory()) == 8000
win.Free()
win = MPI.Win.Allocate(800, 8, comm=comm)
win.Lock_all()
win.Accumulate(data[:100], 0, op=MPI.SUM)
win.Unlock_all()
comm.Barrier()
win.Lock(rank)
assert sum(memoryview(win.tomemory()).cast("d")) == (100 * sum(range(size)) if rank == 0 else 0)
win.Unlock(rank)
win.Free()
win = MPI.Win.Create_dynamic(comm=comm)
win.Attach(memory)
there = comm.alltoall([MPI.Get_address(memory)] * size)
win.Lock(0)
win.Put(data[:10], 0, MPI.Aint_add(there[0], 80 * rank))
win.Unlock(0)
comm.Barrier()
assert rank != 0 or all(memory[10 * r] == r for r in range(size))
win.Detach(memory)
win.Free()
"""


@pytest.mark.parametrize("one_sided", ["rdma,sm,pt2pt", "sm,pt2pt"])
def test_windows_of_mpi4py_need_no_option(offpath, namespaces, build, tmp_path, one_sided):
    """mpi4py starts with MPI_THREAD_MULTIPLE, where Open MPI 4.1 has no windows between nodes. The test also
    uses Open MPI's default order of one-sided components."""
    if (
        subprocess.run(
            ["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True, check=False
        ).returncode
        != 0
    ):
        pytest.skip("the system's Python has no mpi4py")
    (tmp_path / "windows.py").write_text(WINDOWS)
    done = offpath(
        "lab",
        "run",
        "--nodes",
        "2",
        "--mca",
        f"osc={one_sided}",
        "--",
        "/usr/bin/python3",
        str(tmp_path / "windows.py"),
    )
    assert done.returncode == 0, done.stderr
    assert "3 of 3 windows altogether there" in done.stderr


def test_aarch64_devices_serve_ranks_of_another_architecture(offpath, namespaces, bench, build):
    try:
        build.device("aarch64")
    except OffpathError as error:
        pytest.skip(f"{error}: {error.hint}")
    job = [bench, "latency", "--op", "ialltoall", "--bytes", "256K", "--iterations", "3", "--json", "-"]
    done = offpath("lab", "run", "--nodes", "2", "--dpu", "aarch64", "--", *job)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] and re.search(
        r"^offpath: offloaded [1-9].*staged", done.stderr, re.MULTILINE
    )
    assert "aarch64 devices" in done.stderr


def test_staging_benchmark_writes_the_rows_that_scripts_read(offpath, namespaces, build, tmp_path):
    report, picture = tmp_path / "s.json", tmp_path / "s.png"
    done = offpath(
        "bench",
        "staging",
        "--sizes",
        "64,1M",
        "--runs",
        "1",
        "--seconds",
        "0.01",
        "--json",
        str(report),
        "--plot",
        str(picture),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    rows = found["rows"]
    # The links' rates are 2 and 8 gbit. The buckets' bursts and other work on the machine change what is
    # measured.
    for name, rate in (("network", 2e9), ("host-device", 8e9)):
        assert 0 < found["raw_links"][name]["bandwidth_Bps"] < rate / 8 * 1.2
    assert [(row["path"], row["bytes"], row["back_end"]) for row in rows] == [
        ("direct", 64, "map"),
        ("direct", MEGA, "map"),
        ("staged", 64, "staged"),
        ("staged", MEGA, "staged"),
    ]
    assert all(row["latency_s"] > 0 and 0 < row["bandwidth_Bps"] < 2e9 / 8 * 1.1 for row in rows)
    assert picture.read_bytes().startswith(b"\x89PNG")
    done = offpath("bench", "staging", "--nodes", "3")
    assert done.returncode == 2 and "two nodes" in done.stderr


def test_run_uses_devices_that_it_starts_and_devices_that_run(offpath, bench, build, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    job = [
        "mpirun",
        "--oversubscribe",
        "-n",
        "2",
        bench,
        "latency",
        "--op",
        "ialltoall",
        "--bytes",
        "1M",
        "--iterations",
        "3",
        "--json",
        "-",
    ]
    root = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "MARKER": f"devices-{os.getpid()}",
    }
    port = free_port()
    done = offpath(
        "run",
        "--devices",
        f"127.0.0.1:{port}",
        "--agent",
        str(agent),
        "--device-daemon",
        str(build.daemon),
        "--",
        *job,
        **root,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] and re.search(
        r"^offpath: offloaded [1-9].*staged", done.stderr, re.MULTILINE
    )
    assert eventually(lambda: not traces(root["MARKER"])), traces(root["MARKER"])

    key, wrong = tmp_path / "key", tmp_path / "wrong"
    for file in (key, wrong):
        file.write_bytes(os.urandom(32))
        file.chmod(0o600)
    ready, write = os.pipe()
    daemon = subprocess.Popen(
        [
            build.daemon,
            "--listen",
            f"127.0.0.1:{port}",
            "--key-file",
            key,
            "--ready-fd",
            str(write),
            "--log-level",
            "off",
        ],
        pass_fds=(write,),
    )
    try:
        os.close(write)
        assert os.read(ready, 1) == b"1"
        found = json.loads(offpath("info", "--devices", f"here=127.0.0.1:{port}", "--json").stdout)
        assert found["devices"][0]["reachable"] and "protocol version" in found["devices"][0]["state"]
        done = offpath("run", "--devices", f"127.0.0.1:{port}", "--key-file", str(key), "--", *job, **root)
        assert done.returncode == 0 and re.search(r"^offpath: offloaded [1-9]", done.stderr, re.MULTILINE), (
            done.stderr
        )
        done = offpath("run", "--devices", f"127.0.0.1:{port}", "--key-file", str(wrong), "--", *job, **root)
        assert (
            "not authenticated" in done.stderr
            and "OFFPATH_KEY_FILE" in done.stderr
            and "offpath: offloaded" not in done.stderr
        ), done.stderr
    finally:
        os.close(ready)
        daemon.terminate()
        assert daemon.wait(10) == 0


def test_overlap_benchmark_writes_the_rows_that_scripts_read(offpath, namespaces, bench, build, tmp_path):
    report, picture = tmp_path / "o.json", tmp_path / "o.png"
    done = offpath(
        "bench",
        "overlap",
        "--nodes",
        "2",
        "--link",
        "2gbit",
        "--ops",
        "ibcast",
        "--sizes",
        "1M",
        "--runs",
        "1",
        "--iterations",
        "3",
        "--json",
        str(report),
        "--plot",
        str(picture),
    )
    assert done.returncode == 0, done.stderr
    engines = ["host", "offpath", "host+thread", "host+core"]
    if build.root.joinpath("bin/offpath-bench-mpi-mpich").exists():
        engines += ["mpich", "mpich+core+thread"]
    assert f"0 of {1 + len(engines)} done; ibcast 1M: calibration" in done.stderr
    rows = json.loads(report.read_text())["rows"]
    assert [row["engine"] for row in rows] == engines
    for row in rows:
        assert (row["op"], row["bytes"]) == ("ibcast", MEGA)
        assert row["wire_s"] == pytest.approx(MEGA * 8 / 2e9)
        assert min(row["pure_s"], row["compute_s"], row["total_s"]) > 0
        assert row["overlap_percent"] == pytest.approx(
            max(0, 100 * (1 - (row["total_s"] - row["compute_s"]) / row["pure_s"]))
        )
    assert rows[0]["work_units"] == rows[1]["work_units"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_run_offloads_an_ordinary_job_and_cleans_up(offpath, bench, short_folder):
    launcher = ["mpirun", "--oversubscribe", "-n", "2"]
    arguments = ["latency", "--op", "ialltoall", "--bytes", "1M", "--iterations", "3", "--json", "-"]
    marker = f"run-{os.getpid()}"
    done = offpath(
        "run",
        "--",
        *launcher,
        bench,
        *arguments,
        MARKER=marker,
        TMPDIR=str(short_folder),
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"]
    assert re.search(r"^offpath: offloaded [1-9]", done.stderr, re.MULTILINE)
    assert eventually(lambda: not traces(marker)), traces(marker)
    assert not list(short_folder.glob("offpath-run-*"))


def test_the_summary_as_a_file_counts_calls_by_communicator(offpath, bench, tmp_path):
    job = ["mpirun", "--oversubscribe", "-n", "3", bench, "latency", "--op", "ialltoall", "--bytes", "1M"]
    counts = ["--iterations", "3", "--warmup", "1", "--json", "-"]
    file = tmp_path / "summary.json"
    done = offpath("run", "--", *job, *counts, **ROOT, OFFPATH_SUMMARY=str(file))
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    row = next(row for row in found["calls"] if row["call"] == "MPI_Ialltoall")
    assert row["communicator"] == "MPI_COMM_WORLD" and row["ranks"] == found["ranks"] == 3
    # Each of 4 calls brings a block of every pair of ranks.
    assert row["offloaded"] == 4 and row["bytes_from_others"] == 4 * 3 * 2 * MEGA
    printed = re.search(r"^offpath: offloaded (\d+) of (\d+) collectives", done.stderr, re.MULTILINE)
    on_host = sum(found["collectives"]["on_host"].values())
    assert printed and [int(n) for n in printed.groups()] == [
        found["collectives"]["offloaded"],
        found["collectives"]["offloaded"] + on_host,
    ]
    assert sum(row["offloaded"] for row in found["calls"]) == found["collectives"]["offloaded"]
    # All ranks have the same proxy, so nothing comes from another one.
    assert found["received_by_devices"] == {"direct": 0, "copied_once": 0, "copied_more_often": 0}
    for kind in ("least_bytes", "most_bytes"):
        assert row[kind] == MEGA
    assert "would have had work" not in done.stderr


def test_a_summary_that_cannot_be_written_ends_the_job_at_its_start(offpath, bench, tmp_path):
    file = tmp_path / "missing" / "summary.json"
    job = ["mpirun", "--oversubscribe", "-n", "2", bench, "latency", "--op", "ialltoall", "--bytes", "8"]
    done = offpath("run", "--", *job, **ROOT, OFFPATH_SUMMARY=str(file))
    assert done.returncode != 0 and f"OFFPATH_SUMMARY={file} cannot be written" in done.stderr


HINTS = {
    "collectives": (["latency", "--op", "ialltoall", "--bytes", "9K"], {"OFFPATH_MIN_BYTES": "8K"}),
    "messages": (["latency", "--op", "isend", "--bytes", "256K"], {"OFFPATH_P2P": "all"}),
    "windows": (["rma", "--op", "put", "--bytes", "1K"], {"OFFPATH_RMA": "both"}),
    "nothing": (["latency", "--op", "ialltoall", "--bytes", "8"], {}),
}


@pytest.mark.parametrize(("arguments", "setting"), HINTS.values(), ids=HINTS)
def test_a_job_that_offloads_nothing_is_told_what_would_change_that(offpath, bench, arguments, setting):
    job = ["mpirun", "--oversubscribe", "-n", "2", bench, *arguments, "--iterations", "2", "--json", "-"]
    done = offpath("run", "--", *job, **ROOT)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "would have had work with" in line]
    (expected,) = [f"{name}={value} for " for name, value in setting.items()] or [None]
    assert len(told) == (1 if expected else 0) and (not expected or expected in told[0]), done.stderr
    if expected:
        applied = offpath("run", "--", *job, **ROOT, **setting)
        assert applied.returncode == 0 and "would have had work" not in applied.stderr, applied.stderr
        assert _summary(applied.stderr) != _summary(done.stderr)


def _summary(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("offpath:")]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_program_that_looks_mpi_up_by_itself_is_told_why_nothing_is_offloaded(offpath, build, ranks):
    library = next(name for name, _ in mpi_library._needs(build.mpi_preload) if mpi_library.kind_of(name))
    program = f"import ctypes; m = ctypes.CDLL({library!r}); m.MPI_Init(None, None); m.MPI_Finalize()"
    job = ["mpirun", "--oversubscribe", "-n", str(ranks), sys.executable, "-c", program]
    done = offpath("run", "--mpi", "openmpi", "--", *job, **ROOT)
    assert done.returncode == 0, done.stderr
    passed_by = done.stderr.count("the program's calls of MPI pass offpath by")
    assert (passed_by, "there was nothing to do" in done.stderr) == ((1, False) if ranks > 1 else (0, True))


def test_a_long_tmpdir_does_not_switch_offload_off(offpath, bench, tmp_path):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    # Open MPI's own sockets need a short path, too.
    own = {"OMPI_MCA_orte_tmpdir_base": "/tmp", "TMPDIR": str(folder)}
    job = ["mpirun", "--oversubscribe", "-n", "2", bench, "latency", "--op", "ialltoall", "--bytes", "1M"]
    done = offpath("run", "--", *job, "--iterations", "2", "--json", "-", **ROOT, **own)
    assert done.returncode == 0 and "offpath: offloaded" in done.stderr, done.stderr


def test_a_device_that_cannot_start_says_why_though_its_log_is_gone(offpath, bench):
    # The daemon refuses what the command does not check, since the ranks set it.
    program = ["env", "OFFPATH_SPIN_US=x", bench, "latency", "--op", "ialltoall", "--bytes", "8"]
    done = offpath("run", "--", "mpirun", "--oversubscribe", "-n", "2", *program, "--json", "-", **ROOT)
    assert done.returncode == 0 and "no device worked; the last log lines" in done.stderr, done.stderr
    assert "--spin-us" in done.stderr and "nothing to do" not in done.stderr
    assert "no daemon could be started" in done.stderr and "OFFPATH_AUTOSTART=1" not in done.stderr


def test_few_descriptors_are_enough_to_start_a_device(build):
    job = "mpirun --oversubscribe -n 2 {} latency --op ialltoall --bytes 1M --iterations 2 --json -"
    line = f'ulimit -n 64; exec "$@" -- {job.format(build.program("offpath-bench-mpi"))}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *command("run")],
        env=environment(**ROOT), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "offpath: offloaded" in done.stderr, done.stderr


def test_there_is_something_to_do_if_attaching_fails(offpath, bench):
    program = ["env", "OFFPATH_DAEMON=/nonexistent", bench, "latency", "--op", "ialltoall", "--bytes", "8"]
    done = offpath("run", "--", "mpirun", "--oversubscribe", "-n", "2", *program, "--json", "-", **ROOT)
    assert done.returncode == 0 and "names no program" in done.stderr, done.stderr
    assert "nothing to do" not in done.stderr


def test_run_passes_the_exit_code_on_and_preloads_ranks_only(offpath, build):
    done = offpath(
        "run",
        "--",
        "mpirun",
        "--oversubscribe",
        "-n",
        "1",
        "sh",
        "-c",
        "echo $LD_PRELOAD; exit 5",
        LD_PRELOAD="",
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )
    assert done.returncode == 5 and done.stdout.strip() == str(build.mpi_preload)


def test_info_names_back_ends_and_transports(offpath, build):
    found = json.loads(offpath("info", "--json").stdout)
    assert found
    shown = offpath("info")
    assert shown.returncode == 0
    for name in ("map", "cma", "staged", "tcp"):
        assert name in shown.stdout


def test_info_refuses_a_daemon_that_talks_nonsense(offpath, tmp_path):
    (tmp_path / "bin").mkdir()
    daemon = tmp_path / "bin/offpathd"
    daemon.write_text("#!/bin/sh\necho nonsense\n")
    daemon.chmod(0o755)
    done = offpath("info", OFFPATH_BUILD=str(tmp_path))
    assert done.returncode == 2 and "nonsense" in done.stderr


def test_the_summary_names_the_back_end_of_memory_that_the_device_maps(offpath, build):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OFFPATH_MIN_BYTES": "0"}
    job = [
        "mpirun",
        "--oversubscribe",
        "-n",
        "2",
        str(build.program("fft3d")),
        "--n",
        "64",
        "--iterations",
        "1",
    ]
    for allocator, told in (
        ("mpi", r"device back end \w+, map for memory of MPI_Alloc_mem\n"),
        ("malloc", r"device back end \w+\n"),
    ):
        done = offpath("run", "--", *job, "--alloc", allocator, **root)
        assert done.returncode == 0 and re.search(told, done.stderr), done.stderr
    done = offpath("run", "--", *job[:-1], "8", **root, OFFPATH_VERBOSE="2")
    told = r"rank 0 shared [1-9][0-9.]* MiB of its ordinary memory with its device\n"
    assert done.returncode == 0 and re.search(told, done.stderr), done.stderr
