"""What is said on standard error, on terminals and elsewhere."""

import io
import sys

import pytest

from offpath import console, stats
from offpath.codes import Code
from offpath.last_words import last_words


def test_piped_progress_prints_the_first_step_and_later_ones_now_and_then(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    progress = console.progress()
    assert isinstance(progress, console.PlainProgress)
    with progress:
        task = progress.add_task("ialltoall, 1 MiB", total=3)
        progress.advance(task)  # too soon for a line
        now[0] += progress.SECONDS
        progress.update(task, advance=1, description="ibcast, 1 MiB")
        now[0] += progress.SECONDS
        progress.update(task)  # nothing new
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["offpath: 0 of 3 done; ialltoall, 1 MiB", "offpath: 2 of 3 done; ibcast, 1 MiB"]


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_a_line_has_the_colour_that_rich_would_give_it(monkeypatch, variables, terminal, coloured):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said = {}
    for with_rich in (False, True):
        stream = io.StringIO()
        stream.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stderr", stream)
        vars(console).pop("err", None)
        if with_rich:
            assert console.err is not None
        console.warn(Code.OPTION, "a [line] of text")
        said[with_rich] = stream.getvalue()
    vars(console).pop("err", None)
    assert ("\033[33m" in said[False]) == coloured == ("\033[33m" in said[True])
    assert said[False] == said[True]
    assert "a [line] of text" in said[False]


def test_a_long_run_says_that_it_goes_on(monkeypatch, tmp_path):
    said = []
    monkeypatch.setattr(console, "_NEWS_S", 0.01)
    go_on = tmp_path / "go on"
    monkeypatch.setattr(console, "note", lambda line: (said.append(line), go_on.touch()))
    waits = f"until [ -e '{go_on}' ]; do :; done; echo out; echo err >&2; exit 3"
    done = console.run_with_news(["sh", "-c", waits], "simulating")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert said[0].startswith("simulating: ") and said[0].endswith(" s so far")


def test_a_busy_machine_is_named():
    assert stats.why_busy(0.4) == ""
    assert stats.why_busy(3.14).startswith("the machine is not idle (load average 3.1)")


def test_a_failed_job_tells_its_own_words_not_the_launchers():
    rule = "-" * 74
    launcher = (
        f"{rule}\nmpirun has exited due to process rank 1 with PID 0 on\nnode a exiting improperly.\n"
        + "why\n" * 20
        + rule
    )
    usual = f"{rule}\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n{rule}"
    slots = f"{rule}\nThere are not enough slots available.\n{rule}"
    assert last_words("", f"rank 1: no room\n{usual}\n{launcher}\n") == "rank 1: no room"
    assert last_words("", f"{slots}\n{launcher}") == "There are not enough slots available."
    assert last_words("", launcher).endswith(rule), "it has no other words"
    assert last_words("said\n", "") == "said"
    assert last_words("a\nb\nc\n", "", 2) == "b\nc"
