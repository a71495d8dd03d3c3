"""Ranks of several nodes that share a core take short turns."""

import json
import os
import re
import types

import pytest

from conftest import SOURCE_ROOT
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.lab import turns
from offpath.lab.placement import NodePlacement

# Turns of 0.2 ms end 1000 times while a rank computes for 0.2 s of its core's time, whatever else runs there.
# The kernel's own turns take a millisecond or more.
OFTEN = 400
# Computes until it loses the core so OFTEN, since beats may begin late, but not for ever. Prints how often it
# has lost the core, and its slice.
SPINNER = f"""
import json, resource, sys, time
sys.path.insert(0, sys.argv[1])
from offpath.lab import turns
for _ in range(int(sys.argv[2])):
    before, end = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw, time.process_time() + 0.2
    while time.process_time() < end:
        pass
    lost = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before
    if lost > {OFTEN}:
        break
print(json.dumps([lost, turns.slice_ns()]), flush=True)
"""


@pytest.fixture
def slices():
    before = turns.slice_ns()
    if before is None or not turns.set_slice_ns(turns.LEAST_SLICE_NS):
        pytest.skip("this kernel has no slices of a process' own (Linux 6.12 has), so turns are the kernel's")
    turns.set_slice_ns(before)
    return before


def test_only_shared_cores_are_taken_in_turns():
    split = NodePlacement((0,), (1,))
    assert turns.shared_cores([split], 1) == []
    assert turns.shared_cores([split], 2) == [0]
    assert turns.shared_cores([split, split], 1) == [0, 1]
    assert turns.shared_cores([NodePlacement((0, 1), (2,)), NodePlacement((3, 4), (5,))], 2) == []
    assert turns.shared_cores([NodePlacement((0, 1), (0, 1))], 1) == []


def test_turns_end_with_their_owner(slices):
    own = turns.Turns(200, [0])
    try:
        assert own.are_short and turns.slice_ns() == turns.LEAST_SLICE_NS
        (beat,) = own.processes()
        assert os.path.exists(f"/proc/{beat}")
    finally:
        own.end()
    assert turns.slice_ns() == slices and own.processes() == set() and not os.path.exists(f"/proc/{beat}")


def test_the_length_of_turns_is_counted(slices, monkeypatch):
    allowed = os.sched_getaffinity(0)
    cpu, interrupted = max(allowed), 70

    def compute(seconds):
        nonlocal interrupted
        assert os.sched_getaffinity(0) == {cpu} and turns.slice_ns() == turns.LEAST_SLICE_NS
        interrupted += round(seconds / 250e-6)

    monkeypatch.setattr(turns, "_compute", compute)
    monkeypatch.setattr(turns.resource, "getrusage", lambda _: types.SimpleNamespace(ru_nivcsw=interrupted))
    assert turns.length_s(200, cpu) == pytest.approx(250e-6)
    assert turns.slice_ns() == slices and os.sched_getaffinity(0) == allowed


def test_what_is_no_turn_is_refused(offpath):
    done = offpath("lab", "run", "--turns", "50us", "--nodes", "2", "--offload", "off", "--", "true")
    assert done.returncode == 2 and "use 100 to 4000 us" in done.stderr
    with pytest.raises(OffpathError, match="is not understood"):
        options.turns_us("soon")
    assert options.turns_us("kernel") is None and options.turns_us("1ms") == 1000


@pytest.mark.usefixtures("namespaces")
def test_ranks_on_one_core_lose_it_often(offpath, slices, user):
    # Two ranks for each core that hosts may have, so that every core is shared.
    ranks = max(2, len(os.sched_getaffinity(0)))
    for way, tries in (("200us", "50"), ("kernel", "1")):
        program = ["/usr/bin/python3", "-c", SPINNER, str(SOURCE_ROOT / "python"), tries]
        done = offpath(
            "lab",
            "run",
            "--turns",
            way,
            "--nodes",
            "2",
            "--ranks-per-node",
            str(ranks),
            "--offload",
            "off",
            "--",
            *program,
            user=user,
        )
        assert done.returncode == 0, done.stderr
        assert ("in turns of 0.2 ms" in done.stderr) == (way == "200us")
        # mpirun may join the lines of two ranks.
        ranks_said = [json.loads(found) for found in re.findall(r"\[.*?\]", done.stdout)]
        assert len(ranks_said) == 2 * ranks
        assert {own for _, own in ranks_said} == {turns.LEAST_SLICE_NS if way == "200us" else slices}
        assert way == "kernel" or all(lost > OFTEN for lost, _ in ranks_said), ranks_said
