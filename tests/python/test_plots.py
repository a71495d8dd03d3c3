"""What pictures show."""

import pytest

from offpath import plots, units


def test_a_programs_own_times_are_drawn_without_its_start():
    entry = {"host": {"median": 1.0}}
    assert plots.shown_times(
        {"summary": {"wall_s": entry, "total_s": entry, "comm_s": entry, "gflops": entry}}
    ) == ["total_s", "comm_s"]
    assert plots.shown_times({"summary": {"wall_s": entry, "gflops": entry}}) == ["wall_s"]


def test_the_legend_lies_beside_the_data(monkeypatch, tmp_path):
    rows = [
        {"op": op, "engine": engine, "bytes": size, "overlap_percent": 100, "total_s": 1.0, "compute_s": 1.0,
         "wire_s": 1.0, "pure_s": 1e-3}
        for op in ("ibcast", "ialltoall") for engine in ("host", "offpath") for size in (1024, 1 << 20)
    ]  # fmt: skip
    drawn = []
    monkeypatch.setattr(plots.plt, "close", drawn.append)
    report = {"rows": rows, "lab": {"description": "2 nodes"}}
    plots.overlap(report, tmp_path / "overlap.png")
    plots.series(report, tmp_path / "series.png", "pure_s", "seconds")
    for figure in drawn:
        (legend,) = figure.legends
        place = legend.get_window_extent()
        for axes in figure.axes:
            assert axes.get_legend() is None and not axes.get_window_extent().overlaps(place)


@pytest.mark.parametrize(
    ("size", "text"), [(12, "12 B"), (1536, "1.5 KiB"), (1 << 20, "1 MiB"), (3 << 30, "3 GiB")]
)
def test_amounts_have_the_unit_that_they_are_counted_in(size, text):
    assert units.format_bytes(size) == text
