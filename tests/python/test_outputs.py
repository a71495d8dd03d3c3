"""Results reach their files, or the command says in one line why not: on full disks, in folders that cannot
be written, and when nobody reads the command's output any more."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from conftest import command, environment
from offpath import outputs
from offpath.errors import OffpathError

MODEL = ["model", "bound", "--comm", "1", "--total", "2"]


@pytest.fixture
def small_disk(tmp_path):
    """A function that runs a shell script in a directory of 256 KiB."""

    def run(script: str, **extra: str) -> subprocess.CompletedProcess:
        place = tmp_path / "small"
        place.mkdir(exist_ok=True)
        inside = f'mount -t tmpfs -o size=256k none "{place}" && cd "{place}" && {script}'
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside],
            env=environment(**extra),
            capture_output=True,
            text=True,
            timeout=60,
        )

    if (done := run("true")).returncode != 0:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.strip()}")
    return run


def offpath_line(*arguments: str) -> str:
    return " ".join(f"'{word}'" for word in command(*arguments))


def test_a_full_disk_is_noticed_before_the_work(small_disk):
    done = small_disk(
        "head -c 253952 /dev/zero > filler; "
        + offpath_line("lab", "compare", "--json", "x.json", "--", "sleep", "1000")
        + "; code=$?; ls -A; exit $code"
    )
    assert done.returncode == 2 and done.stdout == "filler\n", done.stdout
    first, *others = done.stderr.splitlines()
    assert "x.json cannot be written: No space left on device" in first and len(others) == 1, done.stderr


def test_results_that_find_the_disk_full_are_kept_elsewhere(small_disk, tmp_path):
    script = (
        "from pathlib import Path; from offpath import outputs; from offpath.errors import OffpathError\n"
        "path = Path('x.json'); path.write_text('old'); outputs.check(path)\n"
        "Path('filler').write_bytes(bytes(200 * 1024))\n"
        "try: outputs.write(path, 'new ' * 50000)\n"
        "except OffpathError as error: print(error)\n"
        "print(path.read_text(), sorted(each.name for each in Path().iterdir()))\n"
    )
    done = small_disk(f'python3 -c "{script}"', TMPDIR=str(tmp_path))
    said, left = done.stdout.splitlines()
    assert said.startswith("x.json cannot be written: No space left on device; the results are in "), done
    assert Path(said.rpartition(" ")[2]).read_text() == "new " * 50000
    assert left == "old ['filler', 'x.json']"


def test_a_device_without_room_is_named_in_one_line_and_the_results_kept(offpath, tmp_path):
    done = offpath(*MODEL, "--json", "/dev/full", TMPDIR=str(tmp_path))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "/dev/full cannot be written: No space left on device; the results are in" in done.stderr
    (kept,) = tmp_path.glob("offpath-results-*/full")
    assert json.loads(kept.read_text())["model"] == "bound"


def test_folders_that_cannot_be_written_are_refused(offpath, tmp_path, ordinary_user):
    for above in (tmp_path, *tmp_path.parents):
        above.chmod(above.stat().st_mode | 0o555) if above.stat().st_uid == 0 else None
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o755)
    (folder / "rank-0.json").write_text("{}")
    for line in (
        [*MODEL, "--json", f"{folder}/x.json"],
        ["advise", "--profile", str(folder), "--", "true"],
        ["run", "--mpi", "none", "--trace", str(folder), "--", "true"],
        ["advise", "--profile", str(folder), "--html", f"{folder}/x.html"],
        ["report", str(tmp_path), "-o", f"{folder}/x.html"],
    ):
        done = offpath(*line, user=ordinary_user)
        assert done.returncode == 2 and "Permission denied" in done.stderr, (line, done.stderr)
        assert len(done.stderr.splitlines()) == 2 and "Traceback" not in done.stderr, done.stderr
    # A file that may be written does not need a folder in which others can be made.
    mine = folder / "mine.json"
    mine.touch()
    os.chown(mine, ordinary_user, ordinary_user)
    assert offpath(*MODEL, "--json", str(mine), user=ordinary_user).returncode == 0
    assert json.loads(mine.read_text())["model"] == "bound"


@pytest.mark.parametrize("reader", ["exec true", "exec >&-; exec true"], ids=["left", "never"])
def test_files_are_written_though_nobody_reads_the_output(tmp_path, reader):
    line = f"{offpath_line(*MODEL, '--json', 'x.json')} 2>&1 | ({reader}); echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], env=environment(), capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert "Traceback" not in done.stderr and done.stdout.split()[-1] in ("0", "141"), done
    assert json.loads((tmp_path / "x.json").read_text())["model"] == "bound"
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_output_that_cannot_be_written_is_an_error(tmp_path):
    for extra in ([], ["--json", "x.json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                command(*MODEL, *extra), env=environment(), stdout=full, stderr=subprocess.PIPE, text=True,
                cwd=tmp_path, timeout=60,
            )  # fmt: skip
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert "standard output cannot be written: No space left on device" in done.stderr
    assert (tmp_path / "x.json").exists()


def test_a_link_stays_and_modes_are_kept(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real.name)
    outputs.check(link)
    outputs.write(link, "new")
    assert link.is_symlink() and real.read_text() == "new" and real.stat().st_mode & 0o777 == 0o640


def test_a_picture_that_fails_leaves_the_earlier_one(tmp_path):
    path = tmp_path / "x.png"
    path.write_text("old")

    def draw(to: Path) -> None:
        to.write_text("half")
        raise ValueError

    with pytest.raises(ValueError):
        outputs.make(path, draw)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_labs_results_do_not_go_to_its_own_shared_memory(offpath):
    done = offpath("lab", "compare", "--json", "/dev/shm/offpath-x.json", "--", "true")
    assert done.returncode == 2 and "out of reach" in done.stderr, done.stderr


def test_results_go_to_a_pipe_as_they_are(offpath):
    done = offpath(*MODEL, "--json", "/dev/stdout")
    assert '"model": "bound"' in done.stdout and done.returncode == 0
    with pytest.raises(OffpathError, match="is not there"):
        outputs.check(Path("/nowhere/x.json"))
