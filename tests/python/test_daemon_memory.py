"""A daemon that gets no more memory: clients that knock then cost it nothing but their own connections."""

import os
import shutil
import signal
import socket
import subprocess

import pytest

# The kernel ends a process whose stack cannot grow, so the daemon gets this much.
FOR_STACKS = 64 * 1024
CLIENTS = 1000


def test_clients_without_memory_do_not_end_the_daemon(build, tmp_path):
    if shutil.which("prlimit") is None:
        pytest.skip("there is no prlimit")
    ready, write = os.pipe()
    log = str(tmp_path / "log")
    daemon = subprocess.Popen(
        [str(build.daemon), "--dir", str(tmp_path / "d"), "--ready-fd", str(write), "--log-file", log],
        pass_fds=[write],
    )
    os.close(write)
    clients = []
    try:
        assert os.read(ready, 1) == b"1"
        address = str(tmp_path / "d" / f"{socket.gethostname()}.sock")
        with open(f"/proc/{daemon.pid}/statm") as sizes:
            used = int(sizes.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit(daemon.pid, str(used + FOR_STACKS))
        for _ in range(CLIENTS):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            clients.append(client)
            client.connect(address)
        for client in clients:
            client.close()
        clients.clear()
        limit(daemon.pid, "unlimited")
        # It answers the next client, which says nonsense, and still knows how to end.
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(20)
            client.connect(address)
            client.send(b"nonsense")
            assert client.recv(4096)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(20) == 0
    finally:
        os.close(ready)
        for client in clients:
            client.close()
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()


def limit(pid: int, size: str) -> None:
    subprocess.run(["prlimit", "--pid", str(pid), f"--as={size}:"], check=True)
