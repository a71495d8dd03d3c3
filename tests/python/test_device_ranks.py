"""Devices as MPI ranks: the command lines that are built, and real jobs in the lab and on this machine."""

import json
import platform
import re
from pathlib import Path

import pytest

from offpath.artifacts import find_artifacts
from offpath.device_ranks import (
    DEVICE,
    HOST,
    Machine,
    Program,
    build,
    mpmd,
    pair_machines,
    parse_machines,
    parse_part,
    rank_counts,
    read_devices,
)
from offpath.errors import OffpathError
from offpath.lab import device_ranks as lab_ranks
from offpath.lab.node import Node
from offpath.lab.placement import NodePlacement

HOSTS = [Machine("n0", 2), Machine("n1", 2)]
DEVICES = [Machine("d0"), Machine("d1")]


def label(kind: str, node: int) -> str:
    return f"-x OFFPATH_RANK_KIND={kind} -x OFFPATH_NODE_INDEX={node}"


def built(command: str, hosts=HOSTS, devices=DEVICES, device_program=None) -> str:
    return " ".join(build(command.split(), hosts, devices, device_program))


def test_hosts_are_the_first_ranks():
    line = mpmd(["mpirun"], [Program(DEVICE, 0, "d", 1, ["dev"]), Program(HOST, 0, "n", 2, ["prog"])])
    assert (
        " ".join(line)
        == f"mpirun -n 2 --host n:2 {label('host', 0)} prog : -n 1 --host d:1 {label('device', 0)} dev"
    )


def test_one_program_is_run_everywhere_by_slots():
    assert (
        built("mpirun --mca pml ob1 ./prog -n 7")
        == f"mpirun --mca pml ob1 -n 2 --host n0:2 {label('host', 0)} ./prog -n 7 : -n 2 --host n1:2"
        f" {label('host', 1)} ./prog -n 7 : -n 1 --host d0:1 {label('device', 0)} ./prog -n 7 : -n 1"
        f" --host d1:1 {label('device', 1)} ./prog -n 7"
    )


def test_options_of_one_program_are_repeated_for_each():
    line = built(
        "mpirun -x A=1 --prefix /opt/x --wdir /tmp --bind-to core -n 2 ./prog : -x B=2 --prefix /opt/arm"
        " ./dev 5"
    )
    assert line.startswith("mpirun --bind-to core -n 1 --host n0:1")
    hosts, devices = line.split(" : ")[:2], line.split(" : ")[2:]
    assert all(part.endswith("-x A=1 --prefix /opt/x --wdir /tmp ./prog") for part in hosts)
    assert all(part.endswith("-x A=1 --wdir /tmp -x B=2 --prefix /opt/arm ./dev 5") for part in devices)


def test_the_devices_program_gets_the_hosts_arguments():
    assert built("mpirun ./prog 1 2", device_program=["./dev"]).endswith("./dev 1 2")


@pytest.mark.parametrize(
    ("command", "devices", "said"),
    [
        ("mpirun -n 3 ./prog", DEVICES, "3 ranks cannot be dealt out evenly to 2 machines"),
        (
            "mpirun ./prog : -n 3 ./dev",
            DEVICES,
            "3 ranks cannot be dealt out evenly to 2 machines of the devices",
        ),
        ("mpirun --hostfile f ./prog", DEVICES, "contradicts"),
        ("mpirun -H a ./prog", DEVICES, "cannot be used here"),
        ("mpirun --wobble ./prog", DEVICES, "--wobble is not known"),
        ("mpirun -n many ./prog", DEVICES, "out of range"),
        ("mpirun -n 2", DEVICES, "no program"),
        ("mpirun ./a : ./b : ./c", DEVICES, "3 programs"),
        ("srun ./prog", DEVICES, "not of srun"),
        ("mpirun ./prog", DEVICES[:1], "2 hosts and 1 devices"),
        ("mpirun ./prog", [Machine("d0", node="n0")], "no device is named for n1"),
        ("mpirun ./prog", [Machine("d0", node="n7")], "n7, which is not among the hosts"),
        ("mpirun -N 3 -n 4 ./prog", DEVICES, "are not 3 on each"),
    ],
)
def test_what_cannot_be_built_is_refused(command, devices, said):
    with pytest.raises(OffpathError, match=re.escape(said)):
        build(command.split(), HOSTS, devices, None)


def test_a_device_program_is_named_once():
    with pytest.raises(OffpathError, match="twice"):
        build(["mpirun", "./prog", ":", "./dev"], HOSTS, DEVICES, ["./other"])


def test_ranks_are_counted_by_node_too():
    assert rank_counts(parse_part(["-N", "3", "p"], "the hosts"), [1, 1], "the hosts") == [3, 3]
    assert rank_counts(parse_part(["-n", "5", "p"], "the hosts"), [2, 3], "the hosts") == [2, 3]
    assert rank_counts(parse_part(["-n", "4", "p"], "the hosts"), [2, 3], "the hosts") == [2, 2]


def test_files_of_machines():
    assert parse_machines("# all\nn0 slots=2\n\nn1 # one\n", "f", devices=False) == [
        Machine("n0", 2),
        Machine("n1"),
    ]
    assert parse_machines("n0 10.0.0.2:7471\nn1 dpu1 slots=2", "f", devices=True) == [
        Machine("10.0.0.2", 1, "n0"),
        Machine("dpu1", 2, "n1"),
    ]
    for text in ("n0 slots=0", "n0 slots=x", "n0 max=3", "n0 n1", "n0 slots=1 slots=2", "slots=2"):
        with pytest.raises(OffpathError, match="f, line 1"):
            parse_machines(text, "f", devices=False)
    for text, devices in (("", False), ("n0\nn0", False), ("n0 d0\nd1", True)):
        with pytest.raises(OffpathError):
            parse_machines(text, "f", devices)


def test_devices_can_be_a_list_or_a_file(tmp_path):
    file = tmp_path / "devices"
    file.write_text("n0 d0:7471\nn1 d1\n")
    expected = [Machine("d0", 1, "n0"), Machine("d1", 1, "n1")]
    assert read_devices("n0=d0:7471,n1=d1") == read_devices(str(file)) == read_devices(f"@{file}") == expected
    assert read_devices("d0,d1") == [Machine("d0"), Machine("d1")]
    with pytest.raises(OffpathError, match="cannot be read"):
        read_devices(str(tmp_path / "none"))


def test_several_devices_of_a_node():
    devices = [Machine("a", 1, "n1"), Machine("b", 1, "n0"), Machine("c", 1, "n1")]
    assert pair_machines(HOSTS, devices) == [[devices[1]], [devices[0], devices[2]]]
    nodes = re.findall(
        r"--host (\w+):1 -x OFFPATH_RANK_KIND=device -x OFFPATH_NODE_INDEX=(\d)",
        built("mpirun ./prog", devices=devices),
    )
    assert nodes == [("b", "0"), ("a", "1"), ("c", "1")]


def test_lab_ranks_are_pinned_to_their_side():
    holder = type("Holder", (), {"pid": 1})()
    nodes = [
        Node(
            f"node{i}",
            NodePlacement((0,), (1,)),
            holder,
            i,
            Node(f"node{i}-dpu", NodePlacement((0,), (1,)), holder, i),
        )
        for i in range(2)
    ]
    line = " ".join(
        lab_ranks.command(
            nodes, lab_ranks.Layout(lab_ranks.everywhere(2, 2, 1), ["dev"]), ["prog"], {"OFFPATH": "off"}
        )
    )
    assert f"-n 2 --host node1:2 {label('host', 1)} -x OFFPATH=off taskset -c 0 prog" in line
    assert line.endswith(f"-n 1 --host node1-dpu:1 {label('device', 1)} -x OFFPATH=off taskset -c 1 dev")


def test_options_that_do_not_fit_are_refused(offpath):
    for arguments, said in (
        (["--dpu-ranks", "--offload", "on"], "cannot be combined"),
        (["--dpu-ranks", "--device-quota", "0.5"], "use --dpu remote"),
        (["--device-program", "/bin/true"], "add --dpu-ranks"),
        (["--dpu-ranks", "--device-program", "/no/such"], "not an executable"),
        (["--dpu-ranks", "--devices-per-node", "0"], "out of range"),
    ):
        done = offpath("lab", "run", *arguments, "--", "true")
        assert done.returncode == 2 and said in done.stderr, done.stderr


@pytest.fixture
def programs() -> Path:
    try:
        for name in ("device_ranks_split_test", "example-device-ranks-share"):
            found = find_artifacts().program(name)
    except OffpathError as error:
        pytest.skip(str(error))
    return found.parent


@pytest.mark.parametrize("dpu", ["local", "remote"])
@pytest.mark.parametrize(("nodes", "hosts", "devices"), [(1, 1, 1), (2, 2, 1), (3, 1, 2)])
def test_a_job_in_the_lab(offpath, namespaces, programs, dpu, nodes, hosts, devices):
    done = offpath(
        "lab",
        "run",
        "--nodes",
        str(nodes),
        "-r",
        str(hosts),
        "--devices-per-node",
        str(devices),
        "--dpu",
        dpu,
        "--dpu-ranks",
        "--timeout",
        "50",
        "--",
        str(programs / "device_ranks_split_test"),
        str(hosts),
        str(devices),
    )
    assert done.returncode == 0, done.stderr
    assert "devices are MPI ranks" in done.stderr


def test_host_and_device_of_different_architectures(offpath, namespaces, programs):
    share = programs / "example-device-ranks-share"
    try:
        lab_ranks.device_command("aarch64", [str(share)], None)
    except OffpathError as error:
        pytest.skip(str(error))
    done = offpath(
        "lab",
        "run",
        "-q",
        "--nodes",
        "2",
        "--dpu",
        "aarch64",
        "--dpu-ranks",
        "--timeout",
        "100",
        "--",
        str(share),
        "--bodies",
        "1000",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"(host|device) of node (\d), (\w+):", done.stdout) == [
        ("host", "0", platform.machine()),
        ("host", "1", platform.machine()),
        ("device", "0", "aarch64"),
        ("device", "1", "aarch64"),
    ]


def test_ranks_are_where_they_are_said_to_be(offpath, namespaces):
    script = "echo $(hostname) $OFFPATH_RANK_KIND $OFFPATH_NODE_INDEX"
    done = offpath(
        "lab",
        "run",
        "-q",
        "--nodes",
        "2",
        "--dpu",
        "remote",
        "--dpu-ranks",
        "--timeout",
        "50",
        "--",
        "sh",
        "-c",
        script,
    )
    assert sorted(done.stdout.split("\n")[:-1]) == [
        "node0 host 0",
        "node0-dpu device 0",
        "node1 host 1",
        "node1-dpu device 1",
    ], done.stderr


def test_a_slow_device_gets_less(offpath, namespaces, programs):
    program = [str(programs / "example-device-ranks-share"), "--bodies", "5000", "--steps", "10"]
    done = offpath(
        "lab",
        "run",
        "-q",
        "--nodes",
        "1",
        "--dpu",
        "remote",
        "--device-quota",
        "0.05",
        "--dpu-ranks",
        "--timeout",
        "50",
        "--",
        *program,
    )
    if "the device cannot be throttled" in done.stderr:
        pytest.skip("no control group with a share of the CPU can be made here")
    assert done.returncode == 0, done.stderr
    host, device = (float(share) for share in re.findall(r"([\d.]+) %", done.stdout))
    assert device < 0.75 * host
    assert json.loads(done.stdout.splitlines()[-1])["verified"]


def test_a_job_as_on_real_machines(offpath, programs, tmp_path):
    (tmp_path / "hosts").write_text("localhost slots=2\n")
    done = offpath(
        "run",
        "--dpu-ranks",
        "--hosts",
        str(tmp_path / "hosts"),
        "--devices",
        "localhost",
        "--",
        "mpirun",
        "--oversubscribe",
        "--bind-to",
        "none",
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "btl",
        "self,vader",
        str(programs / "device_ranks_split_test"),
        "2",
        "1",
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )
    assert done.returncode == 0, done.stderr


def test_a_job_on_machines_that_an_agent_reaches(offpath, programs, tmp_path):
    """Four machines, all of which are this one. The test checks which names the launcher asks for, and what
    it tells the ranks there."""
    hosts, devices, agent, log = (tmp_path / name for name in ("hosts", "devices", "agent", "log"))
    hosts.write_text("nodeA slots=2\nnodeB slots=2\n")
    devices.write_text("nodeB dpuB:7471\nnodeA dpuA:7471\n")
    # Each machine has a /tmp of its own. Daemons that shared one would make and remove the same directories.
    agent.write_text(
        f'#!/bin/sh\nhost=$1\nshift\necho "$host" >>{log}\n'
        f'mkdir -p {tmp_path}/tmp-$host\nTMPDIR={tmp_path}/tmp-$host\nexport TMPDIR\nexec sh -c "$*"\n'
    )
    agent.chmod(0o755)
    done = offpath(
        "run",
        "--dpu-ranks",
        "--hosts",
        str(hosts),
        "--devices",
        str(devices),
        "--agent",
        str(agent),
        "--",
        "mpirun",
        "--oversubscribe",
        "--bind-to",
        "none",
        str(programs / "device_ranks_split_test"),
        "2",
        "1",
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_pml="ob1",
        OMPI_MCA_btl="self,tcp",
        OMPI_MCA_btl_tcp_if_include="lo",
        OMPI_MCA_oob_tcp_if_include="lo",
        OMPI_MCA_mpi_yield_when_idle="1",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(log.read_text().split()) == ["dpuA", "dpuB", "nodeA", "nodeB"]
