"""What pictures show."""

from offpath import plots


def test_a_programs_own_times_are_drawn_without_its_start():
    entry = {"host": {"median": 1.0}}
    assert plots.shown_times(
        {"summary": {"wall_s": entry, "total_s": entry, "comm_s": entry, "gflops": entry}}
    ) == ["total_s", "comm_s"]
    assert plots.shown_times({"summary": {"wall_s": entry, "gflops": entry}}) == ["wall_s"]
