"""The analytic models: figures of the papers, limits, monotonicity, and wrong arguments."""

import itertools
import json
import math
import random

import pytest

from offpath.errors import OffpathError
from offpath.models import auxiliary, bound, energy, memory_traffic, overlap
from offpath.models.off_path import Machine, OffPath, StepTimes, Threads, eq3
from offpath.models.testbeds import THOR

HALF_HIDDEN = StepTimes(force=0.4, neigh=0.3, comm=0.1)


def _programs(count):
    """Random rebuild steps, of equal seeds in every run."""
    draw = random.Random(20)
    return [
        OffPath(
            StepTimes(*(draw.uniform(1e-6, 1) for _ in range(3))),
            other_s=draw.uniform(0, 0.2),
            ordinary_comm_s=draw.uniform(0, 0.2),
            atoms=draw.uniform(1e3, 1e6),
        )
        for _ in range(count)
    ]


def test_eq3_by_hand():
    """0.8 s a step; the device's 0.35 + 0.1 s are above the host's 0.3 + 0.1 s."""
    device = StepTimes(force=0.35, neigh=9.0, comm=0.1)
    assert eq3(8.0, HALF_HIDDEN, device, 10) == pytest.approx(8.0 - (0.8 - 0.45) * 10)
    assert eq3(8.0, HALF_HIDDEN, device, 10, transfers_s=0.05) == pytest.approx(8.0 - (0.8 - 0.5) * 10)
    # A fast device leaves the host's own rebuild.
    fast = StepTimes(force=0.01, neigh=0.0, comm=0.1)
    assert eq3(8.0, HALF_HIDDEN, fast, 10) == pytest.approx(8.0 - 0.4 * 10)


def test_a_fast_device_saves_the_forces_and_no_more():
    program = OffPath(HALF_HIDDEN)
    found = program.predict(Machine(slowness=1e-9), 1, 1, steps=100, interval=1)
    assert found.improvement_percent == pytest.approx(100 * 0.4 / 0.8)
    assert found.extended_s == found.off_path_s


def test_transfers_by_hand():
    """A million atoms in double precision: 48 MB of positions and forces, 40 MB of lists."""
    program = OffPath(HALF_HIDDEN, atoms=1e6)
    every = program.predict(Machine(slowness=1), 1, 1, steps=10, interval=1, bus_Bps=1e9)
    assert every.extended_s - every.off_path_s == pytest.approx(10 * 0.088)
    # With ordinary steps between, the lists arrive during these.
    second = program.predict(Machine(slowness=1), 1, 1, steps=10, interval=2, bus_Bps=1e9)
    assert second.extended_s - second.off_path_s == pytest.approx(5 * 0.048)


@pytest.mark.parametrize("program", _programs(20))
def test_the_off_path_time_is_monotonous(program):
    def of(slowness=2.5, host=4, device=4, interval=1, bus=None):
        return program.predict(Machine(slowness), host, device, 100, interval, bus)

    for slower, faster in itertools.pairwise([8, 4, 2, 1, 0.5]):
        assert of(slowness=faster).off_path_s <= of(slowness=slower).off_path_s + 1e-12
    for few, many in itertools.pairwise([1, 2, 4, 8]):
        assert of(device=many).off_path_s <= of(device=few).off_path_s + 1e-12
        assert of(host=many).host_s <= of(host=few).host_s + 1e-12
    for slow, fast in itertools.pairwise([1e8, 1e9, 1e10, 1e15]):
        assert of(bus=fast).extended_s <= of(bus=slow).extended_s + 1e-12
    assert of(bus=1e30).extended_s == pytest.approx(of().off_path_s)
    # Rare rebuilds leave nothing to save.
    rare = of(interval=100000)
    assert rare.off_path_s == pytest.approx(rare.host_s, rel=1e-3)
    # No more than the whole rebuild step can be saved.
    assert of().off_path_s > 0


@pytest.mark.parametrize("program", _programs(10))
def test_the_knee_divides_hidden_from_visible_forces(program):
    machine = Machine(0.3, force=Threads.from_speedup(2.5, 8))
    knee = program.knee(machine, 8, most=64)
    device = machine.device(program.one, 8)
    for threads in range(1, 64):
        host = machine.host(program.one, threads)
        assert (host.neigh + host.comm >= device.force + device.comm) == (threads <= knee)


def test_threads_behave_as_the_paper_says():
    """Eight threads of a BlueField are 2.5 times as fast as one, and two are slower than one (Fig. 14)."""
    threads = Threads.from_speedup(THOR.force_speedup, THOR.device_cores)
    assert threads.factor(1) == 1
    assert threads.factor(8) == pytest.approx(1 / 2.5)
    assert threads.factor(2) > 1
    assert Threads(serial=1).factor(64) == 1
    assert Threads().factor(64) == 1 / 64


def test_the_auxiliary_node_equals_eight_cores():
    threads = Threads.from_speedup(THOR.force_speedup, THOR.device_cores)
    assert auxiliary.matching_slowness(8, threads) == pytest.approx(2.5)
    assert auxiliary.matching_threads(2.5, threads) == 8
    assert auxiliary.matching_threads(1, threads) == 1
    assert auxiliary.matching_threads(1e6, Threads(serial=0.5)) is None
    # Without a cost of threads, a card of n cores equals a core n times as fast.
    assert auxiliary.matching_threads(5, Threads()) == 5


def test_devices_alone_against_a_host():
    assert auxiliary.devices_against_host(4, 8, 32, 1, Threads()) == pytest.approx(1)
    threads = Threads.from_speedup(2.5, 8)
    ratio = auxiliary.devices_against_host(16, 8, 32, 2.5, threads)
    assert ratio == pytest.approx(1.6)  # 3.2 / 32 of a host core's time, against 2.5 * 0.4 / 16
    assert auxiliary.devices_against_host(32, 8, 32, 2.5, threads) == pytest.approx(2 * ratio)


def test_the_peak_ratio():
    assert round(THOR.peak_ratio, 1) == 16.4


def test_the_bound():
    assert bound.communication_bound_percent(17.58, 49.53) == pytest.approx(35.49, abs=0.01)
    assert bound.speedup_bound(1, 2) == 2
    assert bound.communication_bound_percent(0, 2) == 0
    for less, more in itertools.pairwise([0, 0.1, 0.5, 1, 1.9]):
        assert bound.speedup_bound(less, 2) < bound.speedup_bound(more, 2)


@pytest.mark.parametrize("seed", range(10))
def test_overlap_stays_within_its_limits(seed):
    draw = random.Random(seed)
    pure, compute = draw.uniform(1e-6, 1), draw.uniform(0, 2)
    post = draw.uniform(0, pure)
    totals = [overlap.Overlap(pure, post, share).total_s(compute) for share in (0, 0.25, 0.5, 1)]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == pytest.approx(pure + compute)
    assert totals[-1] == pytest.approx(max(pure, compute + post))
    assert totals[-1] >= max(pure, compute)
    ideal = overlap.Overlap(pure)
    assert ideal.total_s(compute) == pytest.approx(max(pure, compute))
    assert ideal.overlap_percent(pure) == pytest.approx(100)
    assert overlap.Overlap(pure, progress=0).overlap_percent(compute) == pytest.approx(0)


@pytest.mark.parametrize("seed", range(10))
def test_progress_is_found_again(seed):
    draw = random.Random(seed)
    pure, share = draw.uniform(1e-3, 1), draw.uniform(0, 1)
    post = pure * draw.uniform(0, 0.5)
    total = overlap.Overlap(pure, post, share).total_s(pure)
    assert overlap.progress_from(pure, pure, total, post) == pytest.approx(share)


def test_interference_costs_what_overlaps():
    assert overlap.Overlap(1.0, interference=0.25).total_s(1.0) == pytest.approx(1.25)
    assert overlap.Overlap(1.0, interference=1.0).overlap_percent(1.0) == pytest.approx(0)


def test_an_application_changes_by_its_communication():
    assert overlap.application_s(49.53, 17.58, 7.54) == pytest.approx(39.49)
    assert overlap.application_s(49.53, 17.58, 17.58) == 49.53


def test_memory_traffic_gains_most_where_both_sides_are_equal():
    def speedup(ratio, copies=0.0):
        return memory_traffic.Phase(ratio, 1.0, 100e9, 10e9).speedup(copies)

    best = memory_traffic.Phase(1.0, 1.0, 100e9, 10e9).best_ratio
    assert best == 10 and speedup(best) == pytest.approx(2)
    ratios = [0.1, 1, 5, 10, 20, 100, 1e6]
    found = [speedup(ratio) for ratio in ratios]
    assert found[:4] == sorted(found[:4]) and found[3:] == sorted(found[3:], reverse=True)
    assert found[-1] == pytest.approx(1, abs=1e-4) and max(found) <= 2
    # Each access of memory that a cache would avoid costs, where memory is the limit.
    for few, many in itertools.pairwise([0, 1, 2, 4]):
        assert speedup(20, many) < speedup(20, few)
        assert speedup(1, many) <= speedup(1, few)


def test_energy_of_the_paper():
    """20 to 40 W on 316 W are 6 to 13 %."""
    assert [round(energy.more_power_percent(watt, THOR.node_W)) for watt in THOR.device_W] == [6, 13]
    assert energy.energy_ratio(0.2, 40, 316) == pytest.approx(356 / 316 * 0.8)
    for watt in (0, 20, 40, 400):
        even = energy.break_even_saving(watt, 316)
        assert energy.energy_ratio(even, watt, 316) == pytest.approx(1)
    assert energy.break_even_saving(20, 316, replaced_W=20) == 0
    assert energy.break_even_saving(10, 316, replaced_W=20) < 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Machine(slowness=0), "device's slowness 0 is out of range"),
        (lambda: OffPath(StepTimes(-1, 1, 1)), "time of force -1 is out of range"),
        (lambda: OffPath(StepTimes(0, 0, 0)), "time of a step 0 is out of range"),
        (lambda: OffPath(StepTimes(math.nan, 1, 1)), "time of force nan"),
        (lambda: OffPath(HALF_HIDDEN, atoms=-5), "number of atoms -5"),
        (lambda: OffPath(HALF_HIDDEN).predict(Machine(1), 0, 1, 10, 1), "number of threads 0"),
        (lambda: OffPath(HALF_HIDDEN).predict(Machine(1), 1, 1, 10, 0), "interval 0"),
        (
            lambda: OffPath(HALF_HIDDEN).predict(Machine(1), 1, 1, 10, 1, 0.0),
            "rate between host and device 0",
        ),
        (lambda: Threads(serial=1.5), "serial share 1.5"),
        (lambda: Threads.from_speedup(9, 8), "speed-up of 9 on 8 threads"),
        (
            lambda: bound.communication_bound_percent(3, 2),
            "communication's time 3 is longer than the total 2",
        ),
        (lambda: bound.speedup_bound(2, 2), "only communicates"),
        (lambda: overlap.Overlap(1, post_s=2), "time to post 2 is longer"),
        (lambda: overlap.Overlap(1, progress=1.1), "progress 1.1"),
        (lambda: overlap.progress_from(1, 1, 2, post_s=1), "nothing can overlap"),
        (lambda: memory_traffic.Phase(1, 0, 1, 1), "bytes on the wire 0"),
        (lambda: energy.energy_ratio(1.5, 10, 100), "saving 1.5"),
        (lambda: energy.energy_ratio(0.5, 10, 0), "node's power 0"),
        (lambda: energy.energy_ratio(0.5, 10, 100, 200), "replaced adapter 200"),
    ],
)
def test_wrong_arguments_are_named(call, says):
    with pytest.raises(OffpathError, match=says):
        call()


def test_the_commands_print_and_write(offpath, tmp_path):
    found = tmp_path / "f.json"
    steps = ["--force=0.4", "--neigh=0.3", "--comm=0.02", "--host-threads=1,8", "--device-threads=8"]
    done = offpath("model", "off-path", *steps, "--atoms=864000", "--bus=12e9", f"--json={found}")
    assert done.returncode == 0 and "with transfers" in done.stdout, done.stderr
    rows = json.loads(found.read_text())["rows"]
    assert [(row["host_threads"], row["device_threads"]) for row in rows] == [(1, 8), (8, 8)]
    assert all(row["extended_s"] > row["off_path_s"] for row in rows)
    wrong = offpath("model", "energy", "--saving=2")
    assert wrong.returncode == 2 and "saving 2 is out of range" in wrong.stderr
