"""The result of a comparison: times from a program's own output, and whether a difference is significant."""

import pytest

from offpath import compare, stats, timing_lines
from offpath.lab import mpi


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("Loop time of 1.52 on 4 procs for 100 steps with 32000 atoms", "Loop time of [s]", 1.52),
        ("Total time: 830.5 ms", "Total time [s]", 0.8305),
        ("| Elapsed = 2 seconds", "Elapsed [s]", 2.0),
        ("rank 3: solve took 1.5e-02 s", "rank #: solve took [s]", 0.015),
        ("Time for loop: 12", None, None),
        # LULESH's lines.
        ("Elapsed time         =       3.52 (s)", "Elapsed time [s]", 3.52),
        ("Grind time (us/z/c)  =  0.41234 (per dom)  (  0.2041 overall)", None, None),
        ("FOM                  = 4899.1 (z/s)", None, None),
        # AMG's lines.
        ("FOM_Solve: nnz_AP * Iterations / Solve Phase Time: 4.781857e+08", None, None),
        ("Figure of Merit (FOM_1): 3.680772e+08", None, None),
        ("Time (ms): 3.5", "Time (ms) [s]", 0.0035),
        ("Elapsed = 2 (s)", "Elapsed [s]", 2.0),
        ("Time (cycles): 3.5", None, None),
        ("Time for a step [h]: 1.5", None, None),
        ("Performance: 12.5 tau/day, 0.3 timesteps/s", None, None),
        ("energy -5.75 after 3 steps", None, None),
    ],
)
def test_times_are_read_from_a_programs_own_lines(line, name, value):
    found = timing_lines.seconds([line])
    assert found == (pytest.approx({name: value}) if name else {})


def test_of_several_lines_with_the_same_words_the_largest_counts():
    assert timing_lines.seconds(["rank 0: took 1.5 s", "rank 1: took 2.5 s"]) == {"rank #: took [s]": 2.5}


MINIMD = """
# Timestep size: 0.005000
# Timestep T U P Time
0 1.440000e+00 -6.773368e+00 -5.019707e+00  0.000
100 7.522795e-01 -5.750129e+00 2.187456e-01  0.447

# MPI_proc OMP_threads nsteps natoms t_total t_force performance perf/thread grep_string t_extra
1 1 100 32000 0.447559 0.382520 7149902.174480 7149902.174480 PERF_SUMMARY 0.000000
""".splitlines()


def test_times_are_read_from_columns_that_are_called_so():
    found = timing_lines.seconds(MINIMD)
    assert found == {
        "Timestep size [s]": 0.005,
        "Time [s]": 0.447,
        "t_total [s]": 0.447559,
        "t_force [s]": 0.38252,
    }
    assert timing_lines.seconds(["n elapsed(ms) energy", "1 250.5 3.0", "2 500.5 4.0"]) == pytest.approx(
        {"elapsed [s]": 0.5005}
    )
    # Other lines below, titles without a time, and whole numbers are no times.
    assert timing_lines.seconds(["step time T", "3 of 4", "a 1.5 2.5 3.5"]) == {}
    assert timing_lines.seconds(["step temperature T", "3 1.5 4.5"]) == {}
    assert timing_lines.seconds(["step time T", "3 15 4.5"]) == {}


def test_columns_of_times_and_rates_are_no_results():
    later = [
        line.replace("0.447", "0.512").replace("0.382520", "0.391").replace("7149902", "6149902")
        for line in MINIMD
    ]
    assert timing_lines.masked_lines(later) == timing_lines.masked_lines(MINIMD)
    for right in ("7.522795e-01", "2.187456e-01", "32000"):
        wrong = [line.replace(right, "9.5") for line in MINIMD]
        assert timing_lines.masked_lines(wrong) != timing_lines.masked_lines(MINIMD)


def _record(engine, run, seconds, output=()):
    return {
        "engine": engine,
        "run": run,
        "failed": False,
        "measurements": {"wall_s": 9.0, "total_s": seconds},
        "results": {},
        "output": list(output),
    }


def test_printed_times_may_differ_and_other_texts_are_told_once():
    runs = [_record("host", i, 1.0, [f"Loop time of {1 + i / 10} on 4 procs", "energy 5"]) for i in range(4)]
    assert compare.differences(runs) == []
    assert timing_lines.masked("time 0.5 s, energy -5.75 on 4 procs") == "time # s, energy -5.75 on 4 procs"
    for record in runs[1:]:
        record["output"][1] = f"energy {5 + record['run']}"
    (told,) = compare.differences(runs)
    assert (
        "the text printed is not that of host, run 1: 'energy 6', not 'energy 5' (and in 2 more runs)" in told
    )


def test_a_difference_that_the_host_has_too_says_so():
    runs = [_record("host", i, 1.0, [f"energy {i}"]) for i in range(2)]
    runs += [_record("offpath", i, 1.0, [f"energy {i + 5}"]) for i in range(2)]
    (told,) = compare.differences(runs)
    assert told == (
        "offpath, run 1: the text printed is not that of host, run 1: 'energy 5', not 'energy 0' (and in 2"
        " more runs); also between runs of host"
    )


def test_a_time_that_never_changes_was_not_measured():
    def entry(low, high):
        return {"median": low, "low": low, "high": high, "count": 3}

    summary = {
        "wall_s": {"host": entry(9.0, 9.5), "offpath": entry(9.0, 9.2)},
        "Timestep size [s]": {"host": entry(5.0, 5.0), "offpath": entry(5.0, 5.0)},
        "t_total [s]": {"host": entry(1.0, 1.1), "offpath": entry(0.9, 1.0)},
        "t_comm [s]": {"host": entry(0.1, 0.2), "offpath": entry(0.1, 0.2)},
    }
    assert compare.main_time(summary) == "t_total [s]"
    del summary["t_total [s]"], summary["t_comm [s]"]
    assert compare.main_time(summary) == "wall_s"


def _verdict(host, offpath):
    runs = [_record("host", i, s) for i, s in enumerate(host)] + [
        _record("offpath", i, s) for i, s in enumerate(offpath)
    ]
    (said,) = compare.verdicts(_report(runs))
    return said


def _report(runs):
    engines = [mpi.HOST, mpi.OFFPATH]
    return {
        "runs": [{"wire": []} | run for run in runs],
        "reference": "host",
        "summary": compare.summarize(runs, engines),
        "environment": {"load_average": 0.0},
        "engines": {engine.name: {"alone": engine.alone} for engine in engines},
    }


def test_a_difference_is_called_one_only_where_the_runs_show_it():
    quick, slow = [0.8, 0.81, 0.82, 0.8, 0.81], [1.0, 1.01, 1.02, 1.0, 1.01]
    assert _verdict(slow, quick) == (
        "offpath is faster than host: it took 20 % less time (total_s), and every run of offpath was faster"
        " than every run of host."
    )
    assert _verdict(quick, slow).startswith("offpath is slower than host: it took 25 % more time (total_s)")
    assert _verdict([1.0, 1.1, 0.9, 1.05, 0.95], [0.9, 1.08, 0.88, 1.0, 0.97]) == (
        "No difference between offpath and host that these runs can tell: it took 3 % less time (total_s),"
        " and equal runs differ by up to 23 %."
    )
    assert _verdict([1.0, 1.1, 1.2], [0.8, 0.81, 0.82]) == (
        "offpath took 26 % less time (total_s) than host, and all of its runs were faster. So few runs may"
        " do that by chance: use --runs 5."
    )
    assert "use more --runs" in _verdict([1.0], [0.8])
    assert "the medians (total_s) are the same" in _verdict(slow, [each + 1e-3 for each in slow])


LINES = {
    "offpath: offloaded 20 of 20 collectives (80.0 MiB); device back end cma": True,
    "offpath: offloaded 0 of 3 collectives (0 B), 3 on the host: 3 below the switch-over": False,
    "offpath: nothing was offloaded: no collective, message or window was of a kind that goes to": False,
    "offpath: the device carried 3 point-to-point messages (3.0 MiB)": True,
    "offpath: one-sided: 0 operations (0 B) by the device, 0 of 1 windows altogether there": False,
    "": False,
}


@pytest.mark.parametrize(("line", "worked"), LINES.items())
def test_offload_is_said_to_do_something_only_where_the_summary_says_so(line, worked, monkeypatch, capsys):
    monkeypatch.delenv("OFFPATH_VERBOSE", raising=False)
    runs = [_record("host", 0, 1.0), _record("offpath", 0, 1.0) | {"offloaded": compare.was_offloaded(line)}]
    report = _report(runs) | {
        "program": ["./x"],
        "offload_arguments": [],
        "lab": {"nodes": 2, "link": "1gbit", "environment": {}},
    }
    compare.explain(report)
    said = " ".join(capsys.readouterr().out.split())
    assert ("moved data while the program ran" in said) == worked
    assert ("no device did anything" in said) != worked
    assert "1.000 s without offload, 1.000 s with it" in said
    assert compare.device_worked(report | {"lab": {"environment": {"OFFPATH_VERBOSE": "0"}}}) is None


def test_chances_are_those_of_the_rank_sum_test():
    assert stats.chance([1, 2, 3], [4, 5, 6]) == pytest.approx(0.1)  # 2 of the 20 orders
    assert stats.chance([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert stats.chance([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert stats.chance(list(range(30)), list(range(100, 130))) < 1e-6


def test_blanks_at_the_end_of_a_line_are_not_results() -> None:
    # A program may drop its last column, a time, and leave the blanks that filled it up.
    assert timing_lines.masked("500 7.5e-01 2.7e-01 ") == timing_lines.masked("500 7.5e-01 2.7e-01")


def test_a_minimum_is_no_time():
    assert timing_lines.seconds(["Neighs:  36940920 ave 36940920 max 36940920 min"]) == {}
    assert timing_lines.seconds(["Elapsed: 2 min"]) == {"Elapsed [s]": 120.0}
