"""Devices with operating systems of their own, outside a lab: lists, keys, daemons that are started for a
job, and whether devices can be reached."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading

import pytest

from conftest import command, environment, eventually, traces
from offpath import devices, launch
from offpath.artifacts import Artifacts
from offpath.commands import info
from offpath.devices import RemoteDevice
from offpath.errors import OffpathError
from offpath.lab.clean import clean
from offpath.remote_daemons import StartOptions, agent_command


@pytest.mark.parametrize(
    "text, found",
    [
        ("10.0.0.2", [RemoteDevice(None, "10.0.0.2", 7471)]),
        ("dpu:80", [RemoteDevice(None, "dpu", 80)]),
        ("[fd00::2]:9", [RemoteDevice(None, "fd00::2", 9)]),
        ("n1=a:1, n2=[fd00::3]", [RemoteDevice("n1", "a", 1), RemoteDevice("n2", "fd00::3", 7471)]),
    ],
)
def test_lists(text, found):
    assert devices.parse(text) == found
    assert devices.parse(devices.setting(found)) == found


@pytest.mark.parametrize(
    "text", ["a b", "n1=", "=a", "n1=a,b", "n1=a,n1=b", "a:0", "a:x", "a:70000", "[::1", "@/no/such/file", ""]
)
def test_lists_that_are_refused(text):
    with pytest.raises(OffpathError) as error:
        devices.parse(text)
    assert error.value.hint


def test_files_are_handed_on_by_content(tmp_path):
    file = tmp_path / "devices"
    file.write_text("# ours\nn1 10.0.0.1\nn2 dpu2:80  # slow\n\n")
    for text in (str(file), f"@{file}"):
        assert devices.setting(devices.parse(text)) == "n1=10.0.0.1:7471,n2=dpu2:80"
    file.write_text("n1 10.0.0.1 more\n")
    with pytest.raises(OffpathError, match="line 1"):
        devices.parse(str(file))


def test_keys_that_others_could_read_are_refused(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o640)
    with pytest.raises(OffpathError, match="0640") as error:
        devices.check_key_file(key)
    assert "chmod 600" in error.value.hint
    key.chmod(0o600)
    assert devices.check_key_file(key) == key
    key.write_bytes(b"k" * 31)
    with pytest.raises(OffpathError, match="31 bytes"):
        devices.check_key_file(key)
    with pytest.raises(OffpathError, match="none"):
        devices.check_key_file(tmp_path / "none")


def test_only_offpathd_is_taken_for_a_device():
    def answer(server, greeting):
        connection = server.accept()[0]
        connection.sendall(greeting)
        connection.close()

    for greeting, reachable, what in (
        (b"\x26\0\0\0OFPM\x01\0\x08\0rest", True, "version 1"),
        (b"SSH-2.0-OpenSSH_9", False, "not offpathd"),
        (b"", False, "closed"),
    ):
        with socket.create_server(("127.0.0.1", 0)) as server:
            thread = threading.Thread(target=answer, args=(server, greeting))
            thread.start()
            device = RemoteDevice(None, "127.0.0.1", server.getsockname()[1])
            found = devices.reach(device)
            thread.join()
        assert found[0] == reachable and what in found[1]
    assert devices.reach(device) == (False, "Connection refused")


@pytest.fixture
def artifacts(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/liboffpath-mpi.so").touch()
    return Artifacts(tmp_path)


def test_ranks_learn_of_devices_and_no_local_daemon_is_started(artifacts, tmp_path):
    options = launch.LaunchOptions((), remote=[RemoteDevice("n1", "a", 1)], host_devices="tmfifo_net0")
    found = launch.rank_variables(artifacts, tmp_path, options, {})
    assert (
        found["OFFPATH_DEVICES"] == "n1=a:1"
        and found["OFFPATH_KEY_FILE"] == str(tmp_path / "key")
        and found["OFFPATH_HOST_DEVICES"] == "tmfifo_net0"
    )
    assert not {"OFFPATH_DIR", "OFFPATH_AUTOSTART", "OFFPATH_DAEMON"} & found.keys()


def test_agent_is_called_as_ssh_is():
    options = StartOptions("ssh -p 22", "/opt/offpathd", "--net-devices 'a b'", proxies=2)
    command = agent_command(RemoteDevice("n1", "dpu1", 80), options)
    assert command[:6] == ["ssh", "-o", "ConnectTimeout=5", "-p", "22", "dpu1"] and len(command) == 7
    shell, flag, script = shlex.split(command[6])
    assert (shell, flag) == ("sh", "-c")
    assert (
        "/opt/offpathd --listen dpu1:80 --log-level warn --allow-kernels / --allow-images --proxies 2"
        " --net-devices 'a b' --dir \"$directory\" --key-fd 0" in script
    )


def test_devices_and_ranks_encrypt_if_the_command_is_told_to(artifacts, tmp_path, monkeypatch):
    device, options = RemoteDevice("n1", "dpu1", 80), StartOptions()
    assert "OFFPATH_ENCRYPT" not in agent_command(device, options)[-1]
    monkeypatch.setenv("OFFPATH_ENCRYPT", "1")
    script = shlex.split(agent_command(device, options)[-1])[2]
    assert "| OFFPATH_ENCRYPT=1 offpathd --listen dpu1:80" in script
    found = launch.rank_variables(
        artifacts, tmp_path, launch.LaunchOptions((), remote=[device]), {"OFFPATH_ENCRYPT": "1"}
    )
    assert found["OFFPATH_ENCRYPT"] == "1"


# Stands in for offpathd: writes its arguments and whether the key appears anywhere, and runs until it is
# ended.
DAEMON = """
import os, sys, time

def content(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        return b""

words = [word for word in sys.argv[1:] if word != "--allow-images"]
arguments = dict(zip(words[::2], words[1::2]))
key = os.fdopen(int(arguments["--key-fd"]), "rb").read()
shows = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if key in content(pid)]
with open(os.environ["FAKE_LOG"] + ".pid", "w") as file:
    file.write(str(os.getpid()))
with open(os.environ["FAKE_LOG"], "a") as log:
    print(arguments["--listen"], len(key), len(shows), key.decode(), file=log)
os.write(int(arguments["--ready-fd"]), b"1")
os.close(int(arguments["--ready-fd"]))
time.sleep(1000)
"""


@pytest.fixture
def agent(tmp_path, artifacts):
    """An agent that reaches every host by staying on this one, and a stand-in for the daemon."""
    (tmp_path / "agent").write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    (tmp_path / "daemon").write_text(f"#!{sys.executable}\n{DAEMON}")
    for name in ("agent", "daemon"):
        (tmp_path / name).chmod(0o755)
    return ["--agent", str(tmp_path / "agent"), "--device-daemon", str(tmp_path / "daemon")]


def test_daemons_are_started_with_a_key_of_the_job_and_end_with_it(offpath, agent, tmp_path):
    marker = f"daemons-{os.getpid()}"
    script = "echo $OFFPATH_DEVICES; stat -c %a $OFFPATH_KEY_FILE; cat $OFFPATH_KEY_FILE; echo; exit 6"
    done = offpath(
        "run",
        "--devices",
        "n1=127.0.0.1:5001,n2=127.0.0.1:5002",
        *agent,
        "--",
        "sh",
        "-c",
        script,
        OFFPATH_BUILD=str(tmp_path),
        FAKE_LOG=str(tmp_path / "log"),
        MARKER=marker,
    )
    assert done.returncode == 6, done.stderr
    shown, mode, key = done.stdout.split()
    assert shown == "n1=127.0.0.1:5001,n2=127.0.0.1:5002" and mode == "600" and len(key) >= 32
    lines = sorted(line.split() for line in (tmp_path / "log").read_text().splitlines())
    assert lines == [["127.0.0.1:5001", str(len(key)), "0", key], ["127.0.0.1:5002", str(len(key)), "0", key]]
    assert eventually(lambda: not traces(marker)), traces(marker)


def test_daemons_end_when_the_command_is_killed(agent, tmp_path):
    marker = f"killed-{os.getpid()}"
    run = subprocess.Popen(
        command("run", "--devices", "127.0.0.1:5001", *agent, "--", "sh", "-c", "echo up; exec sleep 1000"),
        stdout=subprocess.PIPE,
        text=True,
        env=environment(OFFPATH_BUILD=str(tmp_path), FAKE_LOG=str(tmp_path / "log"), MARKER=marker),
    )
    assert run.stdout.readline() == "up\n"
    assert any("daemon" in line for line in traces(marker))
    run.kill()
    run.wait()
    # The launcher, which was not killed, owns the job. The command owns the devices.
    assert eventually(lambda: not any("/daemon" in line for line in traces(marker))), traces(marker)
    for line in traces(marker):
        os.kill(int(re.match(r"process (\d+)", line)[1]), signal.SIGKILL)
    assert any("offpath-run-" in line for line in clean())


def run_until_said(words, begin, agent, folder):
    """Runs a job that does `begin`, and ends when the command has said `words`. Returns what it has said."""
    over, said = folder / "over", []
    wait = f'{begin}\nfor i in $(seq 600); do [ -e "$1/over" ] && exit 0; sleep 0.1; done; exit 7'
    run = subprocess.Popen(
        command("run", "--devices", "127.0.0.1:5001", *agent, "--", "sh", "-c", wait, "job", str(folder)),
        env=environment(OFFPATH_BUILD=str(folder), FAKE_LOG=str(folder / "log")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in run.stderr:
        said.append(line)
        if words in line:
            over.touch()
    assert run.wait(60) == 0, said
    return "".join(said)


def test_daemon_that_dies_is_started_again_with_the_same_key(agent, tmp_path):
    again = "127.0.0.1:5001 has ended; a new one serves"
    said = run_until_said(again, 'kill -9 "$(cat "$1/log.pid")"', agent, tmp_path)
    assert said.count(again) == 1, said
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first == second  # address and key


def test_daemon_that_dies_again_and_again_is_given_up(agent, tmp_path):
    (tmp_path / "daemon").write_text(
        f"#!{sys.executable}\n" + DAEMON.replace("time.sleep(1000)", "sys.exit('no more tea')")
    )
    said = run_until_said("it is given up", "", agent, tmp_path)
    assert "no more tea" in said, said
    # On a loaded machine a life may last some seconds. Then the count begins again.
    assert len((tmp_path / "log").read_text().splitlines()) >= 3


def test_daemon_that_does_not_start_is_reported(offpath, agent, tmp_path):
    (tmp_path / "daemon").write_text("#!/bin/sh\necho no tea >&2\nexit 9\n")
    done = offpath("run", "--devices", "127.0.0.1:5001", *agent, "--", "true", OFFPATH_BUILD=str(tmp_path))
    assert done.returncode == 2 and "127.0.0.1:5001 did not start" in done.stderr and "no tea" in done.stderr
    done = offpath(
        "run",
        "--devices",
        "127.0.0.1:5001",
        "--agent",
        "no-such-agent",
        "--",
        "true",
        OFFPATH_BUILD=str(tmp_path),
    )
    assert done.returncode == 2 and "no-such-agent" in done.stderr


def test_devices_that_cannot_be_reached_are_named_with_the_reason(offpath, artifacts, tmp_path):
    if shutil.which("ssh") is None:
        pytest.skip("there is no ssh")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        agent = ["--agent", f"ssh -F /dev/null -p {silent.getsockname()[1]}"]
        done = offpath(
            "run",
            "--devices",
            "n1=127.0.0.1:5001,n2=127.0.0.2:5002",
            *agent,
            "--",
            "true",
            OFFPATH_BUILD=str(tmp_path),
        )
    assert done.returncode == 2
    # No process listens at the second address, and none answers at the first.
    for address, reason in (("127.0.0.1:5001", "timed out"), ("127.0.0.2:5002", "refused")):
        assert f"the device {address} did not start" in done.stderr and reason in done.stderr, done.stderr


def test_key_of_daemons_that_run_already_is_used(offpath, artifacts, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"k" * 40)
    key.chmod(0o644)
    done = offpath(
        "run", "--devices", "127.0.0.1", "--key-file", str(key), "--", "true", OFFPATH_BUILD=str(tmp_path)
    )
    assert done.returncode == 2 and "0644" in done.stderr
    key.chmod(0o600)
    done = offpath(
        "run",
        "--devices",
        "127.0.0.1",
        "--key-file",
        str(key),
        "--",
        "sh",
        "-c",
        "echo $OFFPATH_KEY_FILE",
        OFFPATH_BUILD=str(tmp_path),
    )
    assert done.returncode == 0 and done.stdout.strip() == str(key)
    done = offpath("run", "--key-file", str(key), "--", "true", OFFPATH_BUILD=str(tmp_path))
    assert done.returncode == 2 and "--devices" in done.stderr


def test_info_of_links_without_a_rate():
    shown = info._readable(
        [
            {"name": "network", "interface": "eth0", "rate_bits_per_s": None},
            {"name": "network", "interface": "eth1", "rate_bits_per_s": 10**9},
        ]
    )
    assert [row["rate each way"] for row in shown] == ["not told", "1gbit"]
