"""`offpath sim`: its output, its errors, and the platforms that come with it."""

import json
import math
import subprocess

import pytest

from offpath import calibrate, lab_times, sim, validate, validation_summary
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError


def _right(done):
    assert done.returncode == 0, done.stderr
    return done


def test_a_simulation_writes_what_it_found(offpath, tmp_path):
    found = tmp_path / "f.json"
    shape = ["--platform=thor-bf2", "--nodes=4", "--ranks-per-node=2", "--pattern=alltoall", "--bytes=64K"]
    done = _right(offpath("sim", *shape, f"--json={found}", "--verify"))
    assert "overlap" in done.stdout
    offloaded = json.loads(found.read_text())
    assert offloaded["ranks"] == 8 and offloaded["bytes"] == 65536 and offloaded["verified"] is True
    assert {"time_s", "overlap_percent", "events", "events_per_s", "peak_rss_bytes"} <= offloaded.keys()
    _right(offpath("sim", *shape, "--engine=host", f"--json={found}"))
    host = json.loads(found.read_text())
    assert host["overlap_percent"] < 30 < 85 < offloaded["overlap_percent"]


def test_equal_runs_give_equal_files(offpath, tmp_path):
    texts = []
    for name in ("a.json", "b.json"):
        path = tmp_path / name
        offpath(
            "sim", "--platform=lab", "--pattern=allreduce", "--nodes=3", "--noise=0.1", "--skew=1e-4",
            "--seed=7", "--repeatable", f"--json={path}",
        )  # fmt: skip
        texts.append(path.read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", sim.platform_names())
def test_platforms_of_offpath_are_complete(offpath, name):
    _right(offpath("sim", f"--platform={name}", "--pattern=ring", "--bytes=1M"))


def test_a_changed_figure_counts(offpath, tmp_path):
    path = tmp_path / "f.json"
    times = []
    for rate in ("1e9", "2e9"):
        offpath(
            "sim",
            "--platform=thor-bf2",
            "--pattern=ring",
            "--bytes=16M",
            f"--set=link_Bps={rate}",
            f"--json={path}",
        )
        times.append(json.loads(path.read_text())["time_s"])
    assert times[0] / times[1] == pytest.approx(2, rel=0.05)


def test_staging_takes_longer_than_reaching_host_memory_directly(offpath, tmp_path):
    path = tmp_path / "f.json"
    times = []
    for memory in ("xgvmi", "staged"):
        _right(
            offpath("sim", "--platform=thor-bf2", "--pattern=ring", f"--memory={memory}", f"--json={path}")
        )
        times.append(json.loads(path.read_text())["time_s"])
    assert times[1] > 1.05 * times[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--platform=thor"], "platform 'thor' is not there"),
        (["--platform=lab", "--set=link_Bps=-1"], "lab: link_Bps: -1.0 is not accepted"),
        (["--platform=lab", "--set=links=1"], "--set links: platform lab has no such field"),
        (["--platform=lab", "--set=link_Bps"], "--set 'link_Bps' is not understood"),
        (["--platform=lab", "--pattern=alltoal"], "pattern 'alltoal' is not known"),
        (["--platform=lab", "--engine=dpu"], "engine 'dpu' is not known"),
        (["--platform=lab", "--memory=dma"], "memory 'dma' is not known"),
        (["--platform=lab", "--topology=star"], 'topology "star" is not known'),
        (["--platform=lab", "--topology=torus:2", "--nodes=3"], "has 2 places for 3 nodes"),
        (["--platform=lab", "--pattern=allreduce", "--bytes=9"], "allreduce sums doubles, whose size is 8"),
        (["--platform=lab", "--nodes=65536", "--ranks-per-node=64"], "this machine has"),
    ],
)
def test_what_is_wrong_is_said(offpath, arguments, says):
    pattern = (
        [] if any(argument.startswith("--pattern") for argument in arguments) else ["--pattern=alltoall"]
    )
    done = offpath("sim", *arguments, *pattern)
    assert done.returncode == 2, done.stderr
    assert says in " ".join(done.stderr.split())


def test_goal_is_written_for_schedules_only(offpath, tmp_path):
    goal = tmp_path / "x.goal"
    _right(offpath("sim", "--platform=lab", "--pattern=bcast", "--nodes=4", f"--goal={goal}"))
    assert goal.read_text().startswith("num_ranks 4")
    done = offpath("sim", "--platform=lab", "--pattern=put", f"--goal={goal}")
    assert done.returncode == 2 and "put is no schedule" in done.stderr


def test_validation_uses_what_calibration_did_not():
    used = {(str(shape), str(point)) for shape in calibrate.SHAPES for point in calibrate.POINTS}
    checked = [
        (str(shape), str(point))
        for group in validate.SETS.values()
        for shape, points in group
        for point in points
    ]
    assert len(checked) == len(set(checked)) >= 80
    assert not used & set(checked)


def test_blind_configurations_share_nothing_with_the_known_ones():
    """Neither a size nor, with the operation, a shape; and there are enough of each engine."""
    seen = [*((shape, calibrate.POINTS) for shape in calibrate.SHAPES)]
    seen += [pair for group in validate.KNOWN.values() for pair in group]
    sizes = {point.size for _, points in seen for point in points}
    made = {(str(shape), point.op) for shape, points in seen for point in points}
    blind = [pair for group in validate.BLIND.values() for pair in group]
    assert not sizes & {point.size for _, points in blind for point in points}
    assert not made & {(str(shape), point.op) for shape, points in blind for point in points}
    for engine in validate.ENGINES:
        assert sum(len(points) for shape, points in blind if shape.engine == engine) >= 20


@pytest.mark.parametrize(
    "earlier, group",
    [
        (("known", "blind"), "fresh"),
        (("known", "blind", "fresh"), "last"),
        (("known", "blind", "fresh", "last"), "sealed"),
    ],
)
def test_later_configurations_have_sizes_of_their_own_and_programs(earlier, group):
    def labs(name):
        return [pair for one in validate.GROUPS[name].values() for pair in one if isinstance(pair, tuple)]

    def lines(name):
        return [one for its in validate.GROUPS[name].values() for one in its if not isinstance(one, tuple)]

    seen = {point.size for point in calibrate.POINTS}
    seen |= {point.size for name in earlier for _, points in labs(name) for point in points}
    assert not seen & {point.size for _, points in labs(group) for point in points}
    programs = lines(group)
    assert {program.line.split()[0] for program in programs} == {
        *("fft3d", "halo", "ring-hpl", "bspmm", "minimd")
    }
    assert not {program.line for name in earlier for program in lines(name)} & {p.line for p in programs}
    assert sum(len(points) for _, points in labs(group)) + len(validate.ENGINES) * len(programs) >= 40


def test_a_seed_draws_configurations_of_their_own_and_anybody_draws_them_again():
    set_, other = validate.drawn(20261129), validate.drawn(20261130)
    assert set_ == validate.drawn(20261129) != other
    assert validate.choose("drawn:20261129,sealed")[0] == "drawn:20261129"
    sizes = {point.size for _, points in set_ for point in points}
    assert not sizes & {point.size for its in validate.SETS.values() for _, points in its for point in points}
    assert not sizes & {point.size for point in calibrate.POINTS}
    # Local devices, none, and remote ones.
    assert {(shape.engine, shape.dpu) for shape, _ in set_} == {
        *(("host", "local"), ("offpath", "local"), ("offpath", "remote"))
    }
    assert sum(len(points) for _, points in set_) == 54
    with pytest.raises(OffpathError, match="'drawn:x' is not known"):
        validate.choose("drawn:x")


def test_measured_rows_are_those_of_the_median_round():
    rows = [
        {"op": "ibcast", "pure_s": time, "low_s": time - 1, "high_s": time + 1, "count": 2, "verified": True}
        for time in (30, 10, 20)
    ]
    assert lab_times.median_row(rows) == {
        **{"op": "ibcast", "pure_s": 20, "low_s": 9, "high_s": 31, "count": 6, "verified": True},
        "rounds_s": [30, 10, 20],
    }
    rows[0]["verified"] = False
    assert not lab_times.median_row(rows)["verified"]


def test_a_fit_does_not_end_where_it_stays_by_chance():
    """The best value is 0.25, and no step of a fit leads there from 1."""

    def judge(values):
        place = math.log10(values["x"])
        return min(1.5 + 10 * abs(place), 1 + 10 * abs(place - math.log10(0.25)))

    assert calibrate.fit({"x": 1.0}, ["x"], judge) == 1.5
    distance, values = calibrate.fit_from_anywhere({"x": 1.0}, judge)
    assert distance == pytest.approx(1) and values["x"] == pytest.approx(0.25)


def test_a_validation_that_calibrates_measures(offpath, tmp_path):
    found = tmp_path / "v.json"
    found.write_text('{"rows": []}')
    done = offpath(
        "sim", "--platform=lab", "--validate", f"--measured={found}", f"--calibrate={tmp_path / 'p.json'}"
    )
    assert done.returncode == 2 and "--calibrate measures" in done.stderr


def test_rounds_of_the_lab_are_judged_like_the_simulator():
    rows = [
        {"set": "slow", "engine": "host", "error": 0.5, "rounds_s": [1.0, 1.0, 1.2]},
        {"set": "slow", "engine": "offpath", "error": 0.1},
    ]
    assert validation_summary.round_errors(rows[0]) == pytest.approx([1 / 1.1 - 1, 1 / 1.1 - 1, 0.2])
    said = validation_summary.summary(rows, {"known": ["slow"]})
    assert said["rounds"].keys() == {"host"}
    assert said["rounds"]["host"]["p90_percent"] == pytest.approx(20)
    assert said["engines"]["host"]["median_percent"] == pytest.approx(50)


def test_sets_are_chosen_by_name_or_group():
    assert validate.choose("all") == [*validate.SETS, *validate.PROGRAMS]
    assert validate.choose("blind") == list(validate.BLIND)
    assert validate.choose("slow,known") == list(validate.KNOWN)
    with pytest.raises(OffpathError, match="set 'fast' is not known"):
        validate.choose("fast")


def _measured_rows(figures, name):
    """The times of a platform, as if the lab had measured them."""
    rows = []
    for shape, points in validate.SETS[name]:
        for point, row in zip(
            points, lab_times.simulate(figures, shape, points, find_artifacts()), strict=True
        ):
            rows.append(
                {"set": name, "lab": str(shape), "engine": shape.engine, "op": point.op, "bytes": point.size,
                 "measured_s": row["time_s"]}
            )  # fmt: skip
    return rows


def test_validation_shows_the_errors_of_measured_times(offpath, tmp_path):
    rows = _measured_rows(sim.read_figures("lab"), "remote")
    for row in rows:
        row["measured_s"] /= 1.25
    measured, found = tmp_path / "m.json", tmp_path / "f.json"
    measured.write_text(json.dumps({"rows": rows}))
    arguments = ["sim", "--platform=lab", "--validate", f"--measured={measured}"]
    done = _right(offpath(*arguments, f"--json={found}"))
    assert "offpath: 6 configurations, median error 25.0 %, 90th percentile 25.0 %" in done.stdout
    said = json.loads(found.read_text())
    assert said["median_percent"] == pytest.approx(25) and len(said["rows"]) == 6
    assert _right(offpath("sim", "--platform=lab", "--validate", f"--measured={found}")).stdout == done.stdout
    none = offpath(*arguments, "--sets=slow")
    assert none.returncode == 2 and "none of the chosen configurations" in none.stderr
    measured.write_text("{}")
    wrong = offpath(*arguments)
    assert wrong.returncode == 2 and "not written by" in wrong.stderr


def test_calibration_finds_the_figures_behind_measured_times(offpath, tmp_path, monkeypatch):
    # Fewer simulations than in the field, but each engine, range of sizes, figure and factor of the fit.
    # test_a_fit_does_not_end_where_it_stays_by_chance is about the other starts. The command that `offpath`
    # runs is a fork of this process and sees the same.
    monkeypatch.setattr(calibrate, "SHAPES", [calibrate.SHAPES[i] for i in (0, 1, 2, 6)])
    monkeypatch.setattr(
        calibrate, "POINTS", lab_times.points("isend ialltoall ibcast iallgather", "1K 16K 256K 1M")
    )
    monkeypatch.setattr(calibrate, "STARTS", (1.0,))
    monkeypatch.setattr(calibrate, "FIT_REPETITIONS", 3)
    true = sim.read_figures("lab")
    for name, value in (
        ("device.send_s", 6e-6), ("device.receive_s", 6e-6), ("host.send_s", 5e-6), ("host.receive_s", 5e-6),
        ("wake_s", 5e-5), ("turn_s", 0),  # drawn turns would hide small changes of these figures
    ):  # fmt: skip
        true[name] = {"value": value, "source": "the test"}
    shapes = []
    for shape in calibrate.SHAPES:
        rows = lab_times.simulate(true, shape, calibrate.POINTS, find_artifacts(), calibrate.FIT_REPETITIONS)
        listed = [
            {
                "op": point.op,
                "bytes": point.size,
                "pure_s": row["time_s"],
                "post_s": row["post_s"],
                "count": 9,
            }
            for point, row in zip(calibrate.POINTS, rows, strict=True)
        ]
        shapes.append({"lab": str(shape), "rows": listed})
    micro = {"round_trip": [2.5e-6], "post": [5e-7], "memcpy": [8e9], "cma": [3e9], "turn": [0]}
    measured, out = tmp_path / "m.json", tmp_path / "here.json"
    measured.write_text(json.dumps({"micro": micro, "shapes": shapes}))
    _right(offpath("calibrate", f"--measured={measured}", f"--out={out}"))
    figures = json.loads(out.read_text())
    assert figures["device.send_s"]["value"] == pytest.approx(6e-6, rel=0.35)
    assert figures["wake_s"]["value"] == pytest.approx(5e-5, rel=0.35)
    assert figures["host_memory_Bps"]["value"] == 6e9 and "measured" in figures["host_memory_Bps"]["source"]
    assert {line["range"] for line in figures["protocols"]} == {"eager", "middle", "large"}
    _right(offpath("sim", f"--platform={out}", "--pattern=ring"))
    measured.write_text(json.dumps({"micro": micro, "shapes": shapes[:1]}))
    wrong = offpath("calibrate", f"--measured={measured}", f"--out={out}")
    assert wrong.returncode == 2 and "not written by" in wrong.stderr


def test_the_study_of_scale_counts_connections_and_memory(offpath, tmp_path):
    found, plot = tmp_path / "f.json", tmp_path / "f.png"
    arguments = ["study", "scale", "--nodes=8,32", "--patterns=halo,barrier", "--bytes=8K"]
    _right(offpath(*arguments, f"--json={found}", f"--plot={plot}"))
    rows = json.loads(found.read_text())["rows"]
    assert [(row["nodes"], row["pattern"]) for row in rows] == [
        (8, "halo"), (8, "barrier"), (32, "halo"), (32, "barrier")
    ]  # fmt: skip
    halo, barrier = rows[2:]
    assert halo["connections_per_proxy"] == 5  # the different neighbours in a torus of 4 x 4 x 2
    assert barrier["connections_per_proxy"] == 5  # one for each round
    assert all(row["time_s"] > 0 < row["memory_per_proxy_bytes"] for row in rows)
    assert plot.stat().st_size > 0
    wrong = offpath("study", "scale", "--nodes=1")
    assert wrong.returncode == 2 and "--nodes 1 is out of range" in wrong.stderr


# The engine's own steps cost almost nothing; messages cost what the models of LogGOPSim and SimGrid charge.
_BARE = (
    *("link_Bps=1e9", "link_latency_s=2e-6"),
    *(f"{name}=1e-9" for name in ("command_s", "completion_s", "post_s", "wake_s", "connect_s")),
    *(f"{name}=1e-9" for name in ("switch_latency_s", "bus_latency_s")),
    *(f"{side}.{step}_s=1e-6" for side in ("host", "device") for step in ("send", "receive", "fetch")),
    *(f"{side}.{step}_s=1e-9" for side in ("host", "device") for step in ("round", "operation", "switch")),
    *(f"{side}.{rate}_Bps=1e15" for side in ("host", "device") for rate in ("copy", "reduce")),
)


@pytest.mark.parametrize(
    ("pattern", "bytes_", "nodes"), [("barrier", 0, 16), ("halo", 4096, 16), ("alltoall", 262144, 16)]
)
def test_simgrid_finds_nearly_the_same_time(offpath, tmp_path, pattern, bytes_, nodes):
    simgrid = find_artifacts().root / "bin/offpath-goal-simgrid"
    if not simgrid.exists():
        pytest.skip("SimGrid was not installed when this was built")
    found, goal = tmp_path / "f.json", tmp_path / "x.goal"
    _right(
        offpath(
            "sim",
            "--platform=thor-bf2",
            "--memory=map",  # SimGrid has no bus between host and device
            f"--pattern={pattern}",
            f"--bytes={bytes_}",
            f"--nodes={nodes}",
            "--iterations=1",
            *(f"--set={figure}" for figure in _BARE),
            f"--json={found}",
            f"--goal={goal}",
        )  # fmt: skip
    )
    theirs = json.loads(_right(subprocess.run([simgrid, goal], capture_output=True, text=True)).stdout)
    assert theirs["time_s"] == pytest.approx(json.loads(found.read_text())["time_s"], rel=0.06)
    assert theirs["ranks"] == nodes
