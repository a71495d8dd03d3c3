"""The studies of miniMD: the runs, the model and the divergence rate from known numbers, and pictures."""

import pytest

from offpath import units
from offpath.errors import OffpathError
from offpath.minimd import accuracy, halo, model, roofline, sources, timing
from offpath.minimd import plot as pictures
from offpath.minimd.case import (
    ALL,
    BALANCED,
    DEVICES,
    HALO,
    HOSTS,
    OFFLOADED,
    OVERLAPPED,
    PAPER,
    RUNTIME_BALANCED,
    RUNTIME_PAPER,
    SCHEMES,
    SPLIT,
    TOGETHER,
    TUNNEL,
    Case,
    Cores,
    Outcome,
    cells_of,
)
from offpath.minimd.measure import measure
from offpath.minimd.spec import Spec
from offpath.minimd.study import STUDIES
from offpath.models import off_path


def simulated(case: Case) -> Outcome:
    """A simple model of a run, for each atom and step: 300 ns for forces, 200 ns for neighbours, 50 ns for
    communication. A device repeats its forces."""
    share = case.atoms * 1e-9 / case.nodes
    neigh, comm = 200 * share * case.rebuilds, 50 * share * case.steps
    force = 300 * share * case.steps * (case.device_slowness if case.scheme == DEVICES else 1)
    total = neigh + comm + force + share * case.steps
    if case.scheme in (PAPER, BALANCED):
        total *= 0.8
    rows = [
        {"step": n, "t": 0.7 + 1e-6 * n * case.interval, "u": -5.0, "p": 0.1}
        for n in range(0, case.steps + 1, case.thermo_every or case.steps)
    ]
    return Outcome(total, force, neigh, comm, share * case.steps, rows)


SUPPLIED = sources.Supplied("test:simulated", simulated)


def simulate(name: str, spec: Spec) -> list[dict]:
    study = STUDIES[name]
    results = measure(study.cases(spec), lambda case: SUPPLIED, spec.runs)
    return study.rows(
        spec,
        results,
        *([1e9] if study.needs_bandwidth else []),
        *([lambda nodes: Cores(nodes, nodes)] if study.needs_cores else []),
    )


def test_atoms_fill_a_cube():
    assert [cells_of(n) for n in (4, 4000, 32000, 131072, 864000)] == [1, 10, 20, 32, 60]
    for impossible in (-1, 0):
        with pytest.raises(OffpathError, match="fill a cube"):
            cells_of(impossible)
    with pytest.raises(OffpathError, match="fill a cube") as error:
        cells_of(5000)
    assert "5324" in error.value.hint


def test_what_a_case_has_no_device_for_does_not_tell_it_apart():
    paper = Case(PAPER, 4000, device_slowness=4, device_threads=2)
    assert paper.of(HOSTS) == Case(HOSTS, 4000) == paper.of(BALANCED).of(HOSTS)
    assert paper.of(DEVICES).device_slowness == 4 and paper.of(ALL).device_threads == 1


def test_command_line_and_input_file_of_a_case():
    case = Case(
        BALANCED,
        32000,
        interval=5,
        steps=40,
        skin=0.1,
        thermo_every=10,
        threads=2,
        device_threads=3,
        device_slowness=4,
        intensity=8,
        precision="single",
    )
    assert sources.input_file(case).splitlines() == [
        "Lennard-Jones",
        "",
        "lj",
        "none",
        "lj",
        "1.0 1.0",
        "20 20 20",
        "40",
        "0.005",
        "1.44",
        "0.8442",
        "5",
        "2.5 0.1",
        "10",
    ]
    assert sources.flags(case) == [
        "--offpath",
        "balanced",
        "-t",
        "2",
        "--precision",
        "single",
        "--skin-check",
        "off",
        "--device-threads",
        "3",
        "--device-slowness",
        "4",
        "--intensity",
        "8",
    ]
    assert {scheme: sources.flags(Case(scheme, 4000))[:2] for scheme in (HOSTS, DEVICES, ALL, PAPER)} == {
        HOSTS: ["--where", "hosts"],
        DEVICES: ["--where", "devices"],
        ALL: ["--where", "all"],
        PAPER: ["--offpath", "paper"],
    }
    assert sources.flags(Case(RUNTIME_PAPER, 4000))[:4] == ["--offpath", "paper", "--device-kind", "runtime"]
    assert "--device-slowness" in sources.flags(Case(RUNTIME_BALANCED, 4000))
    assert (
        sources.flags(Case(TUNNEL, 4000))[0] == "--tunnel"
        and sources.flags(Case(SPLIT, 4000))[0] == "--split-boundary"
    )
    assert sources.flags(Case(OFFLOADED, 4000))[0] == "-t"


def test_slope_and_its_error():
    rate, error = accuracy.slope([1, 2, 3, 4], [6, 5, 7, 10])
    assert rate == pytest.approx(1.4) and error == pytest.approx(0.42**0.5)
    assert accuracy.slope([0, 10], [1.0, 3.0]) == (pytest.approx(0.2), 0.0)
    with pytest.raises(ValueError):
        accuracy.slope([1], [1])


def test_divergence_is_that_of_temperatures_from_the_reference():
    reference = [{"step": n, "t": 0.7} for n in range(0, 1001, 10)]
    thermo = [{"step": n, "t": 0.7 + (2e-6 * n if n <= 300 else 0.0)} for n in range(0, 1001, 10)]
    found = accuracy.divergence(thermo, reference)
    assert found["tdr_300"] == pytest.approx(2e-6) and found["tdr_300_error"] == pytest.approx(0, abs=1e-12)
    # A difference that returns to zero cancels in the slope of the whole run, but not in the largest
    # difference.
    assert abs(found["tdr"]) < 4e-7 and found["max_dt"] == pytest.approx(6e-4)
    with pytest.raises(OffpathError, match="different steps"):
        accuracy.divergence(thermo[1:], reference)


def test_energy_is_kinetic_and_potential():
    found = accuracy.energy_drift(
        [{"step": n, "t": 1.0 - 2e-4 * n, "u": -5.0 + 4e-4 * n} for n in range(0, 101, 10)]
    )
    assert (
        found["energy_drift"] == pytest.approx(1e-4)
        and found["energy_change"] == pytest.approx(0.01)
        and found["max_energy_change"] == pytest.approx(0.01)
    )


def test_eq_3():
    host = model.StepTimes(force=3.0, neigh=2.0, comm=0.5)
    # The device needs longer than neighbours and communication together, so it determines the time of a step
    # that rebuilds.
    assert model.eq3(120.0, host, model.StepTimes(4.0, 0.0, 0.5), rebuilds=20) == pytest.approx(
        120 - (5.5 - 4.5) * 20
    )
    # The device is faster, so the forces are hidden.
    assert model.eq3(120.0, host, model.StepTimes(1.0, 9.0, 0.5), rebuilds=20) == pytest.approx(
        120 - 3.0 * 20
    )
    # The device is so slow that the run takes longer.
    assert model.eq3(120.0, host, model.StepTimes(8.0, 0.0, 0.5), rebuilds=10) == pytest.approx(
        120 + 3.0 * 10
    )
    assert model.eq3(120.0, host, model.StepTimes(4.0, 0.0, 0.5), 20, transfers_s=0.4) == pytest.approx(
        120 - 0.6 * 20
    )
    assert model.eq3(120.0, host, model.StepTimes(1.0, 0.0, 0.5), 20, transfers_s=0.4) == pytest.approx(60)


def test_transfers_are_of_one_host_and_lists_count_where_no_step_hides_them():
    moved = model.transfers(Case(PAPER, 4000, nodes=2, ranks_per_node=2), 1e6)
    assert moved.positions == moved.forces == pytest.approx(1000 * 24 / 1e6) and moved.lists == pytest.approx(
        1000 * 4 * off_path.LIST_INTEGERS / 1e6
    )
    assert model.transfers(Case(PAPER, 4000, interval=5), 1e6).lists == 0
    assert model.transfers(Case(PAPER, 4000, precision="single"), 1e6).positions == pytest.approx(
        4000 * 12 / 1e6
    )
    assert model.transfers(Case(PAPER, 4000), None).total == 0


def test_the_model_takes_its_times_from_hosts_and_devices_alone():
    (row,) = simulate("model", Spec((4000,), (1,), (5,), steps=20, device_slowness=(2,)))
    ns = 4000e-9
    assert (row["t_force_s"], row["t_neigh_s"], row["t_comm_s"]) == pytest.approx(
        (300 * ns, 200 * ns, 50 * ns)
    )
    assert (row["t_force_device_s"], row["t_comm_device_s"]) == pytest.approx((600 * ns, 50 * ns))
    assert row["base_total_s"] == pytest.approx((351 * 20 + 200 * 4) * ns)
    # The device needs 650 ns where the host would need 550: 100 ns more, 4 times.
    assert row["predicted_s"] == pytest.approx(row["base_total_s"] + 100 * 4 * ns)
    assert row["measured_to_predicted"] == pytest.approx(0.8 * row["base_total_s"] / row["predicted_s"])
    assert row["extended_s"] == pytest.approx(row["predicted_s"] + 4 * 4000 * 48 / 1e9)
    fast, slow = simulate("auxiliary", Spec((4000,), (1,), (1,), device_slowness=(1, 4)))
    assert fast["predicted_improvement_percent"] > 0 > slow["predicted_improvement_percent"]


def test_ranks_that_take_turns_are_predicted_by_the_time_of_their_core():
    spec = Spec((4000,), (2,), (1,), steps=10, device_slowness=(2,))
    ns = 2000e-9

    def run(case: Case) -> Outcome:
        """Two ranks on one core: the one that waits in communication also measures the other's forces and
        neighbours."""
        force, neigh, comm = (600 if case.scheme == DEVICES else 300) * ns * 10, 200 * ns * 10, 50 * ns * 10
        total = 2 * (force + neigh + comm)
        return Outcome(total, force, neigh, total - force - neigh, 0.0, on_core=(force, neigh, comm))

    supplied = sources.Supplied("s", run)
    (row,) = model.model_rows(
        spec, measure(model.model_cases(spec), lambda case: supplied, 1), 1e9, lambda nodes: Cores(1, 1)
    )
    assert (row["t_force_s"], row["t_neigh_s"], row["t_comm_s"]) == pytest.approx(
        (600 * ns, 400 * ns, 100 * ns)
    )
    assert (row["t_force_device_s"], row["t_comm_device_s"]) == pytest.approx((1200 * ns, 100 * ns))
    # The two devices need 650 each, together 1300, and the hosts 1100.
    assert row["ranks_per_core"] == 2 and row["predicted_s"] == pytest.approx(
        row["base_total_s"] + 200 * ns * 10
    )
    # With cores of their own, the ranks' clocks are right.
    (own,) = model.model_rows(
        spec,
        measure(model.model_cases(spec), lambda case: supplied, 1),
        1e9,
        lambda nodes: Cores(nodes, nodes),
    )
    assert own["t_comm_s"] == pytest.approx(600 * ns) and own["ranks_per_core"] == 1


def test_what_slows_a_whole_turn_changes_no_improvement():
    """Three turns, each slower than the one before. Medians of totals would mix them."""
    seen: dict[Case, int] = {}

    def run(case: Case) -> Outcome:
        turn = seen[case] = seen.get(case, 0) + 1
        total = (
            turn
            * (0.8 if case.scheme == BALANCED else 1.0)
            * (5.0 if (turn, case.scheme) == (2, HOSTS) else 1.0)
        )
        return Outcome(total, 0.5 * total, 0.3 * total, 0.1 * total, 0.1 * total)

    spec = Spec((4000,), (1,), (1,))
    supplied = sources.Supplied("s", run)
    rows = timing.offpath_rows(spec, measure(timing.offpath_cases(spec), lambda case: supplied, 3))
    (row,) = (row for row in rows if row["scheme"] == BALANCED)
    assert row["improvement_percent"] == pytest.approx(20)


def test_improvement_and_bound():
    rows = simulate("offpath", Spec((4000,), (1, 2), (1,)))
    assert {row["scheme"] for row in rows} == {
        HOSTS,
        ALL,
        PAPER,
        BALANCED,
        RUNTIME_PAPER,
        RUNTIME_BALANCED,
    } and len(rows) == 12
    # Emulated devices run no kernels.
    assert {row["scheme"] for row in simulate("offpath", Spec((4000,), runtime=False))} == {
        HOSTS,
        ALL,
        PAPER,
        BALANCED,
    }
    at = {(row["scheme"], row["nodes"]): row for row in rows}
    assert (
        at[PAPER, 2]["improvement_percent"] == pytest.approx(20) and at[HOSTS, 1]["improvement_percent"] == 0
    )
    assert at[PAPER, 1]["bound_percent"] == pytest.approx(100 * 50 / 551)
    assert at[PAPER, 1]["above_bound_percent"] == pytest.approx(20 - 100 * 50 / 551)
    # One run on hosts serves for all speeds of devices.
    cases = STUDIES["offpath"].cases(Spec((4000,), (1,), (1,), device_slowness=(1, 2, 4)))
    assert (
        sum(case.scheme == HOSTS for case in set(cases)) == 1
        and sum(case.scheme == PAPER for case in set(cases)) == 3
    )


def test_shares_slowdown_and_speedup():
    (row,) = simulate("breakdown", Spec((4000,), (1,), (1,)))
    assert sum(row[f"{part}_percent"] for part in ("force", "neigh", "comm", "other")) == pytest.approx(100)
    assert simulate("bound", Spec((4000,), (1,), (1,)))[0]["bound_percent"] == row["comm_percent"]
    assert simulate("slowdown", Spec((4000,), (1,), (1,), device_slowness=(2,)))[0][
        "slowdown"
    ] == pytest.approx(851 / 551)
    speedups = [
        row["speedup_over_host"]
        for row in simulate("devices", Spec((4000,), (1, 2), (1,), device_slowness=(1,), source_nodes=(16,)))
    ]
    assert speedups == pytest.approx([1, 2, 16])


def test_exposed_is_what_cores_do_besides_computing():
    case = Case(HALO, 4000, nodes=2)
    outcome = Outcome(10.0, 6.0, 1.0, 2.0, 1.0, computing_s=4.0)
    # Two ranks on one core compute for 8 of its 10 seconds, and on cores of their own for 4 seconds.
    assert halo.exposed(case, outcome, 1) == pytest.approx(2.0) and halo.exposed(
        case, outcome, 2
    ) == halo.exposed(case, outcome, 8) == pytest.approx(6.0)
    assert halo.exposed(case, Outcome(10.0, 6.0, 1.0, 2.0, 1.0), 1) is None

    def run(case):
        total, computing = {HALO: (9.0, 4.4), OVERLAPPED: (10.0, 4.5), TOGETHER: (8.5, 4.2)}.get(
            case.scheme, (11.0, 4.0)
        )
        return Outcome(total, 0, 0, 0, 0, computing_s=computing)

    spec = Spec((4000,), (2,), (20,), runs=1)
    rows = halo.halo_rows(
        spec,
        measure(halo.halo_cases(spec), lambda case: sources.Supplied("s", run), 1),
        lambda nodes: Cores(1, 1),
    )
    at = {row["scheme"]: row for row in rows}
    assert set(at) == set(halo.HALO_SCHEMES)
    assert (
        at[HALO]["exposed_s"] == pytest.approx(0.2)
        and at[HALO]["exposed_less_percent"] == pytest.approx(80)
        and at[HALO]["beyond_one_node_s"] == pytest.approx(0.5)
    )
    # The ranks of one node were in calls for 0.1 of their 8.5 seconds.
    assert at[HALO]["link_exposed_s"] == pytest.approx(0.1) and at[HALO][
        "link_exposed_less_percent"
    ] == pytest.approx(100 * (0.9 - 0.1) / 0.9)
    assert at[OVERLAPPED]["exposed_less_percent"] == 0 and at[HALO]["total_less_percent"] == pytest.approx(10)


def test_manual_schemes_by_atoms_and_by_intensity_at_the_last_size():
    rows = simulate("manual", Spec((500, 4000), (2,), (1,), intensities=(1, 8)))
    assert {row["scheme"] for row in rows} == set(timing.MANUAL_SCHEMES)
    assert [(row["atoms"], row["intensity"]) for row in rows if row["scheme"] == TUNNEL] == [
        (500, 1),
        (4000, 1),
        (4000, 8),
    ]


def test_tdr_has_one_reference_a_skin():
    rows = simulate("tdr", Spec((4000,), (1,), (1, 10), steps=100, skins=(0.1, 0.3)))
    assert len(rows) == 12 == len({(row["skin"], row["scheme"], row["interval"]) for row in rows})
    for row in rows:
        assert row["tdr"] == pytest.approx(1e-6 * (row["interval"] - 1)) and row[
            "energy_drift"
        ] == pytest.approx(1.5e-6 * row["interval"])


def test_runs_alternate_and_medians_are_taken():
    taken = []

    def run(case):
        taken.append(case.scheme)
        return Outcome(float(len(taken)), 0, 0, 0, 0)

    hosts, devices = Case(HOSTS, 4000), Case(DEVICES, 4000)
    results = measure([hosts, devices, hosts], lambda case: sources.Supplied("s", run), 3)
    assert taken == [HOSTS, DEVICES] * 3 and results[hosts].total_s == 3 and results[devices].total_s == 4
    assert results.row(hosts) | {
        "total_s": 3,
        "total_min_s": 1,
        "total_max_s": 5,
        "runs": 3,
        "source": "s",
    } == results.row(hosts)


@pytest.mark.parametrize(
    "values",
    [
        {"runs": 0},
        {"nodes": (0,)},
        {"atoms": (5000,)},
        {"intervals": (30,)},
        {"precision": "half"},
        {"device_slowness": (0,)},
        {"skins": (3.0,)},
        {"nodes": (2, 4), "source_nodes": (4,)},
    ],
)
def test_what_cannot_be_is_refused(values):
    with pytest.raises(OffpathError):
        Spec(**values).check()


def test_a_simulator_is_a_function_by_name():
    assert sources.load("json:dumps").name == "json:dumps"
    for name in ("json", "json:", "no_such_module_of_ours:f", "json:no_such_function", "json:__name__"):
        with pytest.raises(OffpathError):
            sources.load(name)
    with pytest.raises(OffpathError, match="returned dict"):
        sources.Supplied("m:f", lambda case: {}).run(Case(HOSTS, 4000))
    with pytest.raises(OffpathError, match="comm_s = nan"):
        sources.Supplied("m:f", lambda case: Outcome(1.0, 0.0, 0.0, float("nan"), 0.0)).run(Case(HOSTS, 4000))
    with pytest.raises(OffpathError, match="m:f failed for .*: ZeroDivisionError") as error:
        sources.Supplied("m:f", lambda case: 1 / 0).run(Case(HOSTS, 4000))
    assert "test_minimd.py:" in error.value.hint
    with pytest.raises(OffpathError, match="not understood"):
        units.split_whole("1,two", "--nodes")


@pytest.mark.parametrize("name", STUDIES)
def test_rows_are_flat_and_drawn(tmp_path, name):
    spec = STUDIES[name].defaults
    spec.check()
    rows = simulate(
        name,
        Spec(
            spec.atoms,
            spec.nodes,
            spec.intervals,
            spec.steps,
            1,
            (1, 2),
            (1, 2),
            spec.device_slowness,
            spec.skins,
            spec.intensities,
        ),
    )
    assert all(
        isinstance(value, (str, int, float, bool, type(None))) for row in rows for value in row.values()
    )
    assert all(row["scheme"] in SCHEMES and row["source"] == "test:simulated" for row in rows) and set(
        STUDIES[name].columns
    ) <= set(rows[0])
    report = {
        "study": f"minimd-{name}",
        "figure": "Fig.",
        "runs": 1,
        "lab": {"description": "2 nodes"},
        "rows": rows,
    }
    pictures.draw(report, tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 10000
    if name == "model":
        pictures.draw(
            report | {"rows": [row for row in rows if row["threads"] == row["device_threads"] == 1]},
            tmp_path / "q.png",
        )
        assert (tmp_path / "q.png").stat().st_size > 10000


def test_limits_of_a_loop():
    peak = {"flops_per_s": 100.0, "memory": [{"bytes_per_s": 80.0}, {"bytes_per_s": 10.0}]}
    row = {"flops_per_s": 20.0, "pairs_per_atom": 5.0, "tested_pairs_per_atom": 20.0}
    by = {
        (1.0, 20.0): (80.0, "loads and stores"),
        (2.0, 4.0): (40.0, "memory"),
        (2.0, 20.0): (100.0, "operations"),
    }
    for (moved, least), (limit, name) in by.items():
        found = roofline.limits(row | {"flops_per_moved_byte": moved, "flops_per_least_byte": least}, peak)
        assert found["limit_flops_per_s"] == limit and found["limited_by"] == name
        assert found["percent_of_limit"] == 2000 / limit and found["percent_of_lanes_in_range"] == 25
