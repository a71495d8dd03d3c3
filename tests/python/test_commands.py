"""The command lines and environments of ip, tc, mpirun and the launchers of real clusters."""

import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import command, environment, eventually
from offpath import launch, preload
from offpath.artifacts import Artifacts
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.lab import mpi, network, traffic
from offpath.lab.cgroup import Hierarchy, find_hierarchies
from offpath.lab.device import DeviceOptions, RemoteAttach, daemon_command
from offpath.lab.network import Link
from offpath.lab.node import Node
from offpath.lab.placement import NodePlacement
from offpath.lab.stderr import sift


class Holder:
    pid = 4711


NODES = [Node(f"node{i}", NodePlacement((0,), (1,)), Holder()) for i in range(2)]


def test_link_is_shaped_at_its_rate_with_a_burst_for_large_segments():
    ((*_, rate, _, burst, _, limit),) = network.shaping_commands("v0", Link(2 * 10**9))
    assert rate == "2000000000bit" and int(burst) >= 256 * 1024 and int(limit) > int(burst)
    assert network.burst_bytes(Link(10**11)) > 10**11 / 8 * 0.001
    assert network.burst_bytes(Link(10**8)) <= 10**8 / 8 * 0.003
    assert network.shaping_commands("v0", Link(None)) == []


def test_a_chosen_burst_is_the_buckets_and_holds_two_segments():
    link = Link(2 * 10**9, burst=132_000)
    (command,) = network.shaping_commands("v0", link)
    assert command[command.index("burst") + 1] == "132000"
    assert network.segment_bytes(link) == 66_000 and str(link) == "2gbit with bursts of 128.9K"
    assert network.segment_bytes(Link(2 * 10**9, burst=2**20)) == network.segment_bytes(Link(2 * 10**9))


@pytest.mark.parametrize(
    ("burst", "link", "complaint"),
    [("1K", "2gbit", "32K to 64M"), ("1G", "2gbit", "32K to 64M"), ("128K", "unlimited", "--link")],
)
def test_bursts_that_cannot_be_are_refused(offpath, burst, link, complaint):
    refused = offpath("lab", "run", "--link", link, "--burst", burst, "--", "true")
    assert refused.returncode == 2 and complaint in refused.stderr + refused.stdout


def test_latency_is_split_between_both_ends():
    shape, delay = network.shaping_commands("v0", Link(10**9, latency=100e-6))
    assert "netem" in delay and "50.0us" in delay and "1:1" in delay


def test_nodes_have_distinct_addresses_that_the_hosts_file_names():
    lines = network.hosts_file(network.MAX_NODES).splitlines()
    assert len({line.split()[0] for line in lines}) == len(lines) == network.MAX_NODES + 2
    assert f"{network.node_address(3)} node3" in lines


def test_every_address_of_hosts_devices_and_their_links_is_distinct():
    everywhere = range(network.MAX_NODES)
    addresses = [
        line.split()[0] for line in network.hosts_file(network.MAX_NODES, with_devices=True).splitlines()
    ]
    addresses += [network.pcie_address(i, of_device) for i in everywhere for of_device in (False, True)]
    assert len(set(addresses)) == len(addresses) == 4 * network.MAX_NODES + 2
    assert f"node7 {network.pcie_address(7, True)}:7471" in network.devices_file(8).splitlines()


def test_interface_names_fit_the_kernel():
    last = network.MAX_NODES - 1
    names = [network.port(last), network.uplink(last), network.card(last), network.plug(last)]
    names += [
        kind(last, of_device) for kind in (network.socket, network.pcie_plug) for of_device in (False, True)
    ]
    assert len(set(names)) == len(names) and all(len(name) < 16 for name in names)


def test_each_device_gets_a_directory_and_a_remote_one_its_key_by_descriptor(tmp_path):
    node = Node(
        "node1",
        NodePlacement((0,), (1,)),
        Holder(),
        1,
        Node("node1-dpu", NodePlacement((0,), (1,)), Holder(), 1),
    )
    options = DeviceOptions(["qemu", "/offpathd"])
    remote = daemon_command(options, node, tmp_path, tmp_path / "log", 5, 6)
    assert (
        remote[remote.index("--dir") + 1] == str(tmp_path)
        and remote[remote.index("--key-fd") + 1] == "6"
        and remote[remote.index("--host-devices") + 1] == "p0"
    )
    assert (
        remote[remote.index("--listen") + 1] == "10.78.1.2:7471"
        and remote[remote.index("qemu") + 1] == "/offpathd"
    )
    local = daemon_command(options, node, tmp_path, tmp_path / "log", 5)
    assert (
        local[local.index("--dir") + 1] == str(tmp_path)
        and "--listen" not in local
        and "--key-fd" not in local
    )


def test_key_and_devices_of_a_job_are_files_that_only_the_user_reads(tmp_path):
    attach = RemoteAttach(2, tmp_path)
    assert attach.key_file.stat().st_mode & 0o777 == 0o600 and len(attach.key_file.read_bytes()) >= 32
    assert attach.variables() == {
        "OFFPATH_DEVICES": f"@{tmp_path}/devices",
        "OFFPATH_KEY_FILE": f"{tmp_path}/key",
        "OFFPATH_HOST_DEVICES": "p0",
    }
    assert attach.key != RemoteAttach(2, Path(tempfile.mkdtemp(dir=tmp_path))).key


def test_counters_are_read_by_the_interfaces_name():
    text = (
        "Inter-|   Receive  | Transmit\n face |bytes packets errs drop\n"
        "    p0: 10 1 0 2 0 0 0 0 20 1 0 3 0 0 0 0\n"
        "   p01:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n"
    )
    assert traffic.parse_counters(text, "p0") == traffic.NodeTraffic(sent=20, received=10, dropped=5)
    with pytest.raises(ValueError, match="v0"):
        traffic.parse_counters(text, "v0")


def test_mpirun_reaches_the_nodes_through_the_agent_and_exports_to_ranks_only(tmp_path):
    environment = mpi.rank_environment(
        mpi.OFFPATH, {"OFFPATH_DIR": "/s"}, Path("/p.so"), {"A": "1", "LD_PRELOAD": "/mine.so"}
    )
    assert environment == {"OFFPATH": "on", "OFFPATH_DIR": "/s", "A": "1", "LD_PRELOAD": "/p.so /mine.so"}
    settings = mpi.mca_settings(True, mpi.ENGINES["host+thread"], {"pml": "cm"})
    rival = mpi.rank_environment(mpi.ENGINES["host+core+thread"], {}, None, {})
    assert (
        rival == {"OFFPATH": "off", "MPIR_CVAR_ASYNC_PROGRESS": "1"} and mpi.ENGINES["host+core+thread"].wide
    )
    assert (
        settings["btl_tcp_progress_thread"] == "1"
        and settings["pml"] == "cm"
        and settings["btl_tcp_if_include"] == "v0"
    )
    command = mpi.mpirun_command(NODES, 3, ["/bin/prog", "--x"], tmp_path, settings, environment)
    assert command[command.index("-n") + 1] == "6"
    assert command[command.index("plm_rsh_agent") + 1] == str(tmp_path / "agent")
    assert "LD_PRELOAD=/p.so /mine.so" in command and command[-2:] == ["/bin/prog", "--x"]
    assert mpi.hostfile(NODES, 3) == "node0 slots=3\nnode1 slots=3\n"


def test_host_runs_are_not_preloaded():
    assert mpi.rank_environment(mpi.HOST, {"OFFPATH_DIR": "/s"}, None, {"A": "1"}) == {
        "OFFPATH": "off",
        "A": "1",
    }


def test_agent_is_a_shell_script_that_knows_its_nodes_and_pins(tmp_path):
    agent = tmp_path / "agent"
    agent.write_text(mpi.agent_script(NODES, mpi.ENGINES["host+core"], tmp_path))
    assert "-t 4711" in agent.read_text() and "taskset -c 0,1" in agent.read_text()
    assert "taskset -c 0 " in mpi.agent_script(NODES, mpi.HOST, tmp_path)
    done = subprocess.run(["sh", str(agent), "elsewhere", "true"], capture_output=True, text=True)
    assert done.returncode == 1 and "elsewhere" in done.stderr


def test_cpu_controllers_are_found_in_both_versions():
    mounts = (
        "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n"
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
    )
    found = find_hierarchies(mounts, "3:cpu,cpuacct:/user\n0::/user/1\n")
    assert found == [
        Hierarchy(Path("/sys/fs/cgroup/cpu"), 1, "/user"),
        Hierarchy(Path("/sys/fs/cgroup/unified"), 2, "/user/1"),
    ]
    assert found[1].candidates() == [
        Path("/sys/fs/cgroup/unified/user/1"),
        Path("/sys/fs/cgroup/unified/user"),
        Path("/sys/fs/cgroup/unified"),
    ]


@pytest.fixture
def variables(tmp_path):
    for name in ("bin/offpathd", "lib/liboffpath-mpi.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return launch.rank_variables(
        Artifacts(tmp_path), Path("/tmp/s"), launch.LaunchOptions((3,), proxies=2), {}
    )


def test_ranks_of_mpirun_are_preloaded_and_mpirun_is_not(variables):
    command, environment = launch.prepare(
        ["/usr/bin/mpirun", "-n", "2", "x"],
        variables,
        {"PATH": "/bin", "OMPI_MCA_mca_base_env_list": "MINE=1"},
    )
    assert command == ["/usr/bin/mpirun", "-n", "2", "x"] and "LD_PRELOAD" not in environment
    exported = environment["OMPI_MCA_mca_base_env_list"].split(";")
    assert (
        exported[0] == "MINE=1"
        and f"LD_PRELOAD={variables['LD_PRELOAD']}" in exported
        and "OFFPATH_DEVICE_CPUS=3" in exported
    )
    assert environment["OFFPATH_AUTOSTART"] == "1" and environment["OFFPATH_PROXIES"] == "2"


def test_mpirun_with_exports_of_its_own_gets_more_of_the_same_kind(variables):
    command, environment = launch.prepare(["mpirun", "-x", "FOO", "x"], variables, {})
    assert command[1:3] == ["-x", f"LD_PRELOAD={variables['LD_PRELOAD']}"] and command[-3:] == [
        "-x",
        "FOO",
        "x",
    ]
    assert "OMPI_MCA_mca_base_env_list" not in environment


def test_a_library_whose_path_has_spaces_is_named_and_its_directory_searched():
    assert preload.variables(Path("/a/p.so"), {"LD_PRELOAD": "/mine.so", "LD_LIBRARY_PATH": "/l"}) == {
        "LD_PRELOAD": "/a/p.so /mine.so"
    }
    assert preload.variables(Path("/a b/p.so"), {}) == {"LD_PRELOAD": "p.so", "LD_LIBRARY_PATH": "/a b"}
    both = preload.variables(Path("/a b/p.so"), {"LD_PRELOAD": "/mine.so", "LD_LIBRARY_PATH": "/l"})
    assert both == {"LD_PRELOAD": "p.so /mine.so", "LD_LIBRARY_PATH": "/a b:/l"}
    for directory in ("/a:b", "/a;b", "/a b:c"):
        with pytest.raises(OffpathError, match="cannot be preloaded"):
            preload.variables(Path(directory) / "p.so", {})


def _waits_for_signals(process: int) -> bool:
    """Whether the command sleeps and has a handler for SIGHUP, which it sets last before it waits."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return "\nState:\tS" in status and caught is not None and int(caught[1], 16) & 1 == 1


@pytest.mark.parametrize("ignored", [False, True], ids=["terminal", "nohup"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_command_alone_reaches_the_launcher(build, number, code, ignored):
    """Also checks the case in which the command is started with SIGINT ignored, as by `nohup make test &`."""
    line = command("run", "--mpi", "none", "--", "sh", "-c", "echo up; exec sleep 60")
    line = ["sh", "-c", f'trap {repr("") if ignored else "-"} INT; exec "$@"', "sh", *line]
    run = subprocess.Popen(line, stdout=subprocess.PIPE, env=environment(), start_new_session=True)
    assert run.stdout.readline() == b"up\n"
    assert eventually(lambda: _waits_for_signals(run.pid), 30)
    run.send_signal(number)
    assert run.wait(20) == code


def test_results_that_cannot_be_written_are_refused_at_once(tmp_path, offpath):
    kept = tmp_path / "kept.json"
    kept.write_text("old")
    options.check_outputs(kept, tmp_path / "picture.png")
    assert kept.read_text() == "old" and list(tmp_path.iterdir()) == [kept]
    for path in (tmp_path, kept / "x.json", tmp_path / "missing" / "x.json", Path("/proc/x.json")):
        with pytest.raises(OffpathError, match="directory|cannot be"):
            options.check_outputs(path, None)
        assert offpath("tune", "--output", str(path)).returncode == 2
    with pytest.raises(OffpathError, match="same file"):
        options.check_outputs(tmp_path / "a.png", tmp_path / "missing" / ".." / "a.png")
    assert "multiples of 8" in offpath("bench", "rma", "--sizes", "4K,3").stderr


def test_srun_preloads_its_tasks(variables):
    _, environment = launch.prepare(["/usr/bin/srun", "-n", "2", "x"], variables, {})
    assert (
        environment["SLURM_EXPORT_ENV"] == f"ALL,LD_PRELOAD={variables['LD_PRELOAD']}"
        and "LD_PRELOAD" not in environment
    )


def test_values_that_cannot_be_handed_over_are_refused(variables):
    with pytest.raises(OffpathError, match="OFFPATH_DIR"):
        launch.prepare(["mpirun", "x"], variables | {"OFFPATH_DIR": "/a;b"}, {})
    with pytest.raises(OffpathError, match="LD_PRELOAD"):
        launch.prepare(["srun", "x"], variables | {"LD_PRELOAD": "/a,b"}, {})


def test_the_launchers_harmless_warning_is_dropped_and_nothing_else():
    noise = (
        b"[head:00024] plm:rsh: Warning: setpgid(29,29) failed in parent with errno=Permission denied(13)\n"
    )
    assert sift(b"a\n" + noise + b"b\n") == (b"a\nb\n", b"")
    assert sift(b"[head:1] other\nprompt> ") == (b"[head:1] other\nprompt> ", b"")
    passed, held = sift(noise[:30])
    assert passed == b"" and sift(held + noise[30:]) == (b"", b"")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("offpath st", ["study"]),
        ("offpath lab r", ["run"]),
        ("offpath top --o", ["--once"]),
        ("offpath sim --engine h", ["host"]),
        ("offpath sim --pattern bc", ["bcast"]),
        ("offpath sim --platform thor-bf", ["thor-bf2", "thor-bf3"]),
        ("offpath control dr", ["drain"]),
        ("offpath lab run --offload o", ["on", "off"]),
    ],
)
def test_shells_complete_commands_and_options(offpath, words, completed):
    last = str(len(words.split()) - 1)
    done = offpath(_OFFPATH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=last)
    assert done.stdout.split() == completed, done.stderr
