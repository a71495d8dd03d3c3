"""Which device's log explains a failed job, and logs that outlive their lab."""

import re
from pathlib import Path

import pytest

from offpath import logs, tracing


@pytest.fixture
def job(build, tmp_path):
    """A job of two ranks in which the second rank is lost while an operation is outstanding. Skips the test
    if its program is not built."""
    script = tmp_path / "lose.sh"
    program = build.program("offpath-bench-mpi")
    # The ranks meet on the device before one of them is killed: their trace has a second part by then.
    script.write_text(
        f"#!/bin/sh\n{program} latency --op ialltoall --bytes 64K --iterations 1000000 &\n"
        "[ $OMPI_COMM_WORLD_RANK = 0 ] || {\nfor i in $(seq 1200); do sleep 0.05\n"
        f'[ -z "$(find {tmp_path}/trace -name "*-$!*{tracing.SUFFIX}" -size +200k)" ] || break\n'
        "done\nkill -9 $!\n}\nwait $!\n"
    )
    script.chmod(0o755)
    return str(script)


def test_a_failed_job_shows_the_log_that_explains_it_and_logs_are_kept(offpath, namespaces, job, tmp_path):
    done = offpath(
        "lab", "run", "--keep-logs", f"--trace={tmp_path / 'trace'}", "--env=OFFPATH_REFINE=off", "--", job,
        TMPDIR=str(tmp_path),
    )  # fmt: skip
    assert done.returncode != 0
    shown = re.search(
        r"the device of (node\d) was the first to complain; its last words: \[OFP-0808\]\n"
        r"  \[.*offpathd\[\1\]",
        done.stderr,
    )
    assert shown, done.stderr
    (kept,) = re.findall(r"the devices' logs are in (\S+)", done.stderr)
    assert sorted(path.name for path in Path(kept, "job0").glob("*.log")) == ["node0.log", "node1.log"]
    assert logs.first_to_complain(Path(kept, "job0").glob("*.log")).stem == shown[1]


def test_the_first_complaint_counts_and_not_the_first_line(tmp_path):
    first, second = tmp_path / "node0.log", tmp_path / "node1.log"
    first.write_text(
        "[10:00:00.000] offpathd[node0] info: ready\n[10:00:09.000] offpathd[node0] error: proxy 1 was lost\n"
    )
    second.write_text(
        "[10:00:01.000] offpathd[node1] info: ready\n[10:00:08.000] offpathd[node1] warning: no memory\n"
    )
    assert logs.first_to_complain([first, second, tmp_path / "none.log"]) == second
    assert logs.first_to_complain([tmp_path / "none.log"]) is None
