"""Labs with real namespaces, links and mpirun. They use only the host's MPI, so no build is needed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from conftest import command, environment, eventually, traces
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError
from offpath.lab import cgroup, cluster, launcher, mpi, owner

pytestmark = pytest.mark.usefixtures("namespaces")

SENDER = """
import json, os, socket, sys, time
size = 50_000_000
if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    with socket.create_server(("0.0.0.0", 5000)) as server:
        connection = server.accept()[0]
        got = 0
        while got < size and (data := connection.recv(1 << 20)):
            got += len(data)
        connection.sendall(b"%d" % got)
else:
    for attempt in range(100):
        try:
            connection = socket.create_connection(("10.77.0.1", 5000))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    # All bytes cross the link between these two moments.
    start = time.monotonic()
    connection.sendall(b"x" * size)
    got = int(connection.recv(100))
    print(json.dumps({"bits_per_s": got * 8 / (time.monotonic() - start), "bytes": got}))
"""


def test_nodes_have_names_and_networks_of_their_own(offpath, user):
    done = offpath(
        "lab",
        "run",
        "--nodes",
        "2",
        "--ranks-per-node",
        "2",
        "--offload",
        "off",
        "--",
        "sh",
        "-c",
        "echo $(hostname) $(ls /sys/class/net)",
        user=user,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "node0 lo v0", "node0 lo v0", "node1 lo v0", "node1 lo v0"]
    assert "2 nodes x 2 ranks" in done.stderr


def test_links_are_shaped_where_path_has_no_sbin(offpath, user):
    """As an ordinary user's PATH on Debian, where `tc` is in /usr/sbin."""
    arguments = ["--nodes", "2", "--link", "1gbit", "--offload", "off", "--", "true"]
    done = offpath("lab", "run", *arguments, user=user, PATH="/usr/local/bin:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr


def test_machines_know_their_neighbours_and_learn_none(offpath):
    """All namespaces share the kernel's table of learnt neighbours. 33 nodes that learn each
    other overflow it."""
    # A machine learns another one when it communicates with it, so each rank tries a connection to every
    # node.
    script = (
        "for i in 1 2 3; do (exec 3<>/dev/tcp/10.77.0.$i/1); done 2>/dev/null; ip -4 neigh show | awk '/PERM/"
        " {p++} END {print p+0, NR-p}'"
    )
    done = offpath("lab", "run", "-q", "--nodes", "3", "--offload", "off", "--", "bash", "-c", script)
    assert done.stdout.split("\n") == ["3 0"] * 3 + [""], done.stdout + done.stderr


def test_exit_code_is_the_programs(offpath):
    done = offpath("lab", "run", "-q", "--nodes", "2", "--offload", "off", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7


def test_ranks_run_on_host_cores_and_see_the_given_variables(offpath):
    script = "taskset -pc $$ | sed 's/.*: //'; echo $COLOR; echo $OFFPATH"
    done = offpath(
        "lab", "run", "--nodes", "1", "--offload", "off", "--env", "COLOR=dark blue", "--", "sh", "-c", script
    )
    cores, color, switch = done.stdout.splitlines()
    assert color == "dark blue" and switch == "off"
    if len(os.sched_getaffinity(0)) > 1:
        assert f"host ranks on core{'s' if len(cores) > 1 else ''} {cores}, devices on" in done.stderr


def test_link_carries_no_more_than_its_rate(offpath, tmp_path):
    (tmp_path / "sender.py").write_text(SENDER)
    done = offpath(
        "lab",
        "run",
        "-q",
        "--nodes",
        "2",
        "--link",
        "200mbit",
        "--offload",
        "off",
        "--",
        sys.executable,
        str(tmp_path / "sender.py"),
    )
    measured = json.loads(done.stdout)
    assert measured["bytes"] == 50_000_000
    # The payload is compared with the link's rate. Headers take 0.8 %, and the bucket's first burst adds to
    # the rate. A busy machine moves less, but it can never move more than the rate.
    assert 0 < measured["bits_per_s"] < 1.05 * 200e6


def test_compare_gives_medians_of_the_programs_numbers_and_the_bytes_on_the_wire(offpath, tmp_path):
    report, picture = tmp_path / "c.json", tmp_path / "c.png"
    script = """[ $OMPI_COMM_WORLD_RANK != 0 ] || echo '{"total_s": 0.25, "answer": 42, "verified": true}'"""
    done = offpath(
        "lab",
        "compare",
        "--nodes",
        "2",
        "--runs",
        "2",
        "--engines",
        "host,host+core",
        "--json",
        str(report),
        "--plot",
        str(picture),
        "--",
        "sh",
        "-c",
        script,
    )
    assert done.returncode == 0, done.stderr
    assert "total_s" in done.stdout and "verified by the program" in done.stdout
    found = json.loads(report.read_text())
    assert [(r["engine"], r["run"]) for r in found["runs"]] == [
        ("host", 0),
        ("host+core", 0),
        ("host", 1),
        ("host+core", 1),
    ]
    assert found["summary"]["total_s"]["host+core"]["ratio"] == 1.0
    assert found["summary"]["wall_s"]["host"]["median"] > 0
    assert all(node["sent"] > 0 for r in found["runs"] for node in r["wire"])
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(shutil.which("mpiexec.mpich") is None, reason="MPICH is not installed")
def test_compare_runs_the_build_with_mpich_beside_the_program(offpath, tmp_path):
    """MPICH's launcher, which its text identifies, starts the twin, with that library's progress thread and
    the device's cores on request."""
    program, report = tmp_path / "program", tmp_path / "c.json"
    program.write_text(
        """#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK != 0 ] || echo '{"total_s": 4, "cores": "same"}'\n"""
    )
    tmp_path.joinpath("program-mpich").write_text(
        """#!/bin/sh\n: mpiexec.mpich\n[ $PMI_RANK = 0 ] || exit 0\n"""
        """[ "$MPIR_CVAR_ASYNC_PROGRESS" = 1 ] && t=1 || t=2\n"""
        """echo "$t $(nproc)" >>"$0.seen"; echo "{\\"total_s\\": $t, \\"cores\\": \\"same\\"}"\n"""
    )
    for file in (program, tmp_path / "program-mpich"):
        file.chmod(0o755)
    done = offpath(
        "lab",
        "compare",
        "--nodes",
        "1",
        "--runs",
        "2",
        "--engines",
        "host,mpich,mpich+core+thread",
        "--json",
        str(report),
        "--",
        str(program),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())["summary"]["total_s"]
    assert (
        found["mpich"]["ratio"],
        found["mpich+core+thread"]["ratio"],
        found["mpich+core+thread"]["ratio_to_alone"],
    ) == (0.5, 0.25, 0.5)
    assert re.search(r"┃ +mpich ┃ ratio ┃ mpich\+core\+thread ┃ ratio ┃ to mpich ┃", done.stdout)
    assert "use --runs 5" in done.stdout  # two runs prove nothing, however far apart
    cores = len(os.sched_getaffinity(0))
    alone, wide = (
        {
            line.split()[1]
            for line in (tmp_path / "program-mpich.seen").read_text().splitlines()
            if line[0] == t
        }
        for t in "21"
    )
    assert wide == {str(cores)} and (cores == 1 or all(int(n) < cores for n in alone))
    done = offpath("lab", "compare", "--nodes", "1", "--engines", "host,mpich", "--", "true")
    assert done.returncode == 2 and "mpich cannot run: there is no true-mpich" in done.stderr


@pytest.mark.skipif(shutil.which("mpiexec.mpich") is None, reason="MPICH is not installed")
@pytest.mark.parametrize(("hangs", "code"), [(2, 0), (3, launcher.TIMED_OUT)])
def test_run_of_mpich_that_does_not_end_is_started_again(tmp_path, monkeypatch, capfd, hangs, code):
    program, real, limits = tmp_path / "program", launcher.run, []

    def run(command, environment, capture_in, timeout, limit):
        """Runs that hang are given up after a second. One that does not hang has all the time it needs."""
        limits.append(limit)
        hung = len(limits) <= hangs
        program.write_text(f"#!/bin/sh\n: mpiexec.mpich\n{'exec sleep 60' if hung else 'echo done'}\n")
        program.chmod(0o755)
        return real(command, environment, capture_in, timeout, 1.0 if hung else 100.0)

    program.write_text("#!/bin/sh\n: mpiexec.mpich\n")
    program.chmod(0o755)
    with cluster.Cluster(cluster.LabSpec(nodes=1), find_artifacts(), namespaced=False) as lab:
        assert lab.run(mpi.HOST, ["true"], capture=True).exit_code == 0
        monkeypatch.setattr(launcher, "run", run)
        result = lab.run(mpi.ENGINES["mpich"], [str(program)], capture=True)
    assert result.exit_code == code and (code or result.stdout == "done\n")
    assert capfd.readouterr().err.count("MPICH did not end within") == 2
    assert len(limits) == 3 and min(limits) >= cluster.MPICH_PATIENCE_S


@pytest.mark.skipif(shutil.which("mpiexec.mpich") is None, reason="MPICH is not installed")
def test_results_count_of_a_run_of_mpich_that_then_hangs(tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text("""#!/bin/sh\n: mpiexec.mpich\necho '{"total_s": 1}'\nexec sleep 60\n""")
    program.chmod(0o755)
    monkeypatch.setattr(launcher, "MPICH_FINALIZE_S", 1.0)
    with cluster.Cluster(cluster.LabSpec(nodes=1), find_artifacts(), namespaced=False) as lab:
        lab.run(mpi.HOST, ["true"], capture=True)
        result = lab.run(mpi.ENGINES["mpich"], [str(program)], capture=True)
    assert (result.exit_code, result.stdout, result.complaints) == (0, '{"total_s": 1}\n', [])


def test_compare_reports_failures_and_differences(offpath):
    # Host ranks see one core and the baseline sees two: the program can print this difference.
    done = offpath(
        "lab",
        "compare",
        "--nodes",
        "1",
        "--runs",
        "1",
        "--engines",
        "host,host+core",
        "--",
        "sh",
        "-c",
        "taskset -pc 0; echo pid $$; exit 3",
    )
    assert done.returncode == 3
    assert "ended with code 3" in done.stderr and "no run succeeded" in done.stderr
    done = offpath(
        "lab", "compare", "--nodes", "1", "--runs", "2", "--engines", "host", "--", "sh", "-c", "date +%N"
    )
    assert done.returncode == 0 and "the text printed is not that of host, run 1" in done.stderr


def test_run_that_takes_too_long_is_ended_with_its_ranks(offpath):
    done = offpath(
        "lab", "run", "-q", "--nodes", "2", "--offload", "off", "--timeout", "1.5", "--", "sleep", "987654"
    )
    assert done.returncode == 124 and "--timeout" in done.stderr
    assert not traces("987654")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(number, user, tmp_path):
    marker = f"seconds-{os.getpid()}-{number}-{user}"
    lab = subprocess.Popen(
        command(
            "lab",
            "run",
            "--nodes",
            "2",
            "--offload",
            "off",
            "--",
            "sh",
            "-c",
            "echo up; exec sleep 1000",
            user=user,
        ),
        env=environment(MARKER=marker),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    owned = owner.mark(lab.pid)
    assert lab.stdout.readline() == "up\n"
    assert len(traces(marker)) > 5
    lab.send_signal(number)
    assert lab.wait(60) == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert eventually(lambda: not traces(marker)), traces(marker)
    assert not list(Path(tempfile.gettempdir()).glob("offpath-lab-*/owner")) and not list(
        Path("/dev/shm").glob("offpath-lab*")
    )
    assert not list(Path("/sys/fs/cgroup").glob(f"*/offpath-lab-{owned}-*"))


def test_lab_whose_first_process_dies_ends_with_an_error():
    marker = f"crash-{os.getpid()}"
    lab = subprocess.Popen(
        command(
            "lab",
            "run",
            "-q",
            "--nodes",
            "2",
            "--offload",
            "off",
            "--",
            "sh",
            "-c",
            "echo up; exec sleep 1000",
        ),
        env=environment(MARKER=marker),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lab.stdout.readline()
    unshare = int(Path(f"/proc/{lab.pid}/task/{lab.pid}/children").read_text().split()[0])
    init = int(Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()[0])
    os.kill(init, signal.SIGKILL)
    assert lab.wait(60) == 137 and "killed from outside" in lab.stderr.read()
    assert eventually(lambda: not traces(marker))


def test_one_node_mode_needs_no_namespaces(offpath):
    done = offpath(
        "lab",
        "run",
        "--nodes",
        "1",
        "--ranks-per-node",
        "2",
        "--no-namespaces",
        "--offload",
        "off",
        "--",
        "hostname",
    )
    assert done.returncode == 0 and done.stdout.split() == [os.uname().nodename] * 2
    assert not list(Path(tempfile.gettempdir()).glob("offpath-lab-*/owner"))
    done = offpath("lab", "run", "--nodes", "2", "--no-namespaces", "--offload", "off", "--", "hostname")
    assert done.returncode == 2 and "--nodes 1" in done.stderr


@pytest.mark.parametrize(
    "arguments, culprit",
    [
        (["--link", "fast", "--", "true"], "fast"),
        (["--nodes", "0", "--", "true"], "--nodes 0"),
        (["--nodes", "999", "--", "true"], "--nodes 999"),
        (["--placement", "odd", "--", "true"], "odd"),
        (["--device-quota", "7", "--", "true"], "'7'"),
        (["--offload", "maybe", "--", "true"], "maybe"),
        (["--env", "X", "--", "true"], "'X'"),
        (["--dpu", "elsewhere", "--", "true"], "elsewhere"),
        (["--dpu", "remote", "--pcie", "quick", "--", "true"], "quick"),
        (
            ["--dpu", "remote", "--nodes", "1", "--no-namespaces", "--", "true"],
            "--dpu remote needs namespaces",
        ),
        (["--", "./no-such-program"], "no-such-program"),
        (["--", "mpirun", "-n", "2", "./x"], "the lab starts mpirun itself"),
        (["--", __file__], "not executable"),
        (["--no-such-option", "--", "true"], "--no-such-option"),
    ],
)
def test_bad_command_lines_are_refused_before_anything_is_made(offpath, arguments, culprit):
    offload = [] if "--offload" in arguments else ["--offload", "off"]
    done = offpath("lab", "run", *offload, *arguments)
    assert done.returncode == 2 and culprit in done.stderr and "Traceback" not in done.stderr


def test_missing_build_is_named(offpath, tmp_path):
    done = offpath("lab", "run", "--offload", "on", "--", "true", OFFPATH_BUILD=str(tmp_path))
    assert done.returncode == 2 and f"{tmp_path}/bin/offpathd" in done.stderr and "make build" in done.stderr
    done = offpath("info", OFFPATH_BUILD=str(tmp_path))
    assert done.returncode == 2 and "offpathd" in done.stderr


def test_device_that_does_not_start_is_reported(offpath, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/liboffpath-mpi.so").touch()
    daemon = tmp_path / "bin/offpathd"
    daemon.write_text("#!/bin/sh\necho no tea >&2\nexit 9\n")
    daemon.chmod(0o755)
    done = offpath("lab", "run", "--offload", "on", "--", "true", OFFPATH_BUILD=str(tmp_path))
    assert done.returncode == 2 and "ended with code 9" in done.stderr and "no tea" in done.stderr


def test_quota_throttles_a_process(tmp_path):
    try:
        quota = cgroup.DeviceQuota(owner.mark(), "test", 0.2)
    except OffpathError as error:
        pytest.skip(str(error))
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        quota.add(busy.pid)
        before, start = _cpu_seconds(busy.pid), time.monotonic()
        # It is throttled once it gets more of a core than its quota: after a while on a busy machine.
        assert eventually(lambda: time.monotonic() > start + 1 and quota.throttled_periods() > 10, 60)
        assert (_cpu_seconds(busy.pid) - before) / (time.monotonic() - start) < 0.35
    finally:
        busy.kill()
        busy.wait()
        assert eventually(lambda: _removed(quota))
    assert not quota.path.exists()


def _cpu_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _removed(quota) -> bool:
    try:
        quota.remove()
    except OSError:
        return False
    return True


def test_clean_removes_what_a_dead_owner_left_and_nothing_else(offpath):
    gone = subprocess.Popen(["sleep", "60"])
    mark = owner.mark(gone.pid)
    gone.kill()
    gone.wait()
    rooms = [
        Path(tempfile.gettempdir()) / f"offpath-run-test-{os.getpid()}-{name}" for name in ("dead", "alive")
    ]
    for room, mark_ in zip(rooms, (mark, owner.mark()), strict=True):
        room.mkdir()
        (room / "owner").write_text(mark_)
    try:
        done = offpath("lab", "clean")
        assert done.returncode == 0 and str(rooms[0]) in done.stderr
        assert not rooms[0].exists() and rooms[1].exists()
    finally:
        for room in rooms:
            (room / "owner").unlink(missing_ok=True)
            room.exists() and room.rmdir()
