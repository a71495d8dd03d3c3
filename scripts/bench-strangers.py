#!/usr/bin/env python3
"""bench-strangers.py [--build DIR] [--runs N] [--json FILE]: what strangers and greedy clients of a daemon
cost the job beside them.

It starts a daemon on the last core. A job of two ranks, 3-D Fourier transforms, runs on the first core: alone
and beside build/bin/bench-strangers, in turn. That program keeps 1,000 connections that say nothing, starts
100 malformed or foreign sessions while the job runs, and has a session at each limit of a client. The job
verifies its results. Needs an idle machine with two cores."""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE_S = 120


def cores() -> tuple[str, str]:
    """The first and the last core that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    return str(allowed[0]), str(allowed[-1])


def start_daemon(build: Path, folder: Path, core: str) -> subprocess.Popen[bytes]:
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(32))
    ready, started = os.pipe()
    command = ["taskset", "-c", core, str(build / "bin/offpathd"), "--dir", str(folder)]
    command += ["--name", os.uname().nodename, "--listen", "127.0.0.1:0", "--key-file", str(key)]
    command += ["--ready-fd", str(started)]
    log = (folder / "daemon.log").open("wb")
    daemon = subprocess.Popen(command, pass_fds=[started], stderr=log)
    os.close(started)
    if os.read(ready, 1) != b"1":
        raise SystemExit(f"the daemon does not start: {(folder / 'daemon.log').read_text()}")
    return daemon


def start_strangers(build: Path, folder: Path, core: str, over_s: float) -> subprocess.Popen[str]:
    port = next(folder.glob("*.port")).read_text().strip()
    command = ["taskset", "-c", core, str(build / "bin/bench-strangers"), "--dir", str(folder)]
    command += ["--address", f"127.0.0.1:{port}", "--key-file", str(folder / "key"), "--over", str(over_s)]
    strangers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if strangers.stdout is None or strangers.stdout.readline() != "ready\n":
        raise SystemExit("bench-strangers does not start")
    return strangers


def run_job(build: Path, folder: Path, core: str) -> float:
    """Runs the job and returns the seconds of one of its iterations. Ends the program if it is not right."""
    environment = dict(os.environ) | {
        "OFFPATH_DIR": str(folder),
        "OFFPATH_MIN_BYTES": "0",
        "OFFPATH_VERBOSE": "1",
    }
    environment |= {"OFFPATH_OPS": "all", "OFFPATH_REFINE": "off"}
    job = ["fft3d", "--n", "96", "--iterations", "60", "--json", "-"]
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"]
    preload = ["env", f"LD_PRELOAD={build / 'lib/liboffpath-mpi.so'}", str(build / "bin" / job[0]), *job[1:]]
    done = subprocess.run(
        ["taskset", "-c", core, *launcher, *preload],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
    )
    result = json.loads(done.stdout) if done.returncode == 0 else {}
    if not result.get("verified"):
        raise SystemExit(f"the job failed: {done.stdout}{done.stderr}")
    if "offloaded" not in done.stderr:
        raise SystemExit(f"the job was not offloaded: {done.stderr}")
    return result["total_s"]


def measure(build: Path, runs: int) -> dict:
    first, last = cores()
    times: dict[str, list[float]] = {"alone": [], "beside strangers": []}
    did: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="offpath-strangers-") as name:
        folder = Path(name)
        daemon = start_daemon(build, folder, last)
        try:
            began = time.monotonic()
            run_job(build, folder, first)  # warms everything, and tells how long a run takes
            length = time.monotonic() - began
            for i in range(2 * runs):
                # Every second pair begins with the strangers.
                if i % 4 in (0, 3):
                    times["alone"].append(run_job(build, folder, first))
                    continue
                strangers = start_strangers(build, folder, last, 0.8 * length)
                try:
                    times["beside strangers"].append(run_job(build, folder, first))
                finally:
                    out, _ = strangers.communicate(timeout=_PATIENCE_S)
                did.append(json.loads(out))
        finally:
            daemon.terminate()
            daemon.wait(_PATIENCE_S)
    alone, beside = (statistics.median(times[name]) for name in ("alone", "beside strangers"))
    return {
        "alone_s": alone,
        "beside_strangers_s": beside,
        "ratio": beside / alone,
        "runs": times,
        "strangers": did,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options.build, options.runs)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    for name, values in found["runs"].items():
        middle, least, most = (1e3 * of(values) for of in (statistics.median, min, max))
        print(f"{name}: {middle:.2f} ms an iteration ({least:.2f} to {most:.2f})")
    print(f"ratio: {found['ratio']:.3f}")
    print(f"strangers of the last run: {json.dumps(found['strangers'][-1])}")


if __name__ == "__main__":
    main()
