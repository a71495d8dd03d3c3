"""Progress where standard error is a file or a pipe."""

from offpath import console


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
